"""Correlation of two series of numbers, as scipy.stats computes it."""

import numpy as np


def pearson(x, y):
    """The linear correlation of x (N,) and y (N,), from -1 to 1.

    0 where it is not defined: of fewer than two numbers, or where one side is constant.
    """
    x, y = (np.asarray(values, np.float64) for values in (x, y))
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return 0.0
    x, y = (_unit(values - values.mean()) for values in (x, y))
    return float(np.clip(x @ y, -1.0, 1.0))


def spearman(x, y):
    """The correlation of ranks; equal numbers have the mean of their ranks. 0 as in `pearson`."""
    return pearson(_ranks(x), _ranks(y))


def _unit(x):
    """A vector divided by its length, however small or large its numbers are."""
    largest = np.abs(x).max()
    x = x / largest if largest else x
    length = np.sqrt(x @ x)
    return x / length if length else x


def _ranks(x):
    _, place, counts = np.unique(np.asarray(x), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]
