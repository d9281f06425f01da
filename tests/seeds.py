"""Seeds of tests. `--shift-seeds N` moves all of them, so that no test passes by its draw alone.

A test that draws numbers takes its seed from `shifted`. Before each test the generators of Python
and numpy, from which Keras takes the seed of a layer that is given none, are set from it, too.
"""

import os
import random

import numpy as np

VARIABLE = "KERAS_BERT_SHIFT_SEEDS"  # the programs that tests start inherit it


def shifted(seed: int) -> int:
    """Returns `seed`, moved by the `N` of `--shift-seeds N`."""
    return seed + 1000 * int(os.environ.get(VARIABLE, "0"))


def make_rng(seed: int | list[int]) -> np.random.Generator:
    """Returns numpy's generator of the shifted seed."""
    return np.random.default_rng(shifted(seed))


def seed_generators() -> None:
    """Sets the generators of Python and of numpy, which any test may have left in any state."""
    random.seed(shifted(0))
    np.random.seed(shifted(0))
