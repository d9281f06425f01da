"""Viterbi and forward-backward in numpy, for a linear-chain CRF outside of a graph.

The plain form is a scan over the words (`keras_bert.tasks.tagging.crf`):

    best[t, y] = max_y' (best[t-1, y'] + between[y', y]) + emission[t, y]

and the same with log Σ exp in place of the maximum. Outside of a graph a step of a scan costs
milliseconds on a CPU; a step of numpy, over many sentences together, costs microseconds.

Legend: B sentences, W words, C labels; padding comes after the words.
"""

import numpy as np


def most_probable(emissions, is_word, potentials):
    """The most probable labels, by Viterbi's algorithm, and the probability of each at its word.

    Shapes: emissions (B, W, C), is_word bool (B, W) -> int (B, W), float64 (B, W); values at
    padding are undefined.

    Args:
        potentials: the arrays start (C,), between (C, C) from row to column, and end (C,).
    """
    emissions = emissions.astype(np.float64)
    start, between, end = (np.asarray(part, np.float64) for part in potentials)
    words = emissions.shape[1]
    best = forward = start + emissions[:, 0]  # (B, C)
    back, reached = [], [forward]
    for word in range(1, words):
        emission, is_here = emissions[:, word], is_word[:, word, None]
        scores = best[:, :, None] + between  # (B, C, C)
        back.append(np.where(is_here, scores.argmax(axis=1), np.arange(len(start))))
        best = np.where(is_here, scores.max(axis=1) + emission, best)
        summed = _log_sum(forward[:, :, None] + between, axis=1) + emission
        forward = np.where(is_here, summed, forward)
        reached.append(forward)
    label = (best + end).argmax(axis=-1)  # (B,)
    after = np.broadcast_to(end, forward.shape)
    total = _log_sum(forward + end, axis=-1)
    labels, probabilities = np.zeros((2, *is_word.shape))
    for word in reversed(range(words)):
        row = np.arange(len(label))
        labels[:, word] = label
        probabilities[:, word] = np.exp((reached[word] + after)[row, label] - total)
        if word:
            label = back[word - 1][row, label]
            summed = _log_sum(between + (after + emissions[:, word])[:, None, :], axis=2)
            after = np.where(is_word[:, word, None], summed, after)
    return labels.astype(np.int64), probabilities


def _log_sum(x, *, axis):
    largest = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - largest).sum(axis=axis)) + largest.squeeze(axis)
