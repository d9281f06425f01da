"""Encoding by merges in the graph, with the results of `encode_word` of a vocabulary."""

import abc

import numpy as np
import tensorflow as tf

from keras_bert.text.gpt_vocabularies import GPT_END_OF_WORD, LETTERS, WHITE_SPACE
from keras_bert.text.normalization import (
    MAX_WORD_BYTES,
    characters,
    fast_wordpiece,
    normalize,
    normalize_for_gpt,
    utf8_width,
    valid_utf8,
)
from keras_bert.text.ragged import row_ids, select
from keras_bert.text.vocabulary import END_OF_WORD, MAX_WORD_LENGTH, UNK


class Merging(tf.Module, abc.ABC):
    """Tokens of texts by the merges of a vocabulary. Subclasses say what words and symbols are.

    There is no lookup table, which would have to be initialized where an export is loaded.

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
        """The texts in which words are looked for. string (B,) -> string (B,)"""
        return normalize(texts, lowercase=self._lowercase)

    def tokenize(self, texts):
        """Normalized texts, string (B,) -> ids, ragged int32 (B, None)."""
        return self._ids_graph(texts)

    def tokenize_with_offsets(self, texts):
        """Normalized texts (B,) -> ids (int32), starts, ends (int64, bytes of `texts`), and where
        words begin (bool): ragged (B, None).

        An empty token is where the one before it ends.
        """
        return self._graph(texts)

    @abc.abstractmethod
    def _call(self, texts):
        """What `tokenize_with_offsets` returns."""

    @abc.abstractmethod
    def _symbols(self, words):
        """What words begin with: string (U,) -> symbols, widths in bytes: ragged int64 (U, None).

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
        rank: those of the same rank, where what they make is in later merges alone.

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
    """Of each merge, whether its result is a part of later merges alone: bool (R + 1,)."""
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


_SPACE = "".join(rf"\x{{{ord(character):x}}}" for character in WHITE_SPACE)
# Letters and numbers with those of Unicode 16, which RE2's tables do not have yet.
_LETTER = (
    r"\p{L}\x{1c89}\x{1c8a}\x{a7cb}-\x{a7cd}\x{a7da}-\x{a7dc}\x{105c0}-\x{105f3}"
    r"\x{10d4a}-\x{10d65}\x{10d6f}-\x{10d85}\x{10ec2}-\x{10ec4}\x{11380}-\x{11389}\x{1138b}"
    r"\x{1138e}\x{11390}-\x{113b5}\x{113b7}\x{113d1}\x{113d3}\x{11bc0}-\x{11be0}"
    r"\x{13460}-\x{143fa}\x{16100}-\x{1611d}\x{16d40}-\x{16d6c}\x{18cff}\x{1e5d0}-\x{1e5ed}"
    r"\x{1e5f0}\x{2ebf0}-\x{2ee5d}"
)
_NUMBER = (
    r"\p{N}\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{16130}-\x{16139}"
    r"\x{16d70}-\x{16d79}\x{1ccf0}-\x{1ccf9}\x{1e5f1}-\x{1e5fa}"
)
# GPT-2's pattern has white space as `\s+(?!\S)|\s+`: where something follows, a word is all of it
# but the last character. RE2 has no look-ahead, so a byte that no text has is put there first.
_EDGE = b"\xff"
_BEFORE_LAST_SPACE = rf"([{_SPACE}])([{_SPACE}][^{_SPACE}])"
_WORD = (
    rf"'(?:[sdmt]|ll|ve|re)| ?[{_LETTER}]+| ?[{_NUMBER}]+| ?[^{_SPACE}{_LETTER}{_NUMBER}]+"
    rf"|[{_SPACE}]+"
)


def byte_level_words(texts):
    """Splits texts of valid UTF-8 as GPT-2 does: string (B,) -> ragged string (B, None).

    The words of a text, one after another, are the text: contractions, letters, numbers, or other
    characters, each with the space before it, and white space.
    """
    texts = tf.strings.regex_replace(texts, _BEFORE_LAST_SPACE, b"\\1" + _EDGE + b"\\2")
    texts = tf.strings.regex_replace(texts, _WORD, b"\\0" + _EDGE)
    words = tf.strings.split(texts, _EDGE)
    return select(words, words.values != "")


def with_prefix_space(texts):
    """Puts a space before texts that are not empty and do not begin with one. (B,) -> (B,)"""
    return tf.strings.regex_replace(texts, r"^([^ ])", r" \1", replace_global=False)


class ByteLevelEncoding(Merging):
    """The encoding of a `ByteLevelVocabulary`. Each different word of a batch is encoded once.

    Offsets leave out white space at both ends of a token. A token of white space alone is empty,
    where the one before it ends, or where the text's first word begins.
    """

    def __init__(self, vocabulary, *, lowercase):
        symbols = {b: letter for b, letter in enumerate(LETTERS) if letter in vocabulary}
        widths = [len(token) for token in vocabulary.tokens]  # a letter is a byte
        super().__init__(vocabulary, symbols=symbols, widths=widths, lowercase=lowercase)
        self._prefix_space = vocabulary.prefix_space
        with tf.init_scope():
            # With a last one, so that every search ends at an entry.
            points = [*map(ord, WHITE_SPACE), np.iinfo(np.int32).max]
            self._white_space = tf.constant(points, tf.int32)
            self._starts_word = tf.constant(vocabulary.starts_word)
            self._ends_word = tf.constant(vocabulary.ends_word)

    def normalize(self, texts):
        return valid_utf8(texts)

    def _symbols(self, words):
        # Each byte is a character of Latin-1.
        symbols = tf.strings.unicode_decode(words, "ISO-8859-1")
        return symbols, symbols.with_values(tf.ones_like(symbols.values, tf.int64))

    def _call(self, texts):
        given = texts
        if self._prefix_space:
            texts = with_prefix_space(texts)
        words = byte_level_words(texts)
        unique, back = tf.unique(words.values, out_idx=tf.int64)
        ids, widths = self._encode(unique)  # ragged (U, None)
        ids = tf.gather(ids, back)  # ragged (W, None)
        ends = tf.cumsum(tf.gather(widths, back).values)  # (T,) the tokens of a text are the text
        token_splits = tf.gather(ids.row_splits, words.row_splits)
        ids = tf.RaggedTensor.from_row_splits(ids.values, token_splits, validate=False)
        rows = row_ids(ids)
        prefix = tf.cast(tf.strings.length(texts) - tf.strings.length(given), tf.int64)
        # The bytes of earlier texts, without the spaces that were put before them.
        ends -= tf.gather(tf.cumsum(prefix), rows)
        starts = tf.concat([[0], ends[:-1]], axis=0)
        text_starts = tf.cumsum(tf.cast(tf.strings.length(given), tf.int64), exclusive=True)
        text_starts = tf.gather(text_starts, rows)
        starts = tf.maximum(starts[: tf.size(ends)], text_starts)
        starts, ends, begins = self._trimmed(given, ids, starts, ends)
        return tuple(
            map(ids.with_values, (ids.values, starts - text_starts, ends - text_starts, begins))
        )

    def _trimmed(self, texts, ids, starts, ends):
        """Offsets (T,), in bytes of all texts, without white space, and where words begin."""
        letters = characters(texts)
        at = tf.searchsorted(self._white_space, letters.points)
        is_word = tf.gather(self._white_space, at) != letters.points  # (C,)
        firsts = tf.boolean_mask(letters.positions, is_word)  # the first byte of each character
        widths = utf8_width(tf.boolean_mask(letters.points, is_word))
        lasts = tf.concat([[0], firsts + widths], axis=0)  # the end of the one before each
        firsts = tf.concat([firsts, ends[-1:]], axis=0)
        # The next character that is not white space, and the last one.
        next_start = tf.gather(firsts, tf.searchsorted(lasts[1:], starts, side="right"))
        last_end = tf.gather(lasts, tf.searchsorted(firsts[:-1], ends))
        is_word = tf.maximum(starts, next_start) < tf.minimum(ends, last_end)  # (T,)

        # After the first word of its text.
        before = tf.cumsum(tf.cast(is_word, tf.int64), exclusive=True)
        text_before = tf.gather(tf.concat([before, [0]], axis=0), ids.row_splits[:-1])
        inside = before > tf.gather(text_before, row_ids(ids))
        text_ends = tf.gather(
            tf.gather(tf.concat([[0], ends], axis=0), ids.row_splits[1:]), row_ids(ids)
        )
        empty = tf.where(inside, last_end, tf.minimum(next_start, text_ends))
        starts = tf.where(is_word, tf.maximum(starts, next_start), empty)
        ends = tf.where(is_word, tf.minimum(ends, last_end), empty)

        ends_word = tf.gather(self._ends_word, ids.values)
        splits = tf.concat([ends_word[:1], ends_word[:-1]], axis=0)
        splits |= tf.gather(self._starts_word, ids.values)
        is_first = tf.ragged.range(ids.row_lengths()).values == 0
        return starts, ends, is_first | (inside & splits & is_word)
