"""Which spans are found, against loops over all spans and all thresholds."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.tasks.span_classification.decode import (
    LEAST_THRESHOLD,
    Found,
    best_threshold,
    spans_above,
    tie_break,
    without_overlaps,
)
from keras_bert.tasks.span_classification.signatures import _without_overlaps
from tests.seeds import make_rng

RNG = make_rng(4)


def test_the_spans_above_a_threshold_are_those_of_a_loop():
    logits = RNG.normal(size=(9, 4, 3), scale=2).astype("float32")  # two words are padding
    spans = spans_above(0.4, logits, num_words=7, starts=(2, 6))
    expected = []
    for first in range(2, 6):
        for last in range(first, min(first + 4, 7)):
            p = np.exp(logits[first, last - first].astype("float64"))
            p /= p.sum()
            if max(p[1], p[2]) > 0.4:
                expected.append((first, last, int(p[2] > p[1]), pytest.approx(max(p[1], p[2]))))
    assert [tuple(span) for span in spans] == expected and 3 < len(spans) < 16


def test_without_overlaps_the_most_probable_stay():
    spans = [Found(0, 3, 0, 0.6), Found(1, 2, 1, 0.9), Found(3, 4, 0, 0.7), Found(5, 5, 0, 0.7)]
    assert without_overlaps(spans) == [spans[1], spans[3], spans[2]]
    # One word in common is an overlap. Of two as likely, the place tells, and then the length.
    assert without_overlaps([Found(1, 2, 0, 0.5), Found(0, 1, 0, 0.5)]) == [Found(0, 1, 0, 0.5)]
    assert without_overlaps([Found(1, 2, 0, 0.5), Found(1, 1, 0, 0.5)]) == [Found(1, 1, 0, 0.5)]
    assert without_overlaps([]) == []


def test_the_graph_keeps_the_same_spans_of_as_likely_ones():
    spans = sorted(
        {(first := int(RNG.integers(0, 400)), first + int(RNG.integers(0, 4))) for _ in range(1000)}
    )
    candidates = [Found(*span, 0, float(RNG.choice([0.5, 0.7]))) for span in spans]
    assert kept_in_a_graph(candidates) == sorted(without_overlaps(candidates))


@pytest.mark.parametrize("width", [2, 3, 5, 8, 12])
def test_spans_that_are_all_as_likely_are_resolved_in_few_rounds(width):
    # Each round is a pass over all spans, here of `width` words each. Were the earlier one of two
    # kept, there would be one for every span that is.
    turn = tie_break(np.arange(20_000)).astype(float)
    is_open, rounds = np.full(turn.shape, True), 0
    while is_open.any():
        waiting = np.where(is_open, turn, np.inf)
        wins = is_open & (waiting == beside(waiting, width, np.minimum, np.inf))
        is_open &= ~beside(wins, width, np.logical_or, False)
        rounds += 1
    assert rounds <= 2 * width + 10


def beside(array, width, combine, nothing):
    """(N,): of each place and all that are less than `width` from it."""
    padded = np.pad(array, width - 1, constant_values=nothing)
    return combine.reduce(np.lib.stride_tricks.sliding_window_view(padded, 2 * width - 1), axis=1)


def test_the_graph_settles_spans_of_one_word_again_and_again():
    candidates = [Found(n, n + width, 0, 0.5) for n in range(20_000) for width in range(4)]
    assert kept_in_a_graph(candidates) == [Found(n, n, 0, 0.5) for n in range(20_000)]
    candidates = [Found(n, n + 3, 0, 0.5) for n in range(20_000)]
    assert kept_in_a_graph(candidates) == sorted(without_overlaps(candidates))


def kept_in_a_graph(candidates):
    first, last, _, scores = (np.array(column) for column in zip(*candidates, strict=True))
    is_kept = tf.function(_without_overlaps)(
        tf.constant(first, tf.int32),
        tf.constant(last, tf.int32),
        tf.constant(scores, tf.float32),
        tie_break(tf.constant(first, tf.int64)),
        words=int(last.max()) + 1,
    )
    return [span for span, stays in zip(candidates, is_kept.numpy(), strict=True) if stays]


def test_a_threshold_may_come_before_or_after_overlaps_are_resolved():
    spans = [
        Found(first := int(RNG.integers(0, 12)), first + int(RNG.integers(0, 4)), 0, score)
        for score in RNG.permutation(40) / 40
    ]
    for threshold in (0.1, 0.4, 0.8):
        before = without_overlaps([span for span in spans if span.score > threshold])
        after = [span for span in without_overlaps(spans) if span.score > threshold]
        assert before == after


def f_measure(threshold, scores, correct, *, expected, beta):
    above = scores > threshold
    precision = correct[above].sum() / max(1, above.sum())
    recall = correct[above].sum() / max(1, expected)
    if precision + recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


@pytest.mark.parametrize("metric, beta", [("f1", 1.0), ("precision", 0.5)])
def test_the_best_threshold_is_that_of_a_search(metric, beta):
    for _ in range(50):
        count = RNG.integers(1, 12)
        scores = RNG.integers(2, 20, count) / 20  # many are equal
        correct = RNG.random(count) < scores
        expected = int(correct.sum()) + RNG.integers(0, 3)
        chosen = best_threshold(scores, correct, expected=expected, metric=metric)
        best, *others = (
            f_measure(threshold, scores, correct, expected=expected, beta=beta)
            for threshold in (chosen, LEAST_THRESHOLD, *(np.unique(scores) + 1e-6))
        )
        assert best == pytest.approx(max(others))
        assert LEAST_THRESHOLD <= chosen <= 1
        assert chosen not in scores if correct.any() else chosen == 0.5


def test_precision_wants_a_higher_threshold_than_f1():
    scores, correct = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], [1, 1, 0, 1, 0, 1]
    chosen = {
        metric: best_threshold(scores, np.array(correct, bool), expected=5, metric=metric)
        for metric in ("f1", "precision")
    }
    assert chosen["precision"] == pytest.approx(0.75) and chosen["f1"] < 0.4
    assert best_threshold([0.9], [False], expected=3, metric="f1") == 0.5
    assert best_threshold([], [], expected=3, metric="f1") == 0.5
