"""Unigram vocabularies: the ids of `sentencepiece`, and offsets into the user's string."""

import base64
import json
import unicodedata

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tokenizers

from keras_bert.base.errors import InputError
from keras_bert.text import Tokenizer, load_vocabulary
from keras_bert.text import sentencepiece_model as sp
from keras_bert.text.vocabularies.spaced import WHITE_SPACE
from tests.peers import transformers
from tests.seeds import shifted
from tests.text import fuzz
from tests.text.unigram_models import SENTENCES, albert_model, bert_model, model

FIRST = {"xlm-roberta": ["<s>", "<pad>", "</s>", "<unk>"]}
FIRST["camembert"] = ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"]
CLASSES = {"xlm-roberta": None, "camembert": "CamembertTokenizer"}


def write(folder, data, *, name="spiece.model", config=None):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    config = {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False}
    return write(tmp_path_factory.mktemp("spm"), bert_model(), name="spm.model", config=config)


@pytest.fixture(scope="module")
def tokenizer(folder):
    return Tokenizer.from_folder(folder)


@pytest.fixture(scope="module")
def reference():
    return sentencepiece.SentencePieceProcessor(model_proto=bert_model())


def differences(tokenizer, reference, texts):
    """The texts of which the ids differ from the reference's.

    The same tokens in another order are as probable: how two sums are rounded decides ("i", "ii" or
    "ii", "i"). Of 100,000 texts six were in another order, by `sentencepiece` 0.2 and TF Text 2.21.
    """
    rows = zip(texts, tokenizer.tokenize(texts).to_list(), reference.encode(texts), strict=True)
    others = [
        (text, sorted(ours) == sorted(theirs)) for text, ours, theirs in rows if ours != theirs
    ]
    assert sum(is_tie for _, is_tie in others) <= 1 + len(texts) // 1000
    return [text for text, is_tie in others if not is_tie]


def test_ids_are_those_of_sentencepiece(tokenizer, reference):
    texts = [*SENTENCES, "", " ", "  a  b\t", *fuzz.texts(3000)]
    assert differences(tokenizer, reference, texts) == []
    assert differences(tokenizer, reference, [*fuzz.WORDS, "a b"]) == []


@pytest.mark.slow
def test_ids_are_those_of_sentencepiece_on_100_000_texts_and_xquad(
    tokenizer, reference, shared_data
):
    for seed in range(10):
        assert differences(tokenizer, reference, fuzz.texts(10_000, seed=seed)) == []
    articles = json.loads((shared_data / "xquad" / "en.json").read_text())["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    questions = [qa["question"] for paragraph in paragraphs for qa in paragraph["qas"]]
    texts = [paragraph["context"] for paragraph in paragraphs] + questions
    assert len(texts) == 1430
    assert differences(tokenizer, reference, texts) == []


@pytest.mark.parametrize(
    "options",
    [
        {"normalization_rule_name": "identity", "remove_extra_whitespaces": False},
        {"add_dummy_prefix": False, "normalization_rule_name": "nmt_nfkc_cf"},
        {"vocab_size": 1500, "byte_fallback": True, "user_defined_symbols": "<sep>,x²"},
    ],
    ids=lambda options: "-".join(options),
)
def test_every_option_of_a_model(tmp_path, options):
    data = model(**options, pad_id=3, pad_piece="[PAD]", control_symbols="[CLS],[SEP]")
    config = {"unk_token": "<unk>", "tokenizer_class": "PreTrainedTokenizerFast"}
    config |= {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": None}
    tokenizer = Tokenizer.from_folder(write(tmp_path / "given", data, config=config))
    reference = sentencepiece.SentencePieceProcessor(model_proto=data)
    texts = ["a<sep>b x² c", *fuzz.texts(300, seed=3)]
    assert differences(tokenizer, reference, texts) == []
    tokenizer.save(tmp_path / "saved")
    again = Tokenizer.from_folder(tmp_path / "saved")
    assert differences(again, reference, texts) == []
    assert again.vocabulary == tokenizer.vocabulary
    assert tokenizer.lowercase == (options.get("normalization_rule_name") == "nmt_nfkc_cf")


@pytest.mark.parametrize("family", CLASSES)
def test_the_ids_of_fairseq(tmp_path, family):
    config = {"tokenizer_class": CLASSES[family]} if CLASSES[family] else None
    folder = write(tmp_path / "given", model(), name="sentencepiece.bpe.model", config=config)
    tokenizer = Tokenizer.from_folder(folder)
    reference = sentencepiece.SentencePieceProcessor(model_proto=model())
    first, shift = FIRST[family], {"xlm-roberta": 1, "camembert": 4}[family]
    assert [tokenizer.vocabulary.token(id) for id in range(len(first))] == first
    size = reference.get_piece_size()
    assert len(tokenizer) == size + shift + 1
    assert tokenizer.vocabulary.mask_id == size + shift
    texts = [*SENTENCES, *fuzz.texts(200, seed=4)]
    expected = [
        [id + shift if id else tokenizer.vocabulary.unk_id for id in ids]
        for ids in reference.encode(texts)
    ]
    assert tokenizer.tokenize(texts).to_list() == expected
    assert str(tokenizer.template) == "<s> a </s> </s> b </s>"
    tokenizer.save(tmp_path / "saved")
    again = Tokenizer.from_folder(tmp_path / "saved")
    assert again.tokenize(texts).to_list() == expected
    assert (again.template, again.vocabulary) == (tokenizer.template, tokenizer.vocabulary)


FAMILY_FILES = {
    "deberta-v2": (bert_model, "spm.model", {"vocab_type": "spm", "do_lower_case": False}),
    "albert": (albert_model, "spiece.model", {"tokenizer_class": "AlbertTokenizer"}),
    "xlm-roberta": (model, "sentencepiece.bpe.model", None),
    "camembert": (model, "sentencepiece.bpe.model", {"tokenizer_class": "CamembertTokenizer"}),
}


@pytest.mark.parametrize(
    "family, count",
    [*((family, 1000) for family in FAMILY_FILES)]
    + [pytest.param(family, 100_000, marks=pytest.mark.slow) for family in FAMILY_FILES],
)
def test_offsets_lead_to_the_users_string(tmp_path, family, count):
    read, name, config = FAMILY_FILES[family]
    tokenizer = Tokenizer.from_folder(write(tmp_path / "given", read(), name=name, config=config))
    for seed in range(1, 1 + -(-count // 10_000)):
        check_offsets(
            tokenizer, [*SENTENCES, *QUOTED, "", *fuzz.texts(min(count, 10_000), seed=seed)]
        )


def check_offsets(tokenizer, texts):
    tokens = tokenizer.tokenize_with_offsets(texts)
    assert tokens.ids.to_list() == tokenizer.tokenize(texts).to_list()
    columns = (tokens.starts, tokens.ends, tokens.byte_starts, tokens.byte_ends, tokens.word_starts)
    for text, *rows in zip(texts, *(column.to_list() for column in columns), strict=True):
        content, covered = text.encode(), set()
        for start, end, first, last, _ in zip(*rows, strict=True):
            assert 0 <= start <= end <= len(text)
            assert content[first:last].decode() == text[start:end]
            assert text[start:end].strip(WHITE_SPACE) == text[start:end]
            covered.update(range(start, end))
        missed = "".join(c for at, c in enumerate(text) if at not in covered)
        # SentencePiece drops some characters at the ends of a text, such as an Arabic vowel sign,
        # which it turns into a space and a mark. A text of these characters alone has no tokens.
        letters = [c for c in missed if c.isalnum()]
        assert not letters or not tokenizer.tokenize(letters).flat_values.shape[0], (text, missed)


def test_the_text_of_known_tokens_is_that_at_their_offsets(tokenizer):
    text = "  The banks,  Straße 東京 ㎏. "
    tokens = tokenizer.tokenize_with_offsets([text])
    ids, starts, ends = (x[0].numpy().tolist() for x in (tokens.ids, tokens.starts, tokens.ends))
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    assert "".join(dict.fromkeys(parts)).endswith("㎏.")
    vocabulary = tokenizer.vocabulary
    for id, part in zip(ids, parts, strict=True):
        if part != "㎏" and id != vocabulary.unk_id:
            assert vocabulary.token_text(id) == part
    begins = tokens.word_starts[0].numpy()
    words = [part for part, is_first in zip(parts, begins, strict=True) if is_first]
    # The first token begins a word, be it white space alone.
    assert words == [parts[0], "banks", ",", "Straße", "東", "㎏", "."]
    assert vocabulary.join(ids) == "The banks, Straße 東京 kg."


def test_a_damaged_or_another_model_is_an_error(tmp_path):
    for data, part in [
        (b"\x0a\x05nothing", "is not a SentencePiece model"),
        (b"", "it has no tokens"),
        (bert_model()[:-3], "damaged"),
    ]:
        with pytest.raises(InputError, match=part):
            load_vocabulary(write(tmp_path / "folder", data))
    data = model(pad_id=3)
    broken = sp.SentencePieceModel.from_bytes(data, source="x").to_bytes()
    assert sp.SentencePieceModel.from_bytes(broken, source="x").to_bytes() == broken
    bpe = write(tmp_path / "bpe", broken.replace(b"\x18\x01\x98\x02", b"\x18\x02\x98\x02"))
    with pytest.raises(InputError, match="of type BPE. Expected a unigram model"):
        load_vocabulary(bpe)
    xlnet = write(tmp_path / "xlnet", data, config={"tokenizer_class": "XLNetTokenizer"})
    with pytest.raises(InputError, match="is read for a XLNetTokenizer"):
        load_vocabulary(xlnet)


def test_the_charsmap_is_read_as_sentencepiece_reads_it():
    charsmap = sp.SentencePieceModel.from_bytes(bert_model(), source="x").charsmap
    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name="nmt_nfkc", add_dummy_prefix=False, escape_whitespaces=False
    )
    for character in "A１㎏ﬁaé\u3000東":
        ours = sp.mapped(charsmap, character)
        expected = normalizer.normalize(f"x{character}x")[1:-1]
        assert (character if ours is None else ours) == expected


def test_a_tokenizer_json_in_the_shape_of_xlm_r(tmp_path):
    """The published steps: Precompiled alone, and white space taken out by the splitting."""
    tokenizer = Tokenizer.from_folder(
        write(tmp_path / "given", model(), name="sentencepiece.bpe.model")
    )
    tokenizer.save(tmp_path / "saved")
    content = json.loads((tmp_path / "saved" / "tokenizer.json").read_text())
    charsmap = base64.b64encode(tokenizer.vocabulary.charsmap).decode()
    content["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    metaspace = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    content["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace],
    }
    (tmp_path / "saved" / "tokenizer.json").write_text(json.dumps(content))
    assert Tokenizer.from_folder(tmp_path / "saved").vocabulary == tokenizer.vocabulary
    content["normalizer"] = {"type": "Replace", "pattern": {"String": "``"}, "content": "x"}
    (tmp_path / "saved" / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="normalizes texts by Replace"):
        Tokenizer.from_folder(tmp_path / "saved")


def test_tokenizers_reads_nearly_all_texts_the_same(tokenizer, tmp_path):
    """The differences are those that docs/moving_from_transformers.md says."""
    tokenizer.save(tmp_path)
    their_tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    their_tokenizer.encode_special_tokens = True
    texts = [*SENTENCES, *fuzz.WORDS, "", " ", "  a  b "]
    expected = [
        encoding.ids for encoding in their_tokenizer.encode_batch(texts, add_special_tokens=False)
    ]
    assert tokenizer.tokenize(texts).to_list() == expected
    first, last = (tokenizer.vocabulary.id(token) for token in ("[CLS]", "[SEP]"))
    a, b = tokenizer.tokenize(["a", "b"]).to_list()
    assert their_tokenizer.encode("a", "b").ids == [first, *a, last, *b, last]


def albert_text(text):
    """Reads a text as google-research/albert's `preprocess_text` does, but for white space."""
    text = text.replace("``", '"').replace("''", '"')
    text = unicodedata.normalize("NFKD", text)
    return "".join(c for c in text if not unicodedata.category(c).startswith("M")).lower()


QUOTED = ["He said ``yes'' and `no'.", "```", "'''' x '", "``''`", "Straße ``Été''"]


@pytest.mark.parametrize("named", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_alberts_texts_are_folded_before(tmp_path, named):
    (tmp_path / "spiece.model").write_bytes(albert_model())
    config = {"tokenizer_class": "AlbertTokenizer"} if named else {"do_lower_case": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer.from_folder(tmp_path)
    reference = sentencepiece.SentencePieceProcessor(model_proto=albert_model())
    texts = [*QUOTED, *SENTENCES, *(text for text in fuzz.WORDS if text.isascii())]
    expected = [reference.encode(albert_text(text)) for text in texts]
    assert tokenizer.tokenize(texts).to_list() == expected
    assert tokenizer.lowercase and str(tokenizer.template) == "[CLS] a [SEP] b [SEP]"
    special = tokenizer.special_tokens
    assert (special.pad, special.unk, special.mask) == ("<pad>", "<unk>", "[MASK]")
    tokens = tokenizer.tokenize_with_offsets(QUOTED)
    for text, starts, ends in zip(
        QUOTED, tokens.starts.to_list(), tokens.ends.to_list(), strict=True
    ):
        covered = {at for bounds in zip(starts, ends, strict=True) for at in range(*bounds)}
        assert covered | {at for at, c in enumerate(text) if c == " "} == {*range(len(text))}
    tokenizer.save(tmp_path / "saved")
    again = Tokenizer.from_folder(tmp_path / "saved")
    assert again.vocabulary == tokenizer.vocabulary
    assert again.tokenize(texts).to_list() == expected
    # `tokenizers` reads the same steps.
    their_tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    their_tokenizer.encode_special_tokens = True
    ids = [
        encoding.ids for encoding in their_tokenizer.encode_batch(texts, add_special_tokens=False)
    ]
    assert ids == expected


def debertas_steps():
    """The steps that transformers 5 writes for DeBERTa."""
    spaces = {"type": "Replace", "pattern": {"Regex": r"\s{2,}|[\n\r\t]"}, "content": " "}
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    return {"type": "Sequence", "normalizers": [spaces, {"type": "NFC"}, strip]}


def test_white_space_becomes_single_spaces(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["normalizer"] = debertas_steps()
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    their_tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    their_tokenizer.encode_special_tokens = True
    ours = Tokenizer.from_folder(tmp_path)
    assert ours.vocabulary.normalizers == ("single_spaces", "nfc")
    texts = ["a\nb", "\ta \u3000 the\r\n", " x", "", "a\xa0b", "the bank\t\t", "\u2003\n"]
    texts += [*SENTENCES, "Cafe\u0301  du\tMonde"]
    expected = [
        encoding.ids for encoding in their_tokenizer.encode_batch(texts, add_special_tokens=False)
    ]
    assert ours.tokenize(texts).to_list() == expected
    tokens = ours.tokenize_with_offsets(texts)
    for text, starts, ends in zip(
        texts, tokens.starts.to_list(), tokens.ends.to_list(), strict=True
    ):
        covered = {at for bounds in zip(starts, ends, strict=True) for at in range(*bounds)}
        assert {at for at, c in enumerate(text) if not c.isspace()} <= covered
        assert all(not text[start:end].isspace() for start, end in zip(starts, ends, strict=True))


def test_a_seed_that_is_set_changes_nothing(tokenizer):
    """It clears the kernels of TensorFlow, with what belongs to them."""
    expected = tokenizer.tokenize(SENTENCES).to_list()
    tf.random.set_seed(shifted(3))
    assert tokenizer.tokenize(SENTENCES).to_list() == expected
    [tokens] = tf.data.Dataset.from_tensors(SENTENCES).map(tokenizer.tokenize_with_offsets)
    assert tokens.ids.to_list() == expected


def test_more_special_tokens_are_appended(tokenizer):
    more = tokenizer.vocabulary.with_special_tokens(start="<start>", extract="<extract>")
    assert more.tokens[-2:] == ("<start>", "<extract>") and not more.scores[-2:].any()
    again = Tokenizer(more, lowercase=False, template=tokenizer.template)
    assert again.tokenize(SENTENCES).to_list() == tokenizer.tokenize(SENTENCES).to_list()
    assert np.array_equal(more.special_ids[-2:], [len(more) - 2, len(more) - 1])


@pytest.mark.peers
def test_transformers_opens_a_saved_folder(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = [*SENTENCES, *fuzz.WORDS]
    expected = their_tokenizer(texts, add_special_tokens=False)["input_ids"]
    assert tokenizer.tokenize(texts).to_list() == expected
    assert their_tokenizer.mask_token_id == tokenizer.vocabulary.mask_id
