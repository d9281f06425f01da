"""From logits, as NumPy arrays, to probabilities: what answers of every kind are made of."""

import numpy as np


def softmax(logits):
    """(…, C) -> float64 (…, C)."""
    logits = logits.astype(np.float64)
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def sigmoid(logits):
    """Any shape -> float64 of that shape."""
    logits = logits.astype(np.float64)
    small = np.exp(-np.abs(logits))  # never overflows
    return np.where(logits >= 0, 1.0, small) / (1.0 + small)
