"""Datasets of `tf.data` as every backend reads them: in a fixed order, in parts for devices."""

import numpy as np
import tensorflow as tf

# Parallel calls of a map, and batches prefetched, unless a dataset needs more.
PARALLEL_CALLS = 2
PREFETCHED = 4


def resolved(dataset):
    """The dataset in a fixed order and as it is written, without tf.data's autotuner.

    Destroying an iterator waits for the autotuner's thread, which wakes at doubling intervals of up
    to a minute. tf.data would also rewrite the graph of each dataset, to fuse maps and batches:
    these have nothing to fuse, and it costs 0.07 s for each iterator.
    """
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def sorted_batches(lengths, *, batch_size):
    """The examples of each batch from the shortest to the longest, for evaluation."""
    numbers = np.argsort(lengths, kind="stable")
    return [numbers[start : start + batch_size] for start in range(0, len(numbers), batch_size)]


def parts(dataset, numbers, *, count):
    """Each batch of a dataset in parts, one after another, for several devices.

    Part r of n has the examples [B r / n, B (r + 1) / n) of a batch of B, so that the parts' sizes
    differ by at most one.

    Args:
        dataset: batches, tensors of B examples.
        numbers: the parts to return, a range within [0, n).
        count: n.
    """

    def split(*batch):
        joined = tf.data.Dataset.from_tensors(_part(batch, numbers[0], count))
        for number in numbers[1:]:
            joined = joined.concatenate(tf.data.Dataset.from_tensors(_part(batch, number, count)))
        return joined

    return resolved(dataset.flat_map(split)).prefetch(PREFETCHED)


def _part(batch, number, count):
    def cut(x):
        first, last = (tf.shape(x)[0] * n // count for n in (number, number + 1))
        size = x.shape[0]
        if size is not None:  # a static shape stays static
            size = size * (number + 1) // count - size * number // count
        return tf.ensure_shape(x[first:last], [size, *x.shape[1:]])

    return tf.nest.map_structure(cut, batch)
