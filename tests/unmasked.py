"""Masked examples as they were before, for tests of what masking leaves as it was."""

import numpy as np


def unmask(input_ids, positions, ids):
    """The original `input_ids` (R, S) of masked examples, from the fields of `Masked`."""
    flat, counts = positions
    original = np.array(input_ids)
    original[np.repeat(np.arange(len(input_ids)), counts), flat] = ids[0]
    return original
