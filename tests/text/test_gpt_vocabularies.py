"""OpenAI GPT's, GPT-2's and RoBERTa's tokenizers, equal to those of `transformers`.

Its classes build a tokenizer of the `tokenizers` library, and here it is built in the same way.
"""

import json
import pickle
import random

import numpy as np
import pytest
import tensorflow as tf
import tokenizers

from keras_bert.text import ByteLevelVocabulary, GptVocabulary, Tokenizer
from keras_bert.text.encodings.byte_level import byte_level_words
from keras_bert.text.learners import learn_byte_level_bpe
from keras_bert.text.template import PLAIN_TEMPLATE
from keras_bert.text.vocabularies.byte_level import LETTERS, to_letters
from keras_bert.text.vocabulary import BERT_TOKENS, SPECIAL_TOKENS, SpecialTokens
from tests.messages import raises_input_error
from tests.peers import transformers
from tests.seeds import shifted

NAMES = ("gpt2", "roberta", "openai-gpt")
CLASSES = {
    "gpt2": "GPT2Tokenizer",
    "roberta": "RobertaTokenizer",
    "openai-gpt": "OpenAIGPTTokenizer",
}
ROLES = {
    "gpt2": dict.fromkeys(["bos_token", "eos_token", "unk_token"], "<|endoftext|>"),
    "roberta": {
        "bos_token": "<s>",
        "cls_token": "<s>",
        "eos_token": "</s>",
        "mask_token": "<mask>",
        "pad_token": "<pad>",
        "sep_token": "</s>",
        "unk_token": "<unk>",
    },
    "openai-gpt": {"unk_token": "<unk>"},
}
VOCABULARIES = {
    "gpt2": ByteLevelVocabulary,
    "roberta": ByteLevelVocabulary,
    "openai-gpt": GptVocabulary,
}
END_OF_TEXT = "<|endoftext|>"
ROBERTA_TOKENS = ["<s>", "<pad>", "</s>", "<unk>"]
CORPUS = [
    "It's the bank's money, they're told, and I'll say so: don't \"bank\" on it!",
    "the new lower newer wider lowest the there then these they them their",
    "  the\n\tmoney    in 2024, 2025 and 1999 (naïve café) — 東京 Straße 😀😀",
    "aaaa aaa aa ---- ------ == ==== … hello world hello there world wide web",
] * 3
HARD = [
    "",
    " ",
    "  ",
    "\n",
    "a\n",
    "\n a",
    " a",
    "a  b",
    "a   b",
    "a \n b\r\n",
    "\t\ta",
    "a\t's",
    " 's",
    "it's",
    "it''s",
    "'stop",
    "'S 'LL 'll 're've 'd'mm",
    "  's x",
    "  're-x",
    "don't!?",
    "3rd 1½² x2",
    "a\u00a0 b",
    "a \u00a0b",
    "\u3000\u3000a",
    "a\x1cb \x1c c",
    "a\x00b",
    "😀😀 e\u0301 \u0301",
    "日本語です。",
    "ΟΔΟΣ Σ",
    "İstanbul DŽ",
    "a\u200db\u00ad",
    "-" * 500,
    "=" * 77 + " a" + " " * 300,
    "ab" * 400,
    "the" * 300,
    "[MASK] </w> Ġ Ċ",
    "\ufffd\uffff\ue000",
    "‗ a‗b",
]


def random_texts(count):
    rng = random.Random(shifted(0))
    letters = " \n\t\u00a0\u3000'abstrevmlldh19½!?.-é日😀ß\u0301\u200dS"
    return ["".join(rng.choices(letters, k=rng.randint(1, 30))) for _ in range(count)]


def trained(name):
    """Token -> id and merges, as the `tokenizers` library learns them."""
    pre, models = tokenizers.pre_tokenizers, tokenizers.models
    if name == "openai-gpt":
        tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre.BertPreTokenizer()
        options = {"special_tokens": ["<unk>"], "end_of_word_suffix": "</w>"}
    else:
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
        special = [END_OF_TEXT] if name == "gpt2" else ROBERTA_TOKENS
        options = {"special_tokens": special, "initial_alphabet": pre.ByteLevel.alphabet()}
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=420, show_progress=False, **options)
    tokenizer.train_from_iterator(CORPUS, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocab = model["vocab"]
    if name == "roberta":
        vocab["<mask>"] = len(vocab)
    return vocab, [tuple(pair) for pair in model["merges"]]


@pytest.fixture(scope="module")
def learned():
    return {name: trained(name) for name in NAMES}


def built(name, vocab, merges, *, add_prefix_space=False):
    """The tokenizer that the class of `transformers` builds."""
    pre, processors, models = tokenizers.pre_tokenizers, tokenizers.processors, tokenizers.models
    if name == "openai-gpt":
        options = {"unk_token": "<unk>", "end_of_word_suffix": "</w>"}
        tokenizer = tokenizers.Tokenizer(
            models.BPE(vocab=vocab, merges=merges, continuing_subword_prefix="", **options)
        )
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre.BertPreTokenizer()
        tokenizer.decoder = tokenizers.decoders.BPEDecoder(suffix="</w>")
    else:
        options = {"continuing_subword_prefix": "", "end_of_word_suffix": ""}
        tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges, **options))
        tokenizer.pre_tokenizer = pre.ByteLevel(add_prefix_space=add_prefix_space)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
    if name == "roberta":
        tokenizer.post_processor = processors.RobertaProcessing(
            ("</s>", vocab["</s>"]), ("<s>", vocab["<s>"]), add_prefix_space=add_prefix_space
        )
    else:
        tokenizer.post_processor = processors.TemplateProcessing(single="$A:0", pair="$A:0 $B:1")
    special = dict.fromkeys(token for key, token in ROLES[name].items() if key.endswith("_token"))
    tokenizer.add_special_tokens([tokenizers.AddedToken(t, special=True) for t in special])
    return tokenizer


def write(name, tokenizer, folder, **options):
    """The folder that `transformers` 5 writes."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"backend": "tokenizers", "tokenizer_class": CLASSES[name], **ROLES[name], **options}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def their_tokenizers(learned):
    return {name: built(name, *files) for name, files in learned.items()}


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_transformers_builds_the_same(learned, their_tokenizers, name, tmp_path):
    vocab, merges = learned[name]
    tokenizer = getattr(transformers, CLASSES[name])(vocab=dict(vocab), merges=list(merges))
    assert json.loads(tokenizer._tokenizer.to_str()) == json.loads(their_tokenizers[name].to_str())
    tokenizer.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"tokenizer.json", "tokenizer_config.json"}
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert ROLES[name].items() <= config.items()


@pytest.fixture(scope="module")
def folders(their_tokenizers, tmp_path_factory):
    return {
        name: write(name, it, tmp_path_factory.mktemp(name))
        for name, it in their_tokenizers.items()
    }


@pytest.fixture(scope="module")
def our_tokenizers(folders):
    return {name: Tokenizer.from_folder(folder) for name, folder in folders.items()}


def write_pair(folder, vocab, merges):
    """The two files of older folders."""
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{lines}", encoding="utf-8")
    return folder


def ids_of(their_tokenizer, texts):
    encoded = their_tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return [encoding.ids for encoding in encoded]


def differing(our_tokenizer, their_tokenizer, texts):
    ids, expected = our_tokenizer.tokenize(texts).to_list(), ids_of(their_tokenizer, texts)
    both = zip(texts, ids, expected, strict=True)
    return [text for text, mine, other in both if mine != other]


@pytest.mark.parametrize("name", NAMES)
def test_hard_and_random_texts(our_tokenizers, their_tokenizers, name):
    assert isinstance(our_tokenizers[name].vocabulary, VOCABULARIES[name])
    assert (
        differing(our_tokenizers[name], their_tokenizers[name], HARD + random_texts(3000) + CORPUS)
        == []
    )
    one_by_one = [our_tokenizers[name].tokenize([text]).to_list()[0] for text in HARD[:12]]
    assert one_by_one == ids_of(their_tokenizers[name], HARD[:12])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "openai-gpt"])
def test_every_character_of_the_basic_plane(our_tokenizers, their_tokenizers, name):
    points = [p for p in range(0x10000) if not 0xD800 <= p < 0xE000]
    texts = [text for p in points for text in (chr(p), f"a{chr(p)}b1{chr(p)}2 {chr(p)} !{chr(p)}")]
    assert list(map(ascii, differing(our_tokenizers[name], their_tokenizers[name], texts))) == []


@pytest.mark.slow
@pytest.mark.parametrize("context", ["%s", "a%sb", "1%s2", " %s ", "!%s", "%s%s", "A%s"])
@pytest.mark.parametrize("name", ["gpt2", "openai-gpt"])
def test_every_code_point(our_tokenizers, their_tokenizers, name, context):
    points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000]
    for first in range(0, len(points), 100_000):
        texts = [context.replace("%s", chr(p)) for p in points[first : first + 100_000]]
        assert (
            list(map(ascii, differing(our_tokenizers[name], their_tokenizers[name], texts))) == []
        )


QUICK_TEXTS = [("gpt2", "books/emma.txt"), ("openai-gpt", "xquad/en.json")]


@pytest.mark.parametrize(
    "name, file",
    [
        pytest.param(name, file, marks=() if (name, file) in QUICK_TEXTS else pytest.mark.slow)
        for name in ("gpt2", "openai-gpt")
        for file in ("books/emma.txt", "books/moby_dick_or_the_whale.txt", "xquad/en.json")
    ],
)
def test_real_texts(our_tokenizers, their_tokenizers, name, file, shared_data):
    text = (shared_data / file).read_text(encoding="utf-8")
    assert differing(our_tokenizers[name], their_tokenizers[name], [*text.split("\n"), text]) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_gives_what_the_definition_gives(our_tokenizers, name):
    vocabulary = our_tokenizers[name].vocabulary
    rng = random.Random(shifted(1))
    words = ["".join(rng.choices("abtheßo", k=rng.randint(1, 12))) for _ in range(500)]
    expected = [[vocabulary.id(token) for token in vocabulary.encode_word(w)] for w in words]
    assert our_tokenizers[name].tokenize(words).to_list() == expected


def test_merges_may_make_a_token_in_two_ways():
    """Then the second of two equal pairs must wait for what the first one leads to."""
    merges = "b c,a b,ab c,d e,abc d,abcd e,a bc".split(",")
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokens = dict.fromkeys([*LETTERS, *("".join(pair) for pair in pairs)])
    vocabulary = ByteLevelVocabulary([END_OF_TEXT, *tokens], pairs, special_tokens=SpecialTokens())
    bare = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab=vocabulary._ids, merges=list(vocabulary.merges))
    )
    bare.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    rng = random.Random(shifted(2))
    texts = ["".join(rng.choices("abcde", k=rng.randint(1, 25))) for _ in range(2000)]
    expected = [encoding.ids for encoding in bare.encode_batch(texts)]
    assert Tokenizer(vocabulary, lowercase=False).tokenize(texts).to_list() == expected


@pytest.mark.parametrize("name", NAMES)
def test_texts_come_back(our_tokenizers, their_tokenizers, name):
    texts = [" Hello,  world \n don't", "日本 😀!", "the lower, newer", "caf"]
    for text in texts:
        ids = ids_of(their_tokenizers[name], [text])[0]
        for some in (ids, ids[:-1], ids[1:]):  # cut in the middle of a character, too
            expected = their_tokenizers[name].decode(some, skip_special_tokens=False)
            assert our_tokenizers[name].detokenize(some) == expected
        if name != "openai-gpt":
            assert our_tokenizers[name].detokenize(ids) == text


@pytest.mark.parametrize("name", NAMES)
def test_offsets_are_those_of_the_tokenizers_library(our_tokenizers, their_tokenizers, name):
    """Words are one space apart here; RoBERTa's offsets, too, leave the space out."""
    texts = ["It's the naïve bank, 東京 😀 zzyzx!", "the lower newer (2024)", "a"]
    tokens = our_tokenizers[name].tokenize_with_offsets(texts)
    assert tokens.ids.to_list() == ids_of(their_tokenizers[name], texts)
    given = their_tokenizers[name].encode_batch(texts, add_special_tokens=False)
    for text, starts, ends, encoding in zip(
        texts, tokens.starts.to_list(), tokens.ends.to_list(), given, strict=True
    ):
        # GPT-2's include a space in front.
        expected = [(start + (text[start] == " "), end) for start, end in encoding.offsets]
        offsets = list(zip(starts, ends, strict=True))
        assert len(offsets) == len(expected)
        for (start, end), (first, last) in zip(offsets, expected, strict=True):
            # White space alone is empty.
            assert start == end if first == last else (start, end) == (first, last)


@pytest.mark.parametrize("name", NAMES)
def test_words_and_offsets(our_tokenizers, name):
    texts = [" \n the bank's\n\n 2nd, x!\n ", "naïve日本 😀\ufffd", b"ab\xff cd", "", "  "]
    tokens = our_tokenizers[name].tokenize_with_offsets(texts)
    for text, *row in zip(texts, *(field.to_list() for field in tokens), strict=True):
        raw = text if isinstance(text, bytes) else text.encode()
        text = raw.decode(errors="ignore")
        words = []
        for _, start, end, byte_start, byte_end, is_start in zip(*row, strict=True):
            assert raw[byte_start:byte_end].decode(errors="ignore") == text[start:end]
            assert text[start:end] == text[start:end].strip()
            if is_start:
                words.append([start, end])
            words[-1][1] = end
        tokenized = [text[start:end] for start, end in words]
        if text.startswith(" \n"):
            bank = ["the", "bank", "'s", "2nd", ",", "x", "!"]
            split = ["the", "bank", "'", "s", "2nd", ",", "x", "!"]
            assert tokenized == (split if name == "openai-gpt" else bank)
        if text == "ab cd":
            assert tokenized == ["ab", "cd"]
    vocabulary = our_tokenizers["gpt2"].vocabulary
    tokenized = our_tokenizers["gpt2"].tokenize_with_offsets([texts[0].strip()])
    starts = vocabulary.word_starts(tokenized.ids.to_list()[0])
    assert starts.tolist() == tokenized.word_starts.to_list()[0]


@pytest.mark.parametrize("json_adds_space", [False, True])
@pytest.mark.parametrize(
    "tokenizer_class, config, expected",
    [
        ("GPT2Tokenizer", {}, False),
        ("GPT2Tokenizer", {"add_prefix_space": True}, True),
        ("GPT2Tokenizer", {"add_prefix_space": False}, False),
        ("PreTrainedTokenizerFast", {}, None),
        ("PreTrainedTokenizerFast", {"add_prefix_space": True}, None),
    ],
)
def test_where_a_space_before_every_text_is_written(
    json_adds_space, tokenizer_class, config, expected, learned, tmp_path
):
    """GPT-2's class of transformers 5 reads its config alone, and others the tokenizer.json."""
    their_tokenizer = built("gpt2", *learned["gpt2"], add_prefix_space=json_adds_space)
    folder = write("gpt2", their_tokenizer, tmp_path, tokenizer_class=tokenizer_class, **config)
    vocabulary = Tokenizer.from_folder(folder).vocabulary
    assert vocabulary.prefix_space == (json_adds_space if expected is None else expected)


def test_a_space_before_every_text(learned, tmp_path):
    vocab, merges = learned["gpt2"]
    their_tokenizer = built("gpt2", vocab, merges, add_prefix_space=True)
    (tmp_path / "theirs").mkdir()
    folder = write("gpt2", their_tokenizer, tmp_path / "theirs", add_prefix_space=True)
    our_tokenizer = Tokenizer.from_folder(folder)
    assert our_tokenizer.vocabulary.prefix_space
    assert differing(our_tokenizer, their_tokenizer, HARD + random_texts(500)) == []
    tokens = our_tokenizer.tokenize_with_offsets(["the bank", "\na", ".", ""])
    assert tokens.starts.to_list()[0][0] == 0 and tokens.ends.to_list()[2][-1] == 1
    assert (tokens.ends >= tokens.starts).values.numpy().all()
    our_tokenizer.save(tmp_path / "ours")
    again = Tokenizer.from_folder(tmp_path / "ours")
    assert (
        again.vocabulary
        == our_tokenizer.vocabulary
        != Tokenizer.from_folder(write_pair(tmp_path, vocab, merges)).vocabulary
    )
    opened = tokenizers.Tokenizer.from_file(str(tmp_path / "ours" / "tokenizer.json"))
    assert differing(our_tokenizer, opened, HARD) == []


def by_tokenizers(folder):
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


def by_transformers(folder):
    return transformers.AutoTokenizer.from_pretrained(folder)._tokenizer


OPENERS = [by_tokenizers, pytest.param(by_transformers, marks=pytest.mark.peers)]


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_ours_opens_elsewhere(our_tokenizers, their_tokenizers, name, opener, tmp_path):
    our_tokenizers[name].save(tmp_path)
    opened = opener(tmp_path)
    assert opened.get_vocab_size() == len(our_tokenizers[name])
    assert differing(our_tokenizers[name], opened, HARD + random_texts(300)) == []
    for text in ("the bank's", " Hello 日本"):
        ids = ids_of(opened, [text])[0]
        assert opened.decode(ids) == their_tokenizers[name].decode(ids)
    pair = opened.encode("the bank", "a newer one").ids
    assert pair == their_tokenizers[name].encode("the bank", "a newer one").ids
    again = Tokenizer.from_folder(tmp_path)
    assert (
        again.vocabulary == our_tokenizers[name].vocabulary
        and again.template == our_tokenizers[name].template
    )
    assert again.lowercase is (name == "openai-gpt")
    copied = pickle.loads(pickle.dumps(our_tokenizers[name]))
    assert copied.vocabulary == our_tokenizers[name].vocabulary


@pytest.mark.parametrize("name", NAMES)
def test_the_two_files_of_older_folders_are_enough(our_tokenizers, learned, name, tmp_path):
    tokenizer = Tokenizer.from_folder(write_pair(tmp_path, *learned[name]))
    assert tokenizer.vocabulary == our_tokenizers[name].vocabulary
    assert tokenizer.template == our_tokenizers[name].template
    assert (tokenizer.template == PLAIN_TEMPLATE) is (name != "roberta")
    assert tokenizer.lowercase is (name == "openai-gpt")


@pytest.mark.peers
def test_a_pad_token_that_a_folder_adds(learned, tmp_path):
    vocab, merges = learned["gpt2"]
    their_tokenizer = transformers.GPT2Tokenizer(
        vocab=dict(vocab), merges=list(merges), pad_token="<pad>"
    )
    their_tokenizer.save_pretrained(tmp_path)
    for files in ((), ("vocab.json", "merges.txt")):  # version 5 writes none of these
        if files:
            write_pair(tmp_path, vocab, merges)
        tokenizer = Tokenizer.from_folder(tmp_path)
        assert tokenizer.vocabulary.pad_id == their_tokenizer.pad_token_id == len(tokenizer) - 1
        assert tokenizer.special_tokens == SpecialTokens(
            pad="<pad>", unk=END_OF_TEXT, bos=END_OF_TEXT, eos=END_OF_TEXT
        )


@pytest.mark.parametrize("opener", OPENERS)
def test_a_learned_byte_level_vocabulary(opener, tmp_path):
    counts = {}
    for word in byte_level_words(tf.constant(CORPUS)).flat_values.numpy():
        counts[to_letters(word)] = counts.get(to_letters(word), 0) + 1
    vocabulary = learn_byte_level_bpe(counts, size=330, unused=2)
    assert len(vocabulary) == 330 and vocabulary.special_tokens == BERT_TOKENS
    again = learn_byte_level_bpe(dict(reversed(counts.items())), size=330, unused=2)
    assert again == vocabulary and again.counts.tolist() == vocabulary.counts.tolist()
    tokenizer = Tokenizer(vocabulary, lowercase=False)
    ids = tokenizer.tokenize(CORPUS).flat_values.numpy()
    assert np.bincount(ids, minlength=330).tolist() == vocabulary.counts.tolist()
    assert vocabulary.counts[5] == vocabulary.counts.max()  # by falling use
    tokenizer.save(tmp_path)
    texts = [text for text in HARD if "[MASK]" not in text]
    assert differing(tokenizer, opener(tmp_path), texts) == []
    with raises_input_error("of 200 tokens is too small: ... take 261"):
        learn_byte_level_bpe(counts, size=200)


def test_the_case_of_a_vocabulary_is_given(our_tokenizers):
    with pytest.raises(ValueError, match="`lowercase` must be False"):
        Tokenizer(our_tokenizers["gpt2"].vocabulary, lowercase=True)
    with pytest.raises(ValueError, match="`lowercase` must be True"):
        Tokenizer(our_tokenizers["openai-gpt"].vocabulary, lowercase=False)
    assert Tokenizer.from_vocab(our_tokenizers["gpt2"].vocabulary).lowercase is False


def test_names_of_tokens(our_tokenizers):
    vocabulary = our_tokenizers["gpt2"].vocabulary
    assert vocabulary.token_name(vocabulary.id("Ġthe")) == " the"
    assert vocabulary.token_text(vocabulary.id("Ġthe")) == "the"
    assert vocabulary.token_name(vocabulary.id("ð")) == "ð"  # a part of a character
    assert vocabulary.token_name(vocabulary.id("Ċ")) == "\n"
    assert vocabulary.token_name(vocabulary.id(END_OF_TEXT)) == END_OF_TEXT
    gpt = our_tokenizers["openai-gpt"].vocabulary
    assert gpt.token_name(gpt.id("the</w>")) == "the" and gpt.token_name(gpt.id("th")) == "th@@"


BYTES = {letter: id for id, letter in enumerate(LETTERS)}
GPT = {"<unk>": 0, "a": 1, "b": 2, "a</w>": 3, "b</w>": 4, "ab</w>": 5, "\n</w>": 6}


@pytest.mark.parametrize(
    ("vocab", "merges", "sentence"),
    [
        (BYTES, "a b\n", "merges.txt does not fit ...vocab.json. Merge 1, 'a' and 'b', needs"),
        (BYTES, "#version: 0.2\na\n", "merges.txt, line 2 must be two tokens and one space"),
        ({**BYTES, "ab": 256}, "a b\na b c\n", "merges.txt, line 2 must be two tokens"),
        ({**BYTES, "ab": 258}, "", "vocab.json must give every token an id, from 0 on"),
        (
            {"Ġa": 0, **{t: i for t, i in BYTES.items() if i and t not in "Ā"}},
            "",
            "vocab.json has no token for 1 of the bytes of UTF-8: 0x00 ('Ā').",
        ),
        ({"Ġ": 0, "a": 1}, "", "vocab.json has no token for 241 of the bytes of UTF-8: 0x00"),
        ({"Ġ": 0, "a": 0}, "", "vocab.json must give every token an id"),
        (GPT, "a b</w>\nb</w>\n", "merges.txt, line 2 must be two tokens"),
        (GPT, "a c</w>\n", "needs the token 'c</w>', which the vocabulary does not have"),
        ({"a</w>": 0}, "", "vocab.json has no special token `unk` for unknown characters"),
        ({"a": 0}, "", "vocab.json holds an unsupported kind of byte-pair encoding"),
    ],
)
def test_bad_files(tmp_path, vocab, merges, sentence):
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_text(merges)
    if merges == "":
        (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    with raises_input_error(f"{tmp_path}/...{sentence}"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"normalizer": {"type": "Prepend"}}, "normalizes texts by Prepend. Expected NFC, NFD"),
        ({"pre_tokenizer": {"type": "Metaspace"}}, "splits words by Metaspace with other"),
        ({"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}}, "with other settings than"),
        ({"model": {"ignore_merges": True}}, "asks for ignore_merges=True in its model"),
        ({"model": {"merges": [["a"]]}}, "merge 1 must be two tokens"),
        ({"added_tokens": [{"content": "<b>", "special": True}]}, "adds '<b>' to its special"),
        ({"added_tokens": [{"content": "<b>", "single_word": True}]}, "adds '<b>' as a whole word"),
    ],
)
def test_other_tokenizers_are_rejected(folders, tmp_path, changes, sentence):
    content = json.loads((folders["gpt2"] / "tokenizer.json").read_text(encoding="utf-8"))
    for token in changes.get("added_tokens", ()):
        token["id"] = len(content["model"]["vocab"])
    for key, value in changes.items():
        if isinstance(value, list):
            content[key] = [*content[key], *value]
        else:
            content[key] = {**content["model"], **value} if key == "model" else value
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END_OF_TEXT}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with raises_input_error(sentence):
        Tokenizer.from_folder(tmp_path)


def test_two_vocabularies_in_one_folder_are_rejected(folders, learned, tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folders["gpt2"] / name).read_bytes())
    vocab, merges = learned["gpt2"]
    write_pair(tmp_path, vocab, merges[:-1])
    with raises_input_error("merges.txt and tokenizer.json have other merges"):
        Tokenizer.from_folder(tmp_path)


def test_special_tokens_are_among_the_tokens():
    assert ByteLevelVocabulary([*SPECIAL_TOKENS, *LETTERS], []).unk_id == 1
