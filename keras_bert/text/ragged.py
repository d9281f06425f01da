"""Ragged rows in few operations.

`tf.ragged.boolean_mask`, a slice, and arithmetic of a ragged with a dense tensor put tens to
hundreds of operations into a graph, as they take shapes of any depth; every trace, export and
start of a server pays for each.
"""

import tensorflow as tf


def kept(rows, keep):
    """What `keep`, bool (T,), leaves of the T values of ragged rows (B, None)."""
    before = tf.cumsum(tf.cast(keep, rows.row_splits.dtype))
    splits = tf.gather(tf.pad(before, [[1, 0]]), rows.row_splits)
    values = tf.gather(rows.values, tf.where(keep)[:, 0])
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def leading(rows, most):
    """The first values of ragged rows (B, None), at most so many of each."""
    return kept(rows, tf.ragged.range(rows.row_lengths()).values < most)


def of_values(dense, rows):
    """A number of each row, (B,), for each value of ragged rows (B, None): (T,)."""
    return tf.gather(dense, rows.value_rowids())
