"""Batches of rows of about the same length, so that short texts do not pay for long ones."""

import numpy as np

# So many batches are drawn at random before their rows are sorted by length: enough for batches of
# even length, few enough that the rows of a batch stay a random choice.
_BATCHES_SORTED_TOGETHER = 64


def shuffled_batches(lengths, *, count, seed, epoch):
    """The rows of each batch of one epoch, in an order that depends on (seed, epoch) alone.

    Shapes: lengths (N,) int -> a list of `count` arrays of row numbers. Every row is in one of
    them, and their sizes differ by one at most, so that each row has about the same weight.
    """
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(lengths))
    edges = np.arange(count + 1) * len(lengths) // count
    batches = []
    for first in range(0, count, _BATCHES_SORTED_TOGETHER):
        last = min(first + _BATCHES_SORTED_TOGETHER, count)
        group = order[edges[first] : edges[last]]
        group = group[np.argsort(lengths[group], kind="stable")]
        batches += np.split(group, edges[first + 1 : last] - edges[first])
    return [batches[index] for index in rng.permutation(count)]


def sorted_batches(lengths, *, batch_size):
    """The rows of each batch from the shortest to the longest row, for evaluation."""
    rows = np.argsort(lengths, kind="stable")
    return [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
