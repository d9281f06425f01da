"""Where in the user's own string each token stands, computed in the graph."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.text.normalization import clean, normalize


class Tokens(NamedTuple):
    """What `Tokenizer.tokenize_with_offsets` returns. All are ragged (B, None), a row a text.

    `starts` and `ends` count characters (code points, as Python does) of the given string,
    `byte_starts` and `byte_ends` its bytes in UTF-8; an end is the first place after the token. The
    end-of-word mark of byte-pair encoding, where it is a token alone, begins and ends there.
    In bytes that are not UTF-8 throughout, characters are those of the string without the
    invalid bytes; byte offsets are those of the bytes as given.
    """

    ids: tf.RaggedTensor  # int32
    starts: tf.RaggedTensor  # int32
    ends: tf.RaggedTensor  # int32
    byte_starts: tf.RaggedTensor  # int32
    byte_ends: tf.RaggedTensor  # int32
    word_starts: tf.RaggedTensor  # bool


def to_source(texts, starts, ends, *, lowercase):
    """Carries byte offsets in the normalized texts back to the given ones.

    TensorFlow Text keeps no map through lower-casing and dropped accents. But a text is normalized
    character by character, as far as lengths go, so the unique characters of the batch tell how
    many normalized bytes each character of the source became.

    Args:
        texts: string (B,), as the user gave them.
        starts, ends: ragged int64 (B, None), bytes of the normalized texts.
        lowercase: as in `normalize`.

    Returns starts, ends, byte_starts, byte_ends: ragged int32 (B, None) in `texts`. An end is
    extended over the combining marks that follow, which normalization drops.
    """
    points, byte_starts = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
    row_splits, points = points.row_splits, points.values  # (B + 1,), (C,)
    byte_starts = tf.cast(byte_starts.values, tf.int32)

    unique, which = tf.unique(points)
    characters = tf.strings.unicode_encode(unique[:, None], "UTF-8")
    normalized = normalize(characters, lowercase=lowercase)
    size = tf.gather(tf.strings.length(normalized), which)  # (C,) normalized bytes
    width = tf.gather(tf.strings.length(characters), which)  # (C,) bytes in the source
    vanishing_mark = (tf.strings.length(normalized) == 0) & (
        tf.strings.length(clean(characters)) > 0
    )
    mark = tf.gather(vanishing_mark, which)

    # A mark belongs to the character before it, but never to one of another row.
    count = tf.size(points)
    row_firsts = tf.boolean_mask(row_splits[:-1], row_splits[1:] > row_splits[:-1])
    is_first = tf.scatter_nd(row_firsts[:, None], tf.ones_like(row_firsts, tf.int32), [count]) > 0
    bases = tf.where(~mark | is_first)[:, 0]  # (G,)
    group = tf.cumsum(tf.cast(~mark | is_first, tf.int32)) - 1  # (C,)
    group_ends = tf.concat([tf.cast(bases, tf.int32), [count]], axis=0)[1:]

    source = tf.repeat(tf.range(count), size)  # (N,) normalized byte -> source character
    before = tf.cumsum(size, exclusive=True)
    row_bytes = tf.gather(tf.concat([before, [tf.reduce_sum(size)]], axis=0), row_splits[:-1])
    base = tf.cast(tf.gather(row_bytes, starts.value_rowids()), tf.int64)  # (T,)
    last = tf.gather(source, base + ends.values - 1)
    end = tf.gather(group_ends, tf.gather(group, last))
    # A token as wide as nothing (an end-of-word mark alone) is where the one before it ends.
    empty = starts.values == ends.values
    first = tf.gather(source, tf.where(empty, base + ends.values - 1, base + starts.values))
    first = tf.where(empty, end, first)

    row_start = tf.cast(tf.gather(row_splits[:-1], starts.value_rowids()), tf.int32)
    byte_end = tf.gather(byte_starts + width, end - 1)
    found = (
        first - row_start,
        end - row_start,
        tf.where(empty, byte_end, tf.gather(byte_starts, tf.minimum(first, count - 1))),
        byte_end,
    )
    return tuple(starts.with_values(values) for values in found)
