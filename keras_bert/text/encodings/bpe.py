"""Byte-pair encoding in the graph, with the results of `encode_word` of a vocabulary."""

import abc

import numpy as np
import tensorflow as tf

from keras_bert.text.encodings.encoding import Encoding
from keras_bert.text.normalization import (
    MAX_WORD_BYTES,
    characters,
    fast_wordpiece,
    normalize,
    normalize_for_gpt,
    utf8_width,
)
from keras_bert.text.ragged import row_ids, select
from keras_bert.text.vocabularies.bpe import END_OF_WORD, GPT_END_OF_WORD
from keras_bert.text.vocabulary import MAX_WORD_LENGTH, UNK


class Merging(Encoding):
    """Tokens of texts by the merges of a vocabulary. Subclasses say what words and symbols are.

    Args:
        vocabulary: a `BpeVocabulary`, or one of its subclasses.
        symbols: number of a symbol with which words begin (see `_symbols`) -> its token.
        widths: how many bytes of a text each token takes.
        lowercase: as in `normalize`.
    """

    def __init__(self, vocabulary, *, symbols, widths, lowercase):
        super().__init__()
        self._lowercase = lowercase
        self._size = len(vocabulary)
        self._unk_id = vocabulary.unk_id
        id = vocabulary.id
        merges = sorted(
            (id(left) * self._size + id(right), rank, id(left + right))
            for rank, (left, right) in enumerate(vocabulary.merges)
        )
        # A last one, larger than any, so that every search ends at an entry.
        merges.append((self._size**2, len(merges), 0))
        keys, ranks, made = np.array(merges, dtype=np.int64).T
        numbers = sorted((number, id(token)) for number, token in symbols.items())
        numbers.append((np.iinfo(np.int32).max, self._unk_id))
        numbers, number_ids = np.array(numbers, dtype=np.int32).T
        with tf.init_scope():
            self._widths = tf.constant(widths, dtype=tf.int64)
            self._merge_keys = tf.constant(keys)
            self._merge_ranks = tf.constant(ranks)
            self._merge_makes = tf.constant(made, dtype=tf.int32)
            self._makes_later = tf.constant(_makes_later(vocabulary.merges))
            self._numbers = tf.constant(numbers)
            self._number_ids = tf.constant(number_ids)
        # Called eagerly, too, a graph runs: the loop over merges is many small steps.
        signature = [tf.TensorSpec([None], tf.string)]
        self._graph = tf.function(self._call, input_signature=signature, autograph=False)
        self._ids_graph = tf.function(
            lambda texts: self._call(texts)[0], input_signature=signature, autograph=False
        )

    def normalize(self, texts):
        return normalize(texts, lowercase=self._lowercase)

    def tokenize(self, texts):
        return self._ids_graph(texts)

    def tokenize_with_offsets(self, texts):
        return self._graph(texts)

    @abc.abstractmethod
    def _call(self, texts):
        """The result of `tokenize_with_offsets`."""

    @abc.abstractmethod
    def _symbols(self, words):
        """Returns first symbols of words (U,), and their widths in bytes: ragged int64 (U, None).

        Symbols are numbers as the constructor has them; others are unknown.
        """

    def _encode(self, words):
        """string (U,) -> ids int32, widths in bytes int64: ragged (U, None)."""
        symbols, widths = self._symbols(words)
        count = symbols.nrows()
        numbers = tf.cast(symbols.values, tf.int32)
        position = tf.searchsorted(self._numbers, numbers)
        has_number = tf.gather(self._numbers, position) == numbers
        ids = tf.where(has_number, tf.gather(self._number_ids, position), self._unk_id)
        state = (ids, widths.values, row_ids(symbols))
        flat = tf.TensorShape([None])
        _, done = tf.while_loop(
            lambda state, done: tf.size(state[0]) > 0,
            lambda state, done: self._merge_once(state, done, count),
            (state, tuple(part[:0] for part in state)),
            shape_invariants=((flat, flat, flat), (flat, flat, flat)),
        )
        # Words were finished in any order, but the tokens of each are adjacent.
        ids, widths, rows = done
        numbers = tf.range(tf.size(rows, out_type=tf.int64))
        first = tf.math.unsorted_segment_min(numbers, rows, count)
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, count)
        shift = tf.cumsum(lengths, exclusive=True) - first
        to = (numbers + tf.gather(shift, rows))[:, None]
        return tuple(
            tf.RaggedTensor.from_row_lengths(
                tf.scatter_nd(to, items, tf.shape(items, out_type=tf.int64)),
                lengths,
                validate=False,
            )
            for items in (ids, widths)
        )

    def _merge_once(self, state, done, count):
        """Merges the first pair of every word (of `count`) that has one; moves others to `done`."""
        ids, widths, rows = state  # (T,) each, the symbols of a word adjacent
        size = tf.size(ids, out_type=tf.int64)
        keys = tf.cast(ids[:-1], tf.int64) * self._size + tf.cast(ids[1:], tf.int64)
        position = tf.searchsorted(self._merge_keys, keys)
        possible = (tf.gather(self._merge_keys, position) == keys) & (rows[:-1] == rows[1:])
        at = tf.where(possible)[:, 0]  # (P,) the left symbols of the pairs that can be merged
        positions = tf.gather(position, at)
        # The lowest rank of each word and, of several, the leftmost position, as one number.
        ranks = tf.gather(self._merge_ranks, positions)
        score = ranks * size + at
        words, word = tf.unique(tf.gather(rows, at), out_idx=tf.int64)  # words (D,), word (P,)
        best = tf.gather(tf.math.segment_min(score, word), word)
        chosen = (score == best) | self._chosen_too(at, ranks, best // size)
        left = tf.boolean_mask(at, chosen)  # (D + more,)
        made = tf.gather(self._merge_makes, tf.boolean_mask(positions, chosen))
        widths = tf.tensor_scatter_nd_add(widths, left[:, None], tf.gather(widths, left + 1))
        ids = tf.tensor_scatter_nd_update(ids, left[:, None], made)
        gone = tf.scatter_nd(left[:, None] + 1, tf.ones_like(left, tf.bool), [size])
        # A word without a merge is finished.
        has_merge = tf.scatter_nd(words[:, None], tf.ones_like(words, tf.bool), [count])
        active = tf.gather(has_merge, rows)
        keep = active & ~gone
        state = tuple(tf.boolean_mask(items, keep) for items in (ids, widths, rows))
        finished = (tf.boolean_mask(items, ~active) for items in (ids, widths, rows))
        done = tuple(tf.concat(pair, axis=0) for pair in zip(done, finished, strict=True))
        return state, done

    def _chosen_too(self, at, ranks, best):
        """Which pairs, (P,) as in `_merge_once`, are merged with the leftmost of their word's best
        rank: those of the same rank, if what they make is in later merges alone.

        In "aaaa" these are the first pair and the third. Without them a long line of hyphens would
        take as many steps as it has merges.
        """
        same = (ranks == best) & tf.gather(self._makes_later, ranks)
        previous = tf.concat([same[:1] & False, same[:-1] & (at[1:] == at[:-1] + 1)], axis=0)
        run_starts = same & ~previous  # of pairs that overlap
        run = tf.cumsum(tf.cast(run_starts, tf.int64))
        first = tf.gather(tf.concat([[0], tf.boolean_mask(at, run_starts)], axis=0), run)
        return same & ((at - first) % 2 == 0)


def _makes_later(merges):
    """Returns for each merge whether only later merges use its result: bool (R + 1,)."""
    first_use = {}
    for rank, pair in enumerate(merges):
        for part in pair:
            first_use.setdefault(part, rank)
    later = [first_use.get(left + right, rank) >= rank for rank, (left, right) in enumerate(merges)]
    return np.array([*later, False], dtype=np.bool_)


class _OverWords(Merging):
    """Merges in BERT's words.

    Nearly every word of a text is one that the vocabulary has whole. TensorFlow Text's WordPiece
    finds those while it splits the text into words: its tokens are whole words here, and any other
    word is [UNK]. Those alone are encoded, each different one once, for the whole batch, merge by
    merge.
    """

    def __init__(self, vocabulary, *, symbols, lowercase):
        mark = vocabulary.END_OF_WORD
        widths = [len(token.removesuffix(mark).encode("utf-8")) for token in vocabulary.tokens]
        super().__init__(vocabulary, symbols=symbols, widths=widths, lowercase=lowercase)
        words = {p.removesuffix(mark) for p in vocabulary.tokens if p.endswith(mark)}
        # BERT splits all others. (The builder would not take an empty one.)
        words = sorted(word for word in words if len(word) == 1 or word.isalnum())
        # The builder needs at least one token; U+0001 is in no normalized text.
        words.append("\x01")
        self._words = fast_wordpiece([UNK, *words], max_bytes=MAX_WORD_BYTES)
        rows = [[vocabulary.id(p) for p in vocabulary.encode_word(word)] for word in words]
        with tf.init_scope():
            self._word_sequences = tf.ragged.constant(
                rows, dtype=tf.int32, row_splits_dtype=tf.int64
            )

    def _call(self, texts):
        words, starts, ends = self._words.tokenize_with_offsets(texts)
        which = tf.cast(words.values, tf.int64) - 1  # (W,) -1: not among the whole words
        missing = tf.where(which < 0)[:, 0]  # (M,)
        letters = characters(texts)
        base = tf.gather(letters.text_positions, tf.gather(row_ids(words), missing))
        first, last = (
            tf.searchsorted(letters.positions, base + tf.gather(edges.values, missing))
            for edges in (starts, ends)
        )
        points = tf.ragged.range(first, last, row_splits_dtype=tf.int64)
        points = points.with_values(tf.gather(letters.points, points.values))
        unique, back = tf.unique(tf.strings.unicode_encode(points, "UTF-8"), out_idx=tf.int64)
        ids, widths = self._encode(unique)  # ragged (U, None)
        whole_words = self._word_sequences
        which = tf.tensor_scatter_nd_update(which, missing[:, None], whole_words.nrows() + back)
        ids = tf.gather(tf.concat([whole_words, ids], axis=0), which)  # ragged (W, None)
        whole_word_widths = whole_words.with_values(tf.gather(self._widths, whole_words.values))
        widths = tf.gather(tf.concat([whole_word_widths, widths], axis=0), which)
        after = tf.cumsum(widths.values)  # (T,) counted from the first word of the batch
        first = tf.gather(starts.values, row_ids(ids))
        before_word = tf.gather(tf.concat([[0], after], axis=0), ids.row_splits[:-1])
        token_ends = first + after - tf.gather(before_word, row_ids(ids))
        begins = tf.ragged.range(ids.row_lengths()).values == 0
        token_splits = tf.gather(ids.row_splits, words.row_splits)
        return tuple(
            tf.RaggedTensor.from_row_splits(items, token_splits, validate=False)
            for items in (ids.values, token_ends - widths.values, token_ends, begins)
        )


class BytePairEncoding(_OverWords):
    """The encoding of a `BpeVocabulary`. A token that is END_OF_WORD alone is empty."""

    def __init__(self, vocabulary, *, lowercase):
        self._end = ord(END_OF_WORD)
        symbols = {ord(token): token for token in vocabulary.tokens if len(token) == 1}
        super().__init__(vocabulary, symbols=symbols, lowercase=lowercase)

    def _symbols(self, words):
        points = tf.strings.unicode_decode(words, "UTF-8")
        lengths = points.row_lengths()
        # In a text the mark is unknown.
        numbers = tf.where(points.values == self._end, _UNKNOWN, points.values)
        widths = points.with_values(utf8_width(points.values))
        # A long word is one unknown character of the word's length, and the mark.
        short = lengths <= MAX_WORD_LENGTH
        total = tf.reduce_sum(widths, axis=1)
        keep = tf.repeat(short, lengths) | (tf.ragged.range(lengths).values < 1)
        points, widths = (select(points.with_values(v), keep) for v in (numbers, widths.values))
        rows = row_ids(points)
        short = tf.gather(short, rows)
        points = points.with_values(tf.where(short, points.values, _UNKNOWN))
        widths = widths.with_values(tf.where(short, widths.values, tf.gather(total, rows)))
        last = tf.ones([points.nrows(), 1], tf.int32)
        return (
            tf.concat([points, last * self._end], axis=1),
            tf.concat([widths, tf.cast(last * 0, tf.int64)], axis=1),
        )


_UNKNOWN = -1
_LAST = 0x200000  # is added to a character that ends a word; larger than any


class GptEncoding(_OverWords):
    """The encoding of a `GptVocabulary`."""

    def __init__(self, vocabulary, *, lowercase):
        symbols = {ord(token): token for token in vocabulary.tokens if len(token) == 1}
        for token in vocabulary.tokens:
            if len(token) == 1 + len(GPT_END_OF_WORD) and token.endswith(GPT_END_OF_WORD):
                symbols[ord(token[0]) + _LAST] = token
        super().__init__(vocabulary, symbols=symbols, lowercase=lowercase)

    def normalize(self, texts):
        return normalize_for_gpt(texts)

    def _symbols(self, words):
        points = tf.strings.unicode_decode(words, "UTF-8")
        lasts = tf.fill(tf.shape(words), _LAST)
        at = points.row_splits[1:, None] - 1
        symbols = tf.tensor_scatter_nd_add(points.values, at, lasts)
        return points.with_values(symbols), points.with_values(utf8_width(points.values))
