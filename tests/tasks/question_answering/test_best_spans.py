"""The best span of all windows, held against every span of every window."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.tasks.question_answering.features import context_windows
from keras_bert.tasks.question_answering.question_answerer import WindowLogits, best_spans
from tests.seeds import make_rng

RNG = make_rng(11)


def tokens_of(length, room, stride, *, whole_numbers=False):
    """Windows with random logits; whole numbers give many that are equal."""

    def draw(size):
        drawn = RNG.integers(-2, 3, size) if whole_numbers else RNG.normal(size=size)
        return drawn.astype(np.float32)

    sizes = (tf.constant([size], tf.int64) for size in (length, room))
    windows = context_windows(*sizes, stride=stride).numpy()
    return [
        WindowLogits(first, slice(a - first, b - first), draw(size), draw(size), float(draw(1)[0]))
        for _, first, size, a, b in np.transpose(windows).tolist()
    ]


def every_span(tokens, longest):
    """[(first, last, logit)] in order of their first and last token."""
    spans = []
    for token in tokens:
        for i in range(token.core.start, token.core.stop):
            for j in range(i, min(i + longest, len(token.starts))):
                logit = float(token.starts[i] + token.ends[j])
                spans.append((token.first + i, token.first + j, logit))
    return spans


@pytest.mark.parametrize("may_be_none", [False, True])
@pytest.mark.parametrize("whole_numbers", [False, True])
def test_the_best_spans_are_those_of_a_search_through_all(may_be_none, whole_numbers):
    for _ in range(60):
        length, room, stride, longest = (int(RNG.integers(1, high)) for high in (40, 16, 16, 8))
        tokens = tokens_of(length, room, stride, whole_numbers=whole_numbers)
        spans = sorted(every_span(tokens, longest), key=lambda span: -span[2])
        null = min(token.null for token in tokens)
        total = sum(np.exp(logit) for *_, logit in spans) + may_be_none * np.exp(null)
        for count in (1, 5, 1000):
            answer = best_spans(
                tokens, max_answer_length=longest, count=count, may_be_none=may_be_none
            )
            assert [(s.first, s.last, s.logit) for s in answer.best] == spans[:count]
            np.testing.assert_allclose(
                [span.probability for span in answer.best],
                [np.exp(logit) / total for *_, logit in spans[:count]],
                rtol=1e-6,
            )
            assert answer.null_score == pytest.approx(null - spans[0][2])
            assert answer.null_probability == pytest.approx(may_be_none * np.exp(null) / total)


def test_every_span_of_a_short_text_can_be_found_once():
    tokens = tokens_of(12, 6, 2)
    spans = best_spans(tokens, max_answer_length=3, count=1000, may_be_none=True)
    places = [(span.first, span.last) for span in spans.best]
    assert len(set(places)) == len(places)
    assert {first for first, _ in places} == set(range(12))
    assert sum(span.probability for span in spans.best) + spans.null_probability == pytest.approx(1)


def test_no_answer_has_the_lowest_score_of_all_windows():
    tokens = [
        WindowLogits(0, slice(0, 2), np.float32([0, 0]), np.float32([0, 0]), 7.0),
        WindowLogits(2, slice(0, 2), np.float32([0, 3]), np.float32([0, 1]), -2.0),
    ]
    answer = best_spans(tokens, max_answer_length=2, may_be_none=True)
    assert (answer.best[0].first, answer.best[0].last, answer.null_score) == (3, 3, -6.0)


def test_an_answer_ends_in_its_own_window_and_within_the_longest_length():
    low, high = np.float32(-9), np.float32(9)
    starts, ends = np.float32([high, low, low, low]), np.float32([low, low, 1, high])
    one = WindowLogits(0, slice(0, 4), starts, ends, 0.0)
    assert best_spans([one], max_answer_length=4).best[0][:2] == (0, 3)
    assert best_spans([one], max_answer_length=3).best[0][:2] == (0, 2)


def test_a_text_without_a_token_has_no_span():
    nothing = WindowLogits(0, slice(0, 0), np.float32([]), np.float32([]), 2.0)
    assert best_spans([nothing], max_answer_length=3, count=4) == ([], 0.0, 0.0)
    assert best_spans([nothing], max_answer_length=3, may_be_none=True) == ([], 0.0, 1.0)


def test_large_logits_do_not_overflow():
    large = WindowLogits(0, slice(0, 2), np.float32([4e4, -4e4]), np.float32([4e4, -4e4]), -4e4)
    answer = best_spans([large], max_answer_length=2, may_be_none=True)
    assert answer.best[0].probability == 1.0 and answer.null_probability == 0.0
