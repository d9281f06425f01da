"""From segments of tokens to rows, by a template such as BERT's, `[CLS] a [SEP] b [SEP]`.

The one body of it: for the data jobs, for training, evaluation and prediction, and inside an
exported model. Core TensorFlow operations only, a few of them a batch. Legend of shapes: T tokens,
K different special tokens of the template, B rows.
"""

import tensorflow as tf


def with_special_tokens(tokens, vocabulary, template):
    """Tokens (T,) behind those of a `Template`, as `frame_rows` takes them: int32 (K + T,)."""
    special = [vocabulary.id(token) for token in template.special_tokens]
    return tf.concat([tf.constant(special, tf.int32), tf.cast(tokens, tf.int32)], axis=0)


def frame_rows(tokens, segments, template):
    """Makes rows of one or two segments each. Works eagerly and in a graph.

    Shapes: `tokens` from `with_special_tokens`; each of `segments` says where its tokens start
    (counted without the special ones) and how many they are, int64 (B,) and (B,) -> rows, ragged
    int32 (B, None), and the lengths of their segments, int64 (B, 1 or 2), with the special tokens
    that belong to each (see `Template`).
    """
    zero, one = tf.zeros_like(segments[0][0]), tf.ones_like(segments[0][0])
    special = template.special_tokens
    # A row is a few ranges of one vector: in BERT's template three or five.
    starts, sizes, places = [], [], []
    for what, _ in template.parts(len(segments)):
        is_special = isinstance(what, str)
        start, size = (zero, one) if is_special else segments[what]
        starts.append(start)
        sizes.append(size)
        places.append(special.index(what) if is_special else len(special))
    starts = tf.reshape(tf.stack(starts, axis=1) + places, [-1])
    sizes = tf.stack(sizes, axis=1)  # (B, 3 or 5)
    chosen = tf.ragged.range(starts, starts + tf.reshape(sizes, [-1])).values
    rows = tf.RaggedTensor.from_row_lengths(
        tf.gather(tokens, chosen), tf.reduce_sum(sizes, axis=1), validate=False
    )
    lengths = tf.stack([size for _, size in segments], axis=1)
    return rows, lengths + template.belonging(len(segments))
