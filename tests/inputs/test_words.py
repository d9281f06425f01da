"""Words of texts, and the rows that long texts are parted into, by loops over them."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.inputs.words import sequences_around, word_sequences, words_given, words_of_texts
from keras_bert.text.template import BERT_TEMPLATE
from tests.seeds import make_rng
from tests.small_model import make_tokenizer

RNG = make_rng(2)


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["the", "bank", "of"])


def tokens(tokenizer, tokenized, text):
    """The pieces of each word of a text."""
    ids = tokenized.ids[text].numpy()
    parts = np.split(ids, tokenized.firsts[text].numpy()[1:])
    return [[tokenizer.vocabulary.tokens[id] for id in part] for part in parts]


def test_given_words_are_tokenized_one_by_one(tokenizer):
    texts = [["the", "x-y"], [], ["\u200b", "bank", "the"]]
    tokenized = words_given(texts, tokenizer)
    assert tokens(tokenizer, tokenized, 0) == [["the"], ["x", "-", "y"]]
    assert tokenized.ids[1].shape == tokenized.firsts[1].shape == (0,)
    assert tokens(tokenizer, tokenized, 2) == [["[UNK]"], ["bank"], ["the"]]
    empty = words_given([], tokenizer)
    assert empty.ids.shape[0] == empty.firsts.shape[0] == 0


def test_strings_are_split_as_the_tokenizer_does(tokenizer):
    texts = ["The  Bänk (of Xy).", "", " \u200b "]
    tokenized, starts, ends = words_of_texts(texts, tokenizer)
    words = [texts[0][s:e] for s, e in zip(starts[0].numpy(), ends[0].numpy(), strict=True)]
    assert words == ["The", "Bänk", "(", "of", "Xy", ")", "."]
    assert tokens(tokenizer, tokenized, 0)[3:5] == [["of"], ["x", "##y"]]
    assert tokenized.firsts[1].shape == tokenized.firsts[2].shape == (0,)


@pytest.mark.parametrize("max_length", [3, 4, 9, 18, 40])
def test_rows_hold_whole_words_and_fraction_them_out(max_length):
    lengths = [RNG.integers(1, 4, size) for size in (0, 1, 7, 60, 0, 33)]
    lengths[3][5] = 50  # longer than any row
    texts = [["a" * length for length in words] for words in lengths]
    tokenizer = make_tokenizer()
    tokenized = words_given(texts, tokenizer)
    sequences = word_sequences(tokenized, template=BERT_TEMPLATE, max_length=max_length)
    ids_of, starts_of, ends_of = (column.to_list() for column in sequences[5:])
    quarter = max(1, (max_length - 2) // 2 // 2)
    by_text = {}
    for row, where in enumerate(
        zip(*(column.numpy().tolist() for column in sequences[:5]), strict=True)
    ):
        text, first, end, owned, owned_end = where
        assert first <= owned <= owned_end <= end
        ids = ids_of[row]
        assert len(ids) <= max_length - 2
        parts = [ids[s - 1 : e - 1] for s, e in zip(starts_of[row], ends_of[row], strict=True)]
        words = tokens(tokenizer, tokenized, text) if len(lengths[text]) else []
        sizes = [min(len(word), quarter) for word in words]
        assert [len(part) for part in parts] == sizes[first:end]
        assert sum(map(len, parts)) == len(ids)
        if text == 5:  # whose words have 3 tokens at most, so much may be missing at an edge
            before = sum(map(len, parts[: owned - first]))
            after = sum(map(len, parts[owned_end - 1 - first :]))
            assert first == 0 or before >= quarter - 3
            assert end == len(words) or after >= quarter - 3
        by_text.setdefault(text, []).extend(range(owned, owned_end))
    assert by_text == {text: list(range(len(words))) for text, words in enumerate(lengths)}
    if max_length == 40:
        counts = np.bincount(sequences.text).tolist()
        assert counts[2] == 1 and counts[3] > 2


def test_rows_around_words_are_full_and_hold_them_in_their_middle():
    lengths = [1, 3, 2, 1, 1, 2, 3, 1, 1, 1, 2, 2]
    texts = [["a" * length for length in lengths]] * 5 + [["a", "a"]]
    low, high = [0, 4, 11, 5, 1, 0], [1, 5, 12, 9, 12, 2]
    tokenized = words_given(texts, make_tokenizer())
    # Rows of 8 tokens, in which a word has one.
    options = {"template": BERT_TEMPLATE, "max_length": 10}
    sequences, missing = sequences_around(tokenized, tf.constant(low), tf.constant(high), **options)
    where = list(zip(sequences.first.numpy().tolist(), sequences.end.numpy().tolist(), strict=True))
    assert where == [(0, 8), (1, 9), (4, 12), (3, 11), (1, 9), (0, 2)]
    assert missing.numpy().tolist() == [0, 0, 0, 0, 3, 0]
    assert sequences.ids.row_lengths().numpy().tolist() == [8, 8, 8, 8, 8, 2]
    assert sequences.starts[5].numpy().tolist() == [1, 2] and sequences.ends[
        5
    ].numpy().tolist() == [2, 3]


def test_strings_become_the_same_rows_in_a_graph(tokenizer):
    texts = ["the bank of xyz. " * 5, "", "of"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def in_graph(texts):
        return word_sequences(
            words_of_texts(texts, tokenizer)[0], template=BERT_TEMPLATE, max_length=14
        )

    eagerly = word_sequences(
        words_of_texts(texts, tokenizer)[0], template=BERT_TEMPLATE, max_length=14
    )
    for actual, expected in zip(in_graph(tf.constant(texts)), eagerly, strict=True):
        actual, expected = (
            x.to_tensor() if isinstance(x, tf.RaggedTensor) else x for x in (actual, expected)
        )
        np.testing.assert_array_equal(actual, expected)
    words = [text.replace(".", " .").split() for text in texts]
    again = word_sequences(words_given(words, tokenizer), template=BERT_TEMPLATE, max_length=14)
    np.testing.assert_array_equal(again.ids.to_tensor(), eagerly.ids.to_tensor())
