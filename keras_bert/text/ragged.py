"""Operations on ragged tensors (B, None) of few graph nodes.

`tf.ragged.boolean_mask`, a slice, and arithmetic of a ragged with a dense tensor take shapes of any
depth, and put tens to hundreds of operations into every graph, which cost time in traces, exports
and servers.
"""

import tensorflow as tf


def select(rows, keep):
    """The values of ragged rows (B, None) where `keep`, bool (T,), is True."""
    before = tf.cumsum(tf.cast(keep, rows.row_splits.dtype))
    splits = tf.gather(tf.pad(before, [[1, 0]]), rows.row_splits)
    selected = tf.gather(rows.values, tf.where(keep)[:, 0])
    return tf.RaggedTensor.from_row_splits(selected, splits, validate=False)


def leading(rows, most):
    """The first values of ragged rows (B, None), at most `most` of each."""
    return select(rows, tf.ragged.range(rows.row_lengths()).values < most)


def row_ids(rows):
    """The row of each value of ragged rows (B, None): int (T,), of the dtype of the splits.

    `rows.value_rowids()` takes memory for B times the longest row: 26 GB for the lines of a book
    and the whole book.
    """
    splits = rows.row_splits
    ends = splits[1:-1]
    zeros = tf.zeros([splits[-1] + 1], splits.dtype)
    return tf.cumsum(tf.tensor_scatter_nd_add(zeros, ends[:, None], tf.ones_like(ends)))[:-1]


def per_value(dense, rows):
    """One number per row, (B,), repeated for each value of ragged rows (B, None): (T,)."""
    return tf.gather(dense, row_ids(rows))
