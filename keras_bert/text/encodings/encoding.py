"""The interface of all algorithms in the graph, and offsets into the user's string."""

import abc

import numpy as np
import tensorflow as tf

from keras_bert.text.normalization import characters, clean, utf8_width
from keras_bert.text.ragged import row_ids
from keras_bert.text.vocabularies.spaced import WHITE_SPACE


class Encoding(tf.Module, abc.ABC):
    """Texts to tokens by one vocabulary, in the graph. Each algorithm is a subclass.

    There is no lookup table, which would have to be initialized when an export is loaded.
    """

    @abc.abstractmethod
    def normalize(self, texts):
        """The texts in which tokens are looked for: string (B,) -> string (B,).

        What becomes of a character does not depend on those next to it.
        """

    @abc.abstractmethod
    def tokenize(self, texts):
        """Normalized texts, string (B,) -> ids, ragged int32 (B, None)."""

    @abc.abstractmethod
    def tokenize_with_offsets(self, texts):
        """Normalized texts (B,) -> ids (int32), starts, ends (int64, bytes of `texts`), and where
        words begin (bool): ragged (B, None).

        An empty token is where the one before it ends.
        """


class TokenEdges(tf.Module):
    """Offsets without the white space that a token takes up, and where words begin.

    For tokens that make up a text with its white space. A token of white space alone is empty,
    where the one before it ends, or where the text's first word begins.

    Args:
        vocabulary: has `starts_word` and `ends_word`.
    """

    def __init__(self, vocabulary):
        super().__init__()
        with tf.init_scope():
            # With a last one, so that every search ends at an entry.
            points = [*map(ord, WHITE_SPACE), np.iinfo(np.int32).max]
            self._white_space = tf.constant(points, tf.int32)
            self._starts_word = tf.constant(vocabulary.starts_word)
            self._ends_word = tf.constant(vocabulary.ends_word)

    def __call__(self, texts, ids, starts, ends):
        """Texts (B,), ids, ragged int32 (B, None), starts and ends (T,), bytes of all texts -> ids,
        starts, ends (bytes of their text) and where words begin: ragged (B, None)."""
        starts, ends, begins = self._trimmed(texts, ids, starts, ends)
        text_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
        text_starts = tf.gather(text_starts, row_ids(ids))
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


def to_source(texts, starts, ends, *, normalize):
    """Maps byte offsets in the normalized texts back to the original ones.

    TensorFlow Text keeps no map through lower-casing and dropped accents. But lengths are those of
    each character normalized alone, so the unique characters of the batch are enough.

    Args:
        texts: string (B,), not normalized.
        starts, ends: ragged int64 (B, None), bytes of the normalized texts.
        normalize: the function of texts that normalized them.

    Returns starts, ends, byte_starts, byte_ends: ragged int32 (B, None) in `texts`. An end is
    extended over the combining marks that follow, which normalization drops.
    """
    points, byte_starts = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
    row_splits, points = points.row_splits, points.values  # (B + 1,), (C,)
    byte_starts = tf.cast(byte_starts.values, tf.int32)

    unique, which = tf.unique(points)
    characters = tf.strings.unicode_encode(unique[:, None], "UTF-8")
    normalized = normalize(characters)
    size = tf.gather(tf.strings.length(normalized), which)  # (C,) normalized bytes
    width = tf.gather(tf.strings.length(characters), which)  # (C,) bytes in the source
    vanishing_mark = (tf.strings.length(normalized) == 0) & (
        tf.strings.length(clean(characters)) > 0
    )
    mark = tf.gather(vanishing_mark, which)

    # A mark belongs to the character before it, but never to one of another text.
    count = tf.size(points)
    row_firsts = tf.boolean_mask(row_splits[:-1], row_splits[1:] > row_splits[:-1])
    is_first = tf.scatter_nd(row_firsts[:, None], tf.ones_like(row_firsts, tf.int32), [count]) > 0
    bases = tf.where(~mark | is_first)[:, 0]  # (G,)
    group = tf.cumsum(tf.cast(~mark | is_first, tf.int32)) - 1  # (C,)
    group_ends = tf.concat([tf.cast(bases, tf.int32), [count]], axis=0)[1:]

    source = tf.repeat(tf.range(count), size)  # (N,) normalized byte -> source character
    before = tf.cumsum(size, exclusive=True)
    row_bytes = tf.gather(tf.concat([before, [tf.reduce_sum(size)]], axis=0), row_splits[:-1])
    base = tf.cast(tf.gather(row_bytes, row_ids(starts)), tf.int64)  # (T,)
    row_start = tf.cast(tf.gather(row_splits[:-1], row_ids(starts)), tf.int32)
    # An empty token (an end-of-word mark or white space alone) is where the one before it ends.
    empty, at_start = starts.values == ends.values, ends.values == 0
    last = tf.gather(source, base + tf.maximum(ends.values - 1, 0))
    end = tf.where(at_start, row_start, tf.gather(group_ends, tf.gather(group, last)))
    # (An empty token may be after the last byte.)
    first = tf.gather(source, base + tf.where(empty, tf.zeros_like(base), starts.values))
    first = tf.where(empty, end, first)

    byte_end = tf.where(at_start, 0, tf.gather(byte_starts + width, tf.maximum(end - 1, 0)))
    offsets = (
        first - row_start,
        end - row_start,
        tf.where(empty, byte_end, tf.gather(byte_starts, tf.minimum(first, count - 1))),
        byte_end,
    )
    return tuple(starts.with_values(column) for column in offsets)
