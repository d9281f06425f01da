"""The tokenizer's interface: inputs, offsets, folders, graphs that stand alone."""

import json
import pickle
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.text import Tokenizer, normalization
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from keras_bert.text.vocabulary_files import load_vocabulary
from tests.messages import raises_input_error
from tests.peers import transformers

TOKENS = (
    *SPECIAL_TOKENS,
    *"the cafe cat ##s sat on mat ##ing una ##ffa ##ble e ##e x ##x 日 本 . , ! [ ] mask".split(),
)

HARD = [
    "The café cats sat on the mat, unaffable!",
    "",
    " \t ",
    "Cafe\u0301s. E\u0301\u0323\u0302x e\u0301",
    "\u0301\u0301the cat\u0301\u0302 \u0301 sat",
    "日本 the\u00adcat\u200bs \u202ethe",
    "\ufeffthe \x00cat\x00s",
    "İ ß ẞ ﬁ ½ ＡＢ ΟΔΥΣΣΕΥΣ 각 힣 ㎏ Ĳ",
    "x" * 201 + " the " + "é" * 150,
    "[MASK] the",
    "\u0301",
    "👩‍👩‍👧‍👦 the 🇩🇪 ❤️ cat",
    "lone \ud83d surrogate",
]


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def tokenizer(request):
    return Tokenizer.from_vocab(WordPieceVocabulary(TOKENS), lowercase=request.param)


@pytest.fixture(scope="module")
def minilm(minilm_folder):
    return Tokenizer.from_folder(minilm_folder)


def tokens(tokenizer, text):
    return [TOKENS[id] for id in tokenizer.tokenize([text]).to_list()[0]]


def test_inputs_of_every_kind_give_the_same(tokenizer):
    texts = ["the cat", "", "sat 日本"]
    expected = tokenizer.tokenize(texts)
    assert expected.dtype == tf.int32 and expected.shape.as_list() == [3, None]
    for given in (
        tuple(texts),
        [text.encode() for text in texts],
        tf.constant(texts),
        np.array(texts, dtype=object),
    ):
        assert tokenizer.tokenize(given).to_list() == expected.to_list()
    assert tokenizer.tokenize([]).to_list() == []
    assert tokenizer.tokenize_with_offsets([]).starts.to_list() == []


@pytest.mark.parametrize(
    "given", ["one text", b"one text", [["a"], ["b"]], [1, 2], tf.constant("a")]
)
def test_what_is_no_batch_of_texts_is_rejected(tokenizer, given):
    with pytest.raises((ValueError, TypeError), match="Received|type|string"):
        tokenizer.tokenize(given)


def test_special_tokens_in_a_text_are_ordinary_text(tokenizer):
    subwords = tokens(tokenizer, "[MASK] [mask]")
    assert subwords == ["[", "mask" if tokenizer.lowercase else "[UNK]", "]", "[", "mask", "]"]


def test_tokenizers_of_one_vocabulary_are_compiled_once(monkeypatch):
    builder, compiled = normalization.wordpiece_model_builder, []
    build = builder.build_fast_wordpiece_model
    monkeypatch.setattr(
        builder, "build_fast_wordpiece_model", lambda *args: compiled.append(args) or build(*args)
    )
    for lowercase in (True, False):
        Tokenizer(WordPieceVocabulary([*SPECIAL_TOKENS, "once"]), lowercase=lowercase)
    Tokenizer(WordPieceVocabulary([*SPECIAL_TOKENS, "another"]), lowercase=True)
    assert [tokens[-1] for tokens, *_ in compiled] == ["once", "another"]


def test_detokenize(tokenizer):
    assert tokenizer.detokenize(tokenizer.tokenize(["the cats sat, unaffable!"])[0]) == (
        "the cats sat , unaffable !"
    )
    assert tokenizer.detokenize([]) == ""


def normal(text, lowercase):
    """Normalizes a stretch of the user's string, in plain Python."""
    characters = [
        c for c in text if unicodedata.category(c) not in ("Cf", "Cs") and c not in "\x00\ufffd"
    ]
    text = "".join(characters)
    if lowercase:
        decomposed = unicodedata.normalize("NFD", text.lower())
        text = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
    return text


def check_offsets(tokenizer, texts):
    tokens = tokenizer.tokenize_with_offsets(texts)
    assert tokens.ids.to_list() == tokenizer.tokenize(texts).to_list()
    for field in ("starts", "ends", "byte_starts", "byte_ends"):
        assert getattr(tokens, field).dtype == tf.int32
    vocabulary = tokenizer.vocabulary
    rows = zip(texts, *(field.to_list() for field in tokens), strict=True)
    checked = 0
    for text, ids, starts, ends, byte_starts, byte_ends, word_starts in rows:
        assert word_starts == [not vocabulary.continuations[id] for id in ids]
        data = text.encode("utf-8", "surrogatepass")
        tokens_of_row = list(zip(ids, starts, ends, byte_starts, byte_ends, strict=True))
        before = (0, 0)
        for i, (id, start, end, byte_start, byte_end) in enumerate(tokens_of_row):
            assert 0 <= start < end <= len(text)
            # Tokens follow one another; what they share is one character that became several
            # pieces, such as a Hangul syllable.
            assert before[0] <= start and before[1] <= end and before[1] - start <= 1
            fractions = before[1] > start or starts[i + 1 : i + 2] and starts[i + 1] < end
            before = (start, end)
            token = text[start:end]
            if "\ud83d" not in text:  # bytes are those of the string as it reaches the tokenizer
                assert data[byte_start:byte_end].decode() == token
            if id != vocabulary.unk_id:
                expected = vocabulary.token(id)
                expected = expected if word_starts[i] else expected.removeprefix("##")
                expected = expected.replace("ς", "σ")
                surface = normal(token, tokenizer.lowercase).replace("ς", "σ")
                assert expected in surface if fractions else expected == surface
            # No combining mark is left behind, none is torn from the letter that it stands on.
            if tokenizer.lowercase:
                rest = text[end:]
                assert not rest or unicodedata.category(rest[0]) != "Mn"
                assert unicodedata.category(token[0]) != "Mn" or normal(token[0], True)
            checked += 1
    return checked


def test_offsets_of_hard_strings(tokenizer, minilm):
    assert check_offsets(tokenizer, HARD) > 40
    if tokenizer.lowercase:
        assert check_offsets(minilm, HARD) > 60


def test_offsets_do_not_depend_on_the_batch(tokenizer):
    all_tokens = tokenizer.tokenize_with_offsets(HARD)
    for i, text in enumerate(HARD):
        alone = tokenizer.tokenize_with_offsets([text])
        for name in all_tokens._fields:
            one, many = getattr(alone, name).to_list()[0], getattr(all_tokens, name).to_list()[i]
            assert one == many, (name, text)


def test_offsets_in_real_text(minilm, shared_data):
    import importlib.util
    from pathlib import Path

    path = Path(__file__).parent.parent / "reference" / "make_tokenizer_reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = ("xquad/en.json", "wnut17/test.conll", "sst2/dev.tsv")
    texts = [text for name in files for text in module.texts_of(shared_data / name)]
    assert check_offsets(minilm, texts) > 80_000


def test_offsets_in_bytes_that_are_not_utf8(minilm):
    data = b"caf\xc3\xa9 \xff\xfethe \xe2\x82cat\x80s"
    tokens = minilm.tokenize_with_offsets([data])
    slices = [
        data[start:end]
        for start, end in zip(
            tokens.byte_starts.to_list()[0], tokens.byte_ends.to_list()[0], strict=True
        )
    ]
    assert slices == [b"caf\xc3\xa9", b"the", b"cat\x80s"]
    clean = data.decode("utf-8", "ignore")
    slices = [
        clean[start:end]
        for start, end in zip(tokens.starts.to_list()[0], tokens.ends.to_list()[0], strict=True)
    ]
    assert slices == ["café", "the", "cats"]


def test_a_word_too_long_is_one_unknown_token_with_its_offsets(minilm):
    tokens = minilm.tokenize_with_offsets(["a " + "é" * 201 + " b", "é" * 200])
    assert tokens.ids.to_list()[0] == [minilm.vocabulary.id(p) for p in ("a", "[UNK]", "b")]
    assert tokens.starts.to_list()[0] == [0, 2, 204]
    assert tokens.ends.to_list()[0] == [1, 203, 205]
    assert tokens.word_starts.to_list()[0] == [True, True, True]
    assert minilm.vocabulary.unk_id not in tokens.ids.to_list()[1]


def test_long_white_space_is_no_long_word(tokenizer):
    texts = ["\u00a0" * 300, "the\u3000" * 300, "日" * 300]
    assert [len(row) for row in tokenizer.tokenize(texts).to_list()] == [0, 300, 300]
    assert tokenizer.tokenize(texts[:1]).to_list() == [[]]


def test_a_folder_keeps_everything(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "folder")
    again = Tokenizer.from_folder(tmp_path / "folder")
    assert again.vocabulary == tokenizer.vocabulary and again.lowercase is tokenizer.lowercase
    assert len(again) == len(TOKENS)
    assert sorted(entry.name for entry in (tmp_path / "folder").iterdir()) == [
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]


@pytest.mark.peers
def test_hugging_face_opens_a_saved_folder_with_the_same_ids(minilm_folder, tmp_path):
    # If theirs is not the original: a final sigma, words over 100 letters, and special pieces,
    # which written in a text are themselves.
    different = ("\ud83d", "x" * 201, "[MASK]", "Σ")
    texts = [text for text in HARD if not any(part in text for part in different)]
    texts.append("Straße, naïve — “quoted” (50%) don't 東京 ① İ ß ẞ ﬁ ½ ＡＢ 각 힣 ㎏ Ĳ")
    for lowercase in (True, False):
        tokenizer = Tokenizer.from_vocab(minilm_folder / "vocab.txt", lowercase)
        tokenizer.save(tmp_path / str(lowercase))
        their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / str(lowercase))
        assert their_tokenizer.mask_token == "[MASK]" and len(their_tokenizer) == len(tokenizer)
        for text, ids in zip(texts, tokenizer.tokenize(texts).to_list(), strict=True):
            assert their_tokenizer(text, add_special_tokens=False)["input_ids"] == ids, text


@pytest.mark.peers
def test_a_bert_folder_as_transformers_5_saves_it_is_read(minilm_folder, tmp_path):
    transformers.AutoTokenizer.from_pretrained(minilm_folder).save_pretrained(tmp_path)
    assert not (tmp_path / "vocab.txt").exists()
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.vocabulary == load_vocabulary(minilm_folder / "vocab.txt")
    assert tokenizer.lowercase is True


def test_what_is_no_folder_is_rejected(tmp_path):
    with raises_input_error("not a folder"):
        Tokenizer.from_folder(tmp_path / "none")
    with raises_input_error("vocab.txt"):
        Tokenizer.from_folder(tmp_path)


def test_pickled_for_a_worker(tokenizer):
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.lowercase is tokenizer.lowercase
    assert again.tokenize(HARD).to_list() == tokenizer.tokenize(HARD).to_list()
    json.dumps(again.lowercase)  # a plain bool, not one of a config's own kind


def test_a_dataset_gives_offsets(tokenizer):
    texts = [text for text in HARD if "\ud83d" not in text]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(4)
    batches = list(dataset.map(tokenizer.tokenize_with_offsets))
    eager = tokenizer.tokenize_with_offsets(texts)
    for name in eager._fields:
        rows = [row for batch in batches for row in getattr(batch, name).to_list()]
        assert rows == getattr(eager, name).to_list()
