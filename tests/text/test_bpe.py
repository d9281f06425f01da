"""Byte-pair encoding: the textbook's merges, the definition of encoding, and the graph's."""

import json
import pickle
import random
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
import tokenizers

from keras_bert.text import Tokenizer
from keras_bert.text.learners import learn_bpe
from keras_bert.text.normalization import WordSplitter, normalize
from keras_bert.text.vocabularies.bpe import END_OF_WORD, BpeVocabulary
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, UNK
from keras_bert.text.vocabulary_files import load_vocabulary
from tests.messages import raises_input_error
from tests.peers import transformers
from tests.seeds import shifted

TEXTBOOK = {"low": 5, "lowest": 2, "newer": 6, "wider": 3, "new": 2}
LETTERS = 11  # of the textbook's corpus, the end-of-word mark among them


def marked(text):
    return text.replace("_", END_OF_WORD)


@pytest.fixture(scope="module")
def textbook():
    return learn_bpe(TEXTBOOK, size=len(SPECIAL_TOKENS) + LETTERS + 8)


@pytest.fixture(scope="module")
def learned(books, shared_data):
    """A vocabulary of 4,000 from one book."""
    return learn_bpe(books.counts(shared_data / "books" / "emma.txt"), size=4000)


def test_the_textbook_example(textbook):
    """Jurafsky and Martin, Speech and Language Processing, chapter 2."""
    expected = "e r,er _,n e,ne w,l o,lo w,new er_,low _"
    assert textbook.merges == tuple(tuple(marked(pair).split(" ")) for pair in expected.split(","))
    assert len(textbook) == len(SPECIAL_TOKENS) + LETTERS + 8


def test_the_textbook_example_whatever_the_order_of_the_words(textbook):
    items = list(TEXTBOOK.items())
    for seed in range(10):
        random.Random(shifted(seed)).shuffle(items)
        again = learn_bpe(dict(items), size=len(textbook))
        assert again == textbook and again.counts.tolist() == textbook.counts.tolist()


def test_the_textbook_example_is_encoded_as_the_textbook_says(textbook):
    assert textbook.encode_word("newer") == [marked("newer_")]
    assert textbook.encode_word("lower") == ["low", marked("er_")]
    assert textbook.encode_word("new") == ["new", END_OF_WORD]


def test_tokens_stand_by_falling_count_of_use(textbook):
    use = Counter()
    for word, count in TEXTBOOK.items():
        for token in textbook.encode_word(word):
            use[token] += count
    body = textbook.tokens[5:]
    assert list(body) == sorted(body, key=lambda token: (-use[token], token))
    assert textbook.counts.tolist() == [0] * 5 + [use[token] for token in body]


@pytest.mark.parametrize("alphabet_limit", [1000, 30])
def test_counts_are_those_of_encoding(books, shared_data, alphabet_limit):
    counts = books.counts(shared_data / "books" / "frankenstein.txt")
    vocabulary = learn_bpe(counts, size=2000, alphabet_limit=alphabet_limit)
    use = Counter()
    for word, count in counts.items():
        for token in vocabulary.encode_word(word):
            use[token] += count
    assert vocabulary.counts.tolist() == [use[token] for token in vocabulary.tokens]
    assert (use[UNK] > 0) == (alphabet_limit == 30)


def test_earlier_merges_go_first_and_the_leftmost_of_equals():
    tokens = [*SPECIAL_TOKENS, *"abc", END_OF_WORD, "bc", "ab", "aa"]
    vocabulary = BpeVocabulary(tokens, [("b", "c"), ("a", "b"), ("a", "a")])
    assert vocabulary.encode_word("abc") == ["a", "bc", END_OF_WORD]
    assert vocabulary.encode_word("abab") == ["ab", "ab", END_OF_WORD]
    assert vocabulary.encode_word("aaa") == ["aa", "a", END_OF_WORD]
    assert vocabulary.encode_word("aßb") == ["a", UNK, "b", END_OF_WORD]
    assert vocabulary.encode_word("a" * 201) == [UNK, END_OF_WORD]
    assert vocabulary.encode_word(END_OF_WORD) == [UNK, END_OF_WORD]


def test_the_graph_agrees_with_the_definition_on_random_words():
    rng = random.Random(shifted(0))
    words = {
        "".join(rng.choices("abc", k=rng.randint(1, 14))): rng.randint(1, 9) for _ in range(80)
    }
    vocabulary = learn_bpe(words, size=70)
    words = ["".join(rng.choices("abcé日", k=rng.randint(1, 30))) for _ in range(500)]
    words += ["a" * 200, "b" * 201, "c" * 5000, "ab" * 100]
    words = [word.replace("日", "ø") for word in words]
    tokenizer = Tokenizer.from_vocab(vocabulary, lowercase=False)
    expected = [[vocabulary.id(p) for p in vocabulary.encode_word(word)] for word in words]
    assert tokenizer.tokenize(words).to_list() == expected
    assert tokenizer.tokenize([" ".join(words)]).to_list() == [sum(expected, [])]
    assert tokenizer.tokenize(["", " "]).to_list() == [[], []]
    assert tokenizer.tokenize([]).to_list() == []


@pytest.mark.slow
def test_the_graph_agrees_with_the_definition_on_all_books(learned, books):
    tokenizer = Tokenizer.from_vocab(learned)
    numbers = {path: books.numbers(path) for path in books.paths}
    assert len(numbers) == 16 and sum(map(len, numbers.values())) > 4_000_000
    encoded = [[learned.id(p) for p in learned.encode_word(w.decode())] for w in books.words]
    encoded = tf.ragged.constant(encoded, dtype=tf.int32)
    for path, words in numbers.items():
        ids = tokenizer.tokenize(books.lines(path)).flat_values.numpy()
        expected = tf.gather(encoded, words).flat_values.numpy()
        np.testing.assert_array_equal(ids, expected, err_msg=path.name)


def test_offsets_and_word_starts(learned):
    tokenizer = Tokenizer.from_vocab(learned)
    texts = ["Émma W\u00adoodhouse,日 zzyzx!", "", "e\u0301\u0301x \x00$5", "x" * 300 + " y", "a‗b"]
    tokens = tokenizer.tokenize_with_offsets(texts)
    assert tokens.ids.to_list() == tokenizer.tokenize(texts).to_list()
    for text, *row in zip(texts, *(field.to_list() for field in tokens), strict=True):
        words, before = [], None
        for id, start, end, byte_start, byte_end, is_start in zip(*row, strict=True):
            token = learned.token(id)
            assert text.encode()[byte_start:byte_end].decode() == text[start:end]
            if token == END_OF_WORD:
                assert start == end == before
            elif token != UNK:
                normalized = normalize([text[start:end]], lowercase=True).numpy()[0].decode()
                assert normalized == token.removesuffix(END_OF_WORD)
            before = end
            if is_start:
                words.append("")
            words[-1] += text[start:end]
        split = WordSplitter().words(normalize([text], lowercase=True))
        assert [normalize([word], lowercase=True).numpy()[0] for word in words] == split
    ids = tokens.ids.to_list()[0]
    cls, sep = learned.cls_id, learned.sep_id
    starts = learned.word_starts(np.array([cls, *ids, sep, *ids[1:], sep]))
    inner = tokens.word_starts.to_list()[0]
    assert starts.tolist() == [True, *inner, True, True, *inner[2:], True]


def test_detokenize(learned):
    tokenizer = Tokenizer.from_vocab(learned)
    assert tokenizer.detokenize(tokenizer.tokenize(["Emma Woodhouse, zzyzx!"])[0]) == (
        "emma woodhouse , zzyzx !"
    )
    ids = [learned.id("a"), learned.sep_id, learned.id("a")]  # words cut off by truncation
    assert tokenizer.detokenize(ids) == "a [SEP] a"


def test_token_texts(textbook):
    texts = [textbook.token_text(textbook.id(marked(p))) for p in ("low_", "low", "_", "[MASK]")]
    assert texts == ["low", "low", "", "[MASK]"]


def test_a_token_alone_does_not_say_whether_it_continues_a_word(learned):
    assert not hasattr(learned, "continuations")


def test_a_folder_keeps_everything(textbook, tmp_path):
    tokenizer = Tokenizer.from_vocab(textbook, lowercase=False)
    tokenizer.save(tmp_path)
    again = Tokenizer.from_folder(tmp_path)
    assert again.vocabulary == textbook and again.lowercase is False
    assert again.vocabulary.merges == textbook.merges
    assert load_vocabulary(tmp_path) == textbook
    assert Tokenizer.from_vocab(tmp_path).vocabulary == textbook
    lines = (tmp_path / "merges.txt").read_text(encoding="utf-8").split("\n")
    assert lines[:3] == ["#version: 0.1", "e r", marked("er _")]
    assert json.loads((tmp_path / "vocab.json").read_text())["[PAD]"] == 0
    assert pickle.loads(pickle.dumps(tokenizer)).vocabulary == textbook


def test_hugging_face_lowers_a_final_sigma_as_we_do(tmp_path):
    """Python's lower case, and so the original BERT's, has ς at the end of a word."""
    letters = [token for letter in "αοδσς.'" for token in (letter, letter + END_OF_WORD)]
    merges = [(letter, END_OF_WORD) for letter in "αοδσς.'"]
    vocabulary = BpeVocabulary([*SPECIAL_TOKENS, END_OF_WORD, *letters], merges)
    tokenizer = Tokenizer.from_vocab(vocabulary, lowercase=True)
    tokenizer.save(tmp_path)
    their_tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = ["ΟΔΟΣ", "ΟΔΟΣ, ΣΑΣ", "Σ", "ΣΣ ΑΣ'Α Α'Σ", "Σ.Α.Σ.", "αΣ 1Σ", "Α\u0301Σ", "ΑΣ\u0301Α"]
    for text, ids in zip(texts, tokenizer.tokenize(texts).to_list(), strict=True):
        assert their_tokenizer.encode(text, add_special_tokens=False).ids == ids, text


def test_the_hash_tells_merges_apart(textbook):
    other = BpeVocabulary(textbook.tokens, textbook.merges[::-1])
    assert other.sha256 != textbook.sha256
    assert textbook.sha256 != WordPieceVocabulary(textbook.tokens).sha256


@pytest.mark.peers
def test_hugging_face_opens_a_saved_folder_with_the_same_ids(learned, shared_data, tmp_path):
    lines = (shared_data / "books" / "moby_dick_or_the_whale.txt").read_text(encoding="utf-8")
    texts = [line for line in lines.split("\n")[:3000] if line]
    texts += ["", "Straße, naïve — “quoted” (50%) don't 東京 ①", "a‗b ‗ $5.00", "zzyzx\u00adq\tx"]
    for lowercase in (True, False):
        tokenizer = Tokenizer.from_vocab(learned, lowercase)
        tokenizer.save(tmp_path / str(lowercase))
        their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / str(lowercase))
        assert (
            len(their_tokenizer) == len(learned)
            and their_tokenizer.mask_token_id == learned.mask_id
        )
        ids = their_tokenizer(texts, add_special_tokens=False)["input_ids"]
        for text, one, other in zip(texts, tokenizer.tokenize(texts).to_list(), ids, strict=True):
            assert one == other, text
    pair = their_tokenizer("low", "new")["input_ids"]
    assert pair[0] == learned.cls_id and pair.count(learned.sep_id) == 2


@pytest.mark.parametrize(
    "vocab, merges, sentence",
    [
        ('{"a": 0, "b</w": 1}', "a b\n", "an unsupported kind of byte-pair encoding"),
        ('{"[PAD]": 0, "‗": 1}', "a b\n", "has no [UNK]"),
        ('{"[PAD]": 0, "‗": 2}', "a b\n", "must give every token an id"),
        ('["‗"]', "a b\n", "an unsupported kind of byte-pair encoding"),
        ('{"‗": 0', "a b\n", "is not JSON"),
        (None, "a b\n", "Merge 1, 'a' and 'b', needs the token 'b'"),
        (None, "#version: 0.1\na\n", "line 2 must be two tokens"),
        (None, "#version: 0.1\na ‗\na ‗\n", "Merge 2, 'a' and '‗', is there twice"),
        (None, "a ‗\r\n", "line 1 has a Windows line end"),
    ],
)
def test_bad_folders_are_rejected(tmp_path, vocab, merges, sentence):
    if vocab is None:
        tokens = [*SPECIAL_TOKENS, "a", END_OF_WORD, "a" + END_OF_WORD]
        vocab = json.dumps({token: i for i, token in enumerate(tokens)})
    (tmp_path / "vocab.json").write_text(vocab)
    (tmp_path / "merges.txt").write_text(merges)
    with raises_input_error(f"{tmp_path}...{sentence}"):
        Tokenizer.from_folder(tmp_path)


def test_letters_of_byte_level_bpe_may_be_those_of_the_text(tmp_path):
    """Maltese has Ġ, which stands for a space in GPT-2's vocabularies: ours could not be opened."""
    learned = learn_bpe({"Ġgantija": 2, "Ħal": 1}, size=30)
    Tokenizer(learned, lowercase=False).save(tmp_path)
    assert Tokenizer.from_folder(tmp_path).vocabulary == learned


def test_a_size_without_room_for_the_alphabet_is_rejected():
    with raises_input_error("too small"):
        learn_bpe(TEXTBOOK, size=12)
