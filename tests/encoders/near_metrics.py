"""Metrics that two programs compute from the same answers, up to rounding."""

import numpy as np
import pytest


def assert_near(actual, expected, place="metrics", *, scores=None, rel=1e-5):
    """The same JSON-like values, numbers up to the rounding of float32, `rel` of them.

    Subtracting the mean of `scores`, those of a regression, that are many times as large as their
    deviation multiplies their rounding by it, and Pearson's correlation has that rounding.
    """
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys(), place
        for name, value in expected.items():
            assert_near(actual[name], value, f"{place}.{name}", scores=scores, rel=rel)
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), place
        for number, value in enumerate(expected):
            assert_near(actual[number], value, f"{place}[{number}]", scores=scores, rel=rel)
    elif place.endswith(("pearson", "spearman")):  # one of them, or the mean of both
        bound = 1e-6
        bound += ("pearson" in place) * rounding_of(scores) / max(scores.std(), 1e-30)
        bound += ("spearman" in place) * change_of_spearman(scores)
        assert actual == pytest.approx(expected, rel=rel, abs=bound, nan_ok=True), place
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=rel, abs=1e-6), place
    else:
        assert actual == expected, place


def rounding_of(scores):
    return 32 * np.finfo(np.float32).eps * np.abs(scores).max()


def change_of_spearman(scores):
    """Returns how much Spearman's correlation may change if scores are rounded.

    Scores that are as near as their rounding may be in any order among themselves, so that a rank
    moves by at most their number less one. Between the correlations of x and of x + d with another
    vector are at most 2 |d| / |x|, where x has a mean of 0.
    """
    edges = np.flatnonzero(np.diff(np.sort(scores)) > rounding_of(scores)) + 1
    groups = np.split(np.arange(len(scores)), edges)
    moves = np.concatenate([np.full(len(group), len(group) - 1) for group in groups])
    ranks = np.concatenate([np.full(len(group), group.mean()) for group in groups])
    length = np.linalg.norm(ranks - ranks.mean())
    return 2 * np.linalg.norm(moves) / length if length else 2.0
