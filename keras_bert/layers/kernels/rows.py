"""Rows of tables and batches, taken so that the gradient is cheap, and is one."""

import keras
from keras import ops


def look_up(table, ids):
    """Rows of a table: (N, D), int (…) -> (…, D).

    TensorFlow's gradient of a lookup is a list of rows, in which an id that stands twice is twice.
    Keras's optimizers square each of the two where Adam has the square of their sum, and so does a
    norm of all gradients. Here it is a table as everywhere else, (N, D).
    """
    if keras.backend.backend() != "tensorflow":
        return ops.take(table, ids, axis=0)
    import tensorflow as tf

    @ops.custom_gradient
    def rows(table):
        def gradient(upstream):
            flat = ops.reshape(upstream, (-1, table.shape[1]))
            return ops.segment_sum(flat, ops.reshape(ids, (-1,)), num_segments=table.shape[0])

        return ops.take(table, ids, axis=0), gradient

    return rows(tf.convert_to_tensor(table))


def first_rows(table, *, start, count):
    """What looking up start, start + 1, … gives for every text: (N, D) -> (count, D).

    A slice, whose gradient is one sum, where a lookup's would be a scatter.
    """
    return table[start : start + count]


def at_positions(hidden, positions):
    """What stands at some positions of each row: (B, S, D), int (B, P) -> (B * P, D).

    One plain lookup in the flattened batch, where one along the second axis has indices to gather
    by in every row.
    """
    batch, length, width = ops.shape(hidden)
    rows = ops.cast(positions, "int32") + length * ops.arange(batch, dtype="int32")[:, None]
    rows = ops.reshape(rows, (-1,))
    return ops.take(ops.reshape(hidden, (-1, width)), rows, axis=0)
