"""Encoding by merges in the graph, with the results of `BpeVocabulary.encode_word`."""

import numpy as np
import tensorflow as tf

from keras_bert.text.normalization import MAX_WORD_BYTES, characters, fast_wordpiece
from keras_bert.text.vocabulary import END_OF_WORD, MAX_WORD_LENGTH, UNK


class BytePairEncoding(tf.Module):
    """Tokens of normalized texts by the merges of a `BpeVocabulary`.

    Nearly every word of a text is one that the vocabulary has whole. TensorFlow Text's WordPiece
    finds those while it splits the text into words: its tokens are whole words here, and any other
    word is [UNK]. Those alone are encoded, each different one once, for the whole batch, merge by
    merge. There is no lookup table, which would have to be initialized where an export is loaded.
    """

    def __init__(self, vocabulary):
        super().__init__()
        self._unk_id = vocabulary.unk_id
        self._end_id = vocabulary.id(END_OF_WORD)
        self._size = len(vocabulary)
        words = sorted(
            token.removesuffix(END_OF_WORD)
            for token in vocabulary.tokens
            if token.endswith(END_OF_WORD) and token != END_OF_WORD
        )
        # The builder needs at least one token; U+0001 is in no normalized text.
        words.append("\x01")
        self._words = fast_wordpiece([UNK, *words], max_bytes=MAX_WORD_BYTES)
        rows = [[vocabulary.id(p) for p in vocabulary.encode_word(word)] for word in words]
        id = vocabulary.id
        merges = sorted(
            (id(left) * self._size + id(right), rank, id(left + right))
            for rank, (left, right) in enumerate(vocabulary.merges)
        )
        # A last one, larger than any, so that every search ends at an entry.
        merges.append((self._size**2, len(merges), 0))
        keys, ranks, made = np.array(merges, dtype=np.int64).T
        characters = sorted(
            (ord(token), id(token))
            for token in vocabulary.tokens
            if len(token) == 1 and token != END_OF_WORD
        )
        characters.append((0x110000, self._unk_id))
        points, character_ids = np.array(characters, dtype=np.int32).T
        with tf.init_scope():
            self._word_sequences = tf.ragged.constant(
                rows, dtype=tf.int32, row_splits_dtype=tf.int64
            )
            self._widths = tf.constant(
                [len(p.removesuffix(END_OF_WORD).encode("utf-8")) for p in vocabulary.tokens],
                dtype=tf.int64,
            )
            self._merge_keys = tf.constant(keys)
            self._merge_ranks = tf.constant(ranks)
            self._merge_makes = tf.constant(made, dtype=tf.int32)
            self._points = tf.constant(points)
            self._character_ids = tf.constant(character_ids)
            self._ends_word = tf.constant(vocabulary.ends_word)
        # Called eagerly, too, a graph runs: the loop over merges is many small steps.
        self._graph = tf.function(
            self._call, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
        )

    def __call__(self, texts):
        """string (B,) -> ids (int32), starts, ends (int64, bytes of `texts`): ragged (B, None).

        A token that is END_OF_WORD alone is empty, at the end of its word.
        """
        return self._graph(texts)

    def _call(self, texts):
        words, starts, ends = self._words.tokenize_with_offsets(texts)
        splits = words.row_splits
        which = tf.cast(words.values, tf.int64) - 1  # (W,) -1: not among the whole words
        missing = tf.where(which < 0)[:, 0]  # (M,)
        found = characters(texts)
        base = tf.gather(found.text_positions, tf.gather(words.value_rowids(), missing))
        first, last = (
            tf.searchsorted(found.positions, base + tf.gather(edges.values, missing))
            for edges in (starts, ends)
        )
        points = tf.ragged.range(first, last, row_splits_dtype=tf.int64)
        points = points.with_values(tf.gather(found.points, points.values))
        unique, back = tf.unique(tf.strings.unicode_encode(points, "UTF-8"), out_idx=tf.int64)
        ids, widths = self._encode(unique)  # ragged (U, None)
        known = self._word_sequences
        which = tf.tensor_scatter_nd_update(which, missing[:, None], known.nrows() + back)
        ids = tf.gather(tf.concat([known, ids], axis=0), which)  # ragged (W, None)
        known_widths = known.with_values(tf.gather(self._widths, known.values))
        widths = tf.gather(tf.concat([known_widths, widths], axis=0), which)
        after = tf.cumsum(widths.values)  # (T,) counted from the first word of the batch
        first = tf.gather(starts.values, ids.value_rowids())
        before_word = tf.concat([[0], after], axis=0)
        before_word = tf.gather(tf.gather(before_word, ids.row_splits[:-1]), ids.value_rowids())
        token_ends = first + after - before_word
        token_splits = tf.gather(ids.row_splits, splits)
        return tuple(
            tf.RaggedTensor.from_row_splits(values, token_splits, validate=False)
            for values in (ids.values, token_ends - widths.values, token_ends)
        )

    def word_starts(self, ids):
        """ragged ids (B, None) -> ragged bool (B, None)."""
        before = tf.concat([[True], tf.gather(self._ends_word, ids.values)[:-1]], axis=0)
        # Every text ends with the end of a word, so that the next one needs no rule of its own.
        return ids.with_values(before[: tf.size(ids.values)])

    def _encode(self, words):
        """string (U,) -> ids int32, widths in bytes int64: ragged (U, None)."""
        points = tf.strings.unicode_decode(words, "UTF-8")
        count = points.nrows()
        lengths = points.row_lengths()
        short = lengths <= MAX_WORD_LENGTH
        bytes_of = points.with_values(_utf8_width(points.values))
        # A long word is one unknown character of the word's length, and the mark.
        total = tf.reduce_sum(bytes_of, axis=1)
        keep = short[:, None] | (tf.ragged.range(lengths) < 1)
        points = tf.ragged.boolean_mask(points, keep)
        rows = points.value_rowids()
        short = tf.gather(short, rows)
        widths = tf.where(
            short, tf.ragged.boolean_mask(bytes_of, keep).values, tf.gather(total, rows)
        )
        position = tf.searchsorted(self._points, points.values)
        is_token = short & (tf.gather(self._points, position) == points.values)
        ids = tf.where(is_token, tf.gather(self._character_ids, position), self._unk_id)
        state = tuple(
            tf.concat([points.with_values(values), tf.fill([count, 1], last)], axis=1)
            for values, last in ((ids, self._end_id), (widths, tf.constant(0, tf.int64)))
        )
        state = (state[0].values, state[1].values, state[0].value_rowids())
        flat = tf.TensorShape([None])
        _, done = tf.while_loop(
            lambda state, done: tf.size(state[0]) > 0,
            lambda state, done: self._merge_once(state, done, count),
            (state, tuple(values[:0] for values in state)),
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
                tf.scatter_nd(to, values, tf.shape(values, out_type=tf.int64)),
                lengths,
                validate=False,
            )
            for values in (ids, widths)
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
        score = tf.gather(self._merge_ranks, positions) * size + at
        words, word = tf.unique(tf.gather(rows, at), out_idx=tf.int64)  # words (D,), word (P,)
        best = tf.math.segment_min(score, word)
        chosen = tf.equal(score, tf.gather(best, word))
        left = tf.boolean_mask(at, chosen)  # (D,)
        made = tf.gather(self._merge_makes, tf.boolean_mask(positions, chosen))
        widths = tf.tensor_scatter_nd_add(widths, left[:, None], tf.gather(widths, left + 1))
        ids = tf.tensor_scatter_nd_update(ids, left[:, None], made)
        gone = tf.scatter_nd(left[:, None] + 1, tf.ones_like(left, tf.bool), [size])
        # A word without a merge is finished.
        has_merge = tf.scatter_nd(words[:, None], tf.ones_like(words, tf.bool), [count])
        active = tf.gather(has_merge, rows)
        keep = active & ~gone
        state = tuple(tf.boolean_mask(values, keep) for values in (ids, widths, rows))
        finished = (tf.boolean_mask(values, ~active) for values in (ids, widths, rows))
        done = tuple(tf.concat(pair, axis=0) for pair in zip(done, finished, strict=True))
        return state, done


def _utf8_width(points):
    """How many bytes code points take in UTF-8: int32 (C,) -> int64 (C,)."""
    steps = [tf.cast(points >= least, tf.int64) for least in (0x80, 0x800, 0x10000)]
    return 1 + tf.add_n(steps)
