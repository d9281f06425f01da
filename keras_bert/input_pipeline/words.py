"""Words and their tokens: which tokens of a row are which word, and rows for texts of any length.

Core TensorFlow operations only, besides the tokenizer: what is made of labelled files and what an
exported model makes of strings are the same rows. Legend of shapes: E texts, W words of a text, T
tokens of a text, R rows.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

# Words that are tokenized at once: the graph's cost a call is spread over them.
_TOKENIZED_TOGETHER = 4000


class TokenizedWords(NamedTuple):
    """The tokens of texts, and which of them begin a word.

    ids: ragged int32 (E, T), without special tokens.
    firsts: ragged int32 (E, W), the number of each word's first token; its last one is that before
        the next word's first.
    """

    ids: tf.RaggedTensor
    firsts: tf.RaggedTensor


class WordRows(NamedTuple):
    """Rows of whole words, of which a long text has several that overlap.

    Every word is owned by one row: the one where it has much context on both sides. A row holds all
    words from `first` to before `end` of its text and owns those from `owned` to before
    `owned_end`; (R,) int32 all, as is `text`, the number of the text.

    ids: ragged int32 (R, None), its tokens without special ones.
    starts, ends: ragged int32 (R, None), for each word of the row the place of its first token and
        the place after its last one, where a [CLS] stands before the tokens.
    """

    text: tf.Tensor
    first: tf.Tensor
    end: tf.Tensor
    owned: tf.Tensor
    owned_end: tf.Tensor
    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


def words_given(texts, tokenizer):
    """`TokenizedWords` of lists of words; a word that has no token of its own is [UNK]."""
    flat = [word for words in texts for word in words]
    unique, which = np.unique(np.array(flat, object), return_inverse=True) if flat else ([], [])
    parts = [
        tokenizer.tokenize(list(unique[start : start + _TOKENIZED_TOGETHER]))
        for start in range(0, len(unique), _TOKENIZED_TOGETHER)
    ] or [tokenizer.tokenize([])]
    pieces = tf.concat(parts, axis=0)  # ragged (unique words, None)
    unknown = tf.fill([pieces.nrows(), 1], tf.constant(tokenizer.vocabulary.unk_id, tf.int32))
    none = pieces.row_lengths() == 0
    pieces = tf.concat([pieces, tf.ragged.boolean_mask(unknown, none[:, None])], axis=1)
    pieces = tf.gather(pieces, tf.constant(which, tf.int32))  # ragged (words, None)
    counts = tf.constant([len(words) for words in texts], tf.int64)
    words = tf.RaggedTensor.from_row_lengths(pieces, counts)  # ragged (E, W, None)
    ids = words.merge_dims(1, 2)
    first_of_all = tf.RaggedTensor.from_row_lengths(pieces.row_starts(), counts)
    firsts = tf.cast(first_of_all - ids.row_starts()[:, None], tf.int32)
    return TokenizedWords(ids, firsts)


def words_of_texts(texts, tokenizer):
    """The words that a tokenizer parts strings into, in a graph, too.

    They are what white space parts, and every punctuation mark by itself; what the tokenizer drops
    (control characters) is part of none.

    Args:
        texts: a list of strings, or string (E,).
        tokenizer: a `Tokenizer`.

    Returns:
        `TokenizedWords`, and for each word its first character in the text and the one after it:
        two ragged int32 (E, W).
    """
    tokens = tokenizer.tokenize_with_offsets(texts)
    positions = tf.ragged.range(tf.cast(tokens.ids.row_lengths(), tf.int32))
    begins = tokens.word_starts
    # A word ends where its last token does: the one before the next word's first.
    last = tf.concat([begins[:, 1:], tf.ones_like(begins[:, :1])], axis=1)
    firsts = tf.ragged.boolean_mask(positions, begins)
    starts = tf.ragged.boolean_mask(tokens.starts, begins)
    ends = tf.ragged.boolean_mask(tokens.ends, last)
    return TokenizedWords(tokens.ids, firsts), starts, ends


def word_rows(tokenized, *, max_length):
    """Rows of up to `max_length` tokens, [CLS] and [SEP] counted in, of whole words.

    A text that is longer has several rows, in which half of the tokens are also in the row before:
    a word has at least about a quarter of a row as context on each side, as far as the text goes.
    Of a word of more tokens than that quarter, only the first ones are kept.

    Args:
        tokenized: `TokenizedWords`.
        max_length: at least 3.

    Returns:
        `WordRows`, text by text and from front to back; a text without words has one row.
    """
    room = max_length - 2
    overlap = room // 2
    context = overlap // 2
    tokenized = _with_short_words(tokenized, most=max(1, context))
    tokens = tf.cast(tokenized.ids.row_lengths(), tf.int32)  # (E,)
    stride = room - overlap
    counts = 1 + -(-tf.maximum(tokens - room, 0) // stride)  # (E,) rows of each text
    text = tf.repeat(tf.range(tf.size(counts)), counts)  # (R,)
    number = tf.ragged.range(counts).flat_values  # (R,), of the row in its text
    is_first, is_last = number == 0, number == tf.gather(counts, text) - 1

    # Words are found by the place of their first token among those of all texts, which grows.
    splits = tf.cast(tokenized.ids.row_splits, tf.int32)
    word_splits = tf.cast(tokenized.firsts.row_splits, tf.int32)
    text_of_word = tf.cast(tokenized.firsts.value_rowids(), tf.int32)
    starts = tokenized.firsts.flat_values + tf.gather(splits, text_of_word)  # (words,)
    edges = tf.concat([starts, splits[-1:]], axis=0)  # where each word begins and the last one ends
    text_start = tf.gather(splits, text)  # (R,)
    low, high = tf.gather(word_splits, text), tf.gather(word_splits, text + 1)  # words of the text

    def word_at(token):
        """The first word that begins at a token of the row's text or after it."""
        found = tf.searchsorted(starts, text_start + token, out_type=tf.int32)
        return tf.clip_by_value(found, low, high)

    begin = number * stride
    first = word_at(begin)
    # The last edge that is not beyond the row's room: words whose end it is are whole.
    end = tf.searchsorted(edges, text_start + begin + room, side="right", out_type=tf.int32) - 1
    end = tf.clip_by_value(end, low, high)
    owned = tf.where(is_first, low, word_at(begin + context))
    owned_end = tf.where(is_last, high, word_at(begin + stride + context))

    token, after = tf.gather(edges, first), tf.gather(edges, end)  # (R,) the tokens of the row
    after = tf.where(low == high, text_start, after)
    token = tf.where(low == high, text_start, token)
    ids = tf.gather(tokenized.ids.flat_values, tf.ragged.range(token, after))
    words = tf.ragged.range(first, end)
    shift = 1 - token[:, None]
    return WordRows(
        text,
        first - low,
        end - low,
        owned - low,
        owned_end - low,
        ids,
        tf.gather(edges, words) + shift,
        tf.gather(edges, words + 1) + shift,
    )


def _with_short_words(tokenized, *, most):
    """The same words, of which no one has more than `most` tokens."""
    rows = tf.cast(tokenized.firsts.value_rowids(), tf.int32)
    splits = tf.cast(tokenized.ids.row_splits, tf.int32)
    starts = tokenized.firsts.flat_values + tf.gather(splits, rows)
    lengths = tf.concat([starts[1:], splits[-1:]], axis=0) - starts  # (words,)
    place = tf.ragged.range(lengths).flat_values  # (tokens,), of each in its word
    kept = tf.minimum(lengths, most)
    words = tokenized.firsts.with_values(kept)
    ids = tf.boolean_mask(tokenized.ids.flat_values, place < most)
    firsts = tf.cumsum(kept, exclusive=True)
    counts = tf.reduce_sum(words, axis=1)  # (E,)
    before = tf.cumsum(counts, exclusive=True)
    return TokenizedWords(
        tf.RaggedTensor.from_row_lengths(ids, counts),
        tokenized.firsts.with_values(firsts - tf.gather(before, rows)),
    )
