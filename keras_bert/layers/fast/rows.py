"""Rows of tables and batches, taken so that the gradient is cheap."""

from keras import ops


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
