"""Batches in parts, one for each of several devices."""

import tensorflow as tf

from keras_bert.inputs.datasets import PREFETCHED, settled


def parts(dataset, numbers, *, of):
    """The batches of a dataset in parts: of each batch those of the given numbers, one by one.

    Part r of n has the rows [B r / n, B (r + 1) / n) of a batch of B rows, so that all parts
    together are the batch, and differ by one row at most.

    Args:
        dataset: batches, tensors of B rows.
        numbers: a range within [0, n).
        of: n.
    """

    def split(*batch):
        found = [_part(batch, number, of) for number in numbers]
        together = tf.data.Dataset.from_tensors(found[0])
        for part in found[1:]:
            together = together.concatenate(tf.data.Dataset.from_tensors(part))
        return together

    return settled(dataset.flat_map(split)).prefetch(PREFETCHED)


def _part(batch, number, of):
    def cut(x):
        first, last = (tf.shape(x)[0] * n // of for n in (number, number + 1))
        rows = x.shape[0]
        if rows is not None:  # a shape that is known stays known
            rows = rows * (number + 1) // of - rows * number // of
        return tf.ensure_shape(x[first:last], [rows, *x.shape[1:]])

    return tf.nest.map_structure(cut, batch)
