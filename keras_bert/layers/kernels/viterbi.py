"""Viterbi and forward-backward in numpy, for a linear-chain CRF outside of a graph.

The plain form is a scan over the words (`keras_bert.tasks.tagging.crf`):

    best[t, y] = max_y' (best[t-1, y'] + between[y', y]) + emission[t, y]

and the same with log Σ exp in place of the maximum. Outside of a graph a step of a scan costs
milliseconds on a CPU; a step of numpy, over many sentences together, costs microseconds.

Legend: B sentences, W words, C labels; words come first in a row.
"""

import numpy as np


def most_probable(emissions, is_word, potentials):
    """The likeliest labels, by Viterbi's algorithm, and the probability of each at its word.

    Shapes: emissions (B, W, C), is_word bool (B, W) -> int (B, W), float64 (B, W); where no word
    is, both mean nothing.

    Args:
        potentials: the arrays start (C,), between (C, C) from row to column, and end (C,).
    """
    emissions = emissions.astype(np.float64)
    start, between, end = (np.asarray(part, np.float64) for part in potentials)
    width = emissions.shape[1]
    best = forward = start + emissions[:, 0]  # (B, C)
    back, reached = [], [forward]
    for place in range(1, width):
        emission, going_on = emissions[:, place], is_word[:, place, None]
        scores = best[:, :, None] + between  # (B, C, C)
        back.append(np.where(going_on, scores.argmax(axis=1), np.arange(len(start))))
        best = np.where(going_on, scores.max(axis=1) + emission, best)
        summed = _log_sum(forward[:, :, None] + between, axis=1) + emission
        forward = np.where(going_on, summed, forward)
        reached.append(forward)
    label = (best + end).argmax(axis=-1)  # (B,)
    after = np.broadcast_to(end, forward.shape)
    total = _log_sum(forward + end, axis=-1)
    labels, probabilities = np.zeros((2, *is_word.shape))
    for place in reversed(range(width)):
        row = np.arange(len(label))
        labels[:, place] = label
        probabilities[:, place] = np.exp((reached[place] + after)[row, label] - total)
        if place:
            label = back[place - 1][row, label]
            summed = _log_sum(between + (after + emissions[:, place])[:, None, :], axis=2)
            after = np.where(is_word[:, place, None], summed, after)
    return labels.astype(np.int64), probabilities


def _log_sum(x, *, axis):
    largest = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - largest).sum(axis=axis)) + largest.squeeze(axis)
