"""From the logits of all spans to the spans that are found, and the threshold that finds them.

A span goes from its first to its last word, both counted in. Column 0 of the logits is "no span".
"""

from typing import NamedTuple

import numpy as np

from keras_bert.tasks.probabilities import softmax

# What a threshold may be tuned for, and how many times as much as precision recall counts there.
BETA = {"f1": 1.0, "precision": 0.5}
# A lower threshold is not tried: it would call what the model is sure of not to be a span one.
LEAST_THRESHOLD = 0.05


class Found(NamedTuple):
    """A span that is found: its first and last word, the number of its label, its probability."""

    first: int
    last: int
    label: int
    score: float


def spans_above(threshold, logits, *, num_words, starts):
    """The spans of a row whose likeliest label has a probability over the threshold.

    Shapes: logits (W, L, C), of the spans of 1 to L words from each word of the row, padding
    included. Of the `num_words` words, those in the range `starts` (first, end) may begin a span.

    Returns `Found`s, whose words count from the row's first one and whose labels count from 0.
    """
    logits = logits[starts[0] : starts[1]]
    probabilities = softmax(logits)[..., 1:]  # (W', L, C - 1)
    scores = probabilities.max(axis=-1)
    width = np.arange(logits.shape[1])
    first = np.arange(*starts)
    inside = first[:, None] + width < num_words
    rows, columns = np.nonzero(inside & (scores > threshold))
    labels = probabilities[rows, columns].argmax(axis=-1)
    return [
        Found(int(first[row]), int(first[row] + column), int(label), float(scores[row, column]))
        for row, column, label in zip(rows, columns, labels, strict=True)
    ]


def without_overlaps(spans):
    """The spans that share no word with a likelier one that is kept, the likeliest first.

    What is kept does not depend on spans of lower scores, so a threshold may come before or after.
    Of two that are as likely, `tie_break` of their first words tells; of one first word, the
    shorter is kept.
    """
    kept, taken = [], set()
    for span in sorted(
        spans, key=lambda span: (-span.score, tie_break(span.first), span.first, span.last)
    ):
        words = range(span.first, span.last + 1)
        if taken.isdisjoint(words):
            kept.append(span)
            taken.update(words)
    return kept


def tie_break(first):
    """The turn of spans that are as likely, the lower first, from their first words (0 to 2³¹ - 1).

    It jumps about (by the golden ratio; Knuth, The Art of Computer Programming, section 6.4), so
    that in a text of one word again and again, where all spans are as likely, which of them are
    kept can be told in all parts of the text at once. Were the earlier one kept, each would wait
    for the one before it.
    """
    return first * 2_654_435_769 % 2**32


def best_threshold(scores, correct, *, expected, tune_for):
    """The threshold on the scores of spans that gives the best F-measure.

    For "precision" it is F0.5, which counts precision twice as much as recall; by precision alone,
    a single sure span would be best.

    Shapes: scores float (N,), of every span that a low threshold finds; correct bool (N,).

    Args:
        expected: how many spans there are in truth.
        tune_for: a key of `BETA`.

    Returns:
        A number from `LEAST_THRESHOLD` to 1, half way between the scores of two spans; 0.5 where
        nothing correct is found.
    """
    if not np.any(correct):
        return 0.5
    order = np.argsort(-np.asarray(scores), kind="stable")
    scores = np.append(np.asarray(scores, np.float64)[order], LEAST_THRESHOLD)
    right = np.cumsum(np.asarray(correct)[order])  # (N,), of the first 1 to N spans
    weight = BETA[tune_for] ** 2
    f = (1 + weight) * right / (weight * expected + np.arange(1, len(order) + 1))
    f[scores[:-1] == scores[1:]] = -1.0  # no threshold lies between two that are equal
    best = int(f.argmax())
    return float(scores[best : best + 2].mean())
