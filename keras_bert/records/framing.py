"""From segments of tokens to rows: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

The one body of it: for the data jobs, for training, evaluation and prediction, and inside an
exported model. Core TensorFlow operations only, a few of them a batch. Legend of shapes: T tokens,
B rows.
"""

import tensorflow as tf

# Where the special tokens stand in a vector that `with_special_tokens` makes.
_CLS, _SEP, _FIRST = 0, 1, 2


def with_special_tokens(tokens, vocabulary):
    """Puts [CLS] and [SEP] before tokens (T,), where `frame_rows` finds them: int32 (2 + T,)."""
    special = tf.constant([vocabulary.cls_id, vocabulary.sep_id], tf.int32)
    return tf.concat([special, tf.cast(tokens, tf.int32)], axis=0)


def frame_rows(tokens, segments):
    """Makes rows of one or two segments each. Works eagerly and in a graph.

    Shapes: `tokens` from `with_special_tokens`; each of `segments` says where its tokens start
    (counted without the special ones) and how many they are, int64 (B,) and (B,) -> rows, ragged
    int32 (B, None), and the lengths of their segments, int64 (B, 1 or 2): [CLS] belongs to the
    first one, each [SEP] to its own.
    """
    zero, one = tf.zeros_like(segments[0][0]), tf.ones_like(segments[0][0])
    # A row is three or five ranges of one vector.
    starts, sizes, places = [zero], [one], [_CLS]
    for start, size in segments:
        starts += [start, zero]
        sizes += [size, one]
        places += [_FIRST, _SEP]
    starts = tf.reshape(tf.stack(starts, axis=1) + places, [-1])
    sizes = tf.stack(sizes, axis=1)  # (B, 3 or 5)
    chosen = tf.ragged.range(starts, starts + tf.reshape(sizes, [-1])).values
    rows = tf.RaggedTensor.from_row_lengths(
        tf.gather(tokens, chosen), tf.reduce_sum(sizes, axis=1), validate=False
    )
    lengths = tf.stack([size for _, size in segments], axis=1)
    return rows, lengths + [2, 1][: len(segments)]
