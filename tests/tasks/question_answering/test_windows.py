"""Windows of long texts: every law of them, and who has the most context, by brute force."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.tasks.question_answering.features import (
    context_windows,
    positions_in,
    question_limit,
)
from tests.seeds import make_rng

RNG = make_rng(3)
CASES = [
    tuple(int(RNG.integers(low, 60)) for low in (0, 1, 1))  # tokens, room, stride
    for _ in range(200)
]


def windows_of(lengths, rooms, *, stride):
    lengths, rooms = (tf.constant(x, tf.int64) for x in (lengths, rooms))
    return context_windows(lengths, rooms, stride=stride).numpy()


def one_text(length, room, stride):
    windows = windows_of([length], [room], stride=stride)
    return list(zip(windows.starts.tolist(), windows.sizes.tolist(), strict=True))


def google_bert_spans(length, room, stride):
    """`doc_spans` as google-research/bert's program is described to make them."""
    spans, first = [], 0
    while first < length:
        spans.append((first, min(length - first, room)))
        if first + spans[-1][1] == length:
            break
        first += min(spans[-1][1], stride)
    return spans


@pytest.mark.parametrize("case", [(10, 4, 2), (10, 4, 9), (4, 4, 1), (5, 4, 4), (1, 1, 1)])
def test_windows_by_hand(case):
    expected = {
        (10, 4, 2): [(0, 4), (2, 4), (4, 4), (6, 4)],
        (10, 4, 9): [(0, 4), (4, 4), (8, 2)],  # no token is left out between two windows
        (4, 4, 1): [(0, 4)],
        (5, 4, 4): [(0, 4), (4, 1)],
        (1, 1, 1): [(0, 1)],
    }
    assert one_text(*case) == expected[case]


def test_windows_are_those_of_google_bert():
    for case in CASES:
        assert one_text(*case) == (google_bert_spans(*case) or [(0, 0)])


def test_all_texts_together_have_the_windows_of_each_alone():
    lengths, rooms, _ = np.array(CASES).T
    windows = windows_of(lengths, rooms, stride=7)
    assert windows.sequence.tolist() == sorted(windows.sequence.tolist())
    for number, (length, room) in enumerate(zip(lengths, rooms, strict=True)):
        is_of_text = windows.sequence == number
        pairs = zip(windows.starts[is_of_text], windows.sizes[is_of_text], strict=True)
        assert [(int(f), int(n)) for f, n in pairs] == one_text(length, room, 7)
        covered = set()
        for first, size in one_text(length, room, 7):
            assert size <= room
            covered |= set(range(first, first + size))
        assert covered == set(range(length))


# Also some whose last window is so small that Google's hundredth of its size matters.
@pytest.mark.parametrize(
    "cases", [CASES, [(n, 201, s) for n in range(200, 640) for s in (150, 201)]]
)
def test_cores_are_googles_rule_for_every_token(cases):
    for stride in {stride for *_, stride in cases}:
        lengths, rooms = zip(*((n, room) for n, room, s in cases if s == stride), strict=True)
        windows = windows_of(lengths, rooms, stride=stride)
        for number, length in enumerate(lengths):
            is_of_text = windows.sequence == number
            first, size, core_start, core_end = (
                np.asarray(column)[is_of_text][:, None]
                for column in (
                    windows.starts,
                    windows.sizes,
                    windows.core_starts,
                    windows.core_ends,
                )
            )
            token = np.arange(length)  # (T,); one row per window
            left, right = token - first, first + size - 1 - token
            inside = (left >= 0) & (right >= 0)
            scores = np.where(inside, np.minimum(left, right) + 0.01 * size, -np.inf)
            if length:
                owner = scores.argmax(axis=0)  # the first of equal ones
                is_owner = np.arange(len(first))[:, None] == owner
                np.testing.assert_array_equal((core_start <= token) & (token < core_end), is_owner)


def test_an_answer_is_in_a_window_that_holds_all_of_it():
    windows = windows_of([10, 3], [4, 4], stride=2)
    inside, places = positions_in(windows, np.array([[5, 6], [-1, -1]]))
    assert inside.tolist() == [False, False, True, False, False]  # (0-3), (2-5), (4-7), (6-9)
    assert places[2].tolist() == [1, 2]


def test_a_question_leaves_half_of_a_row_for_the_text():
    assert question_limit(381, 64) == 64
    assert [question_limit(room, 64) for room in (2, 3, 21, 128)] == [1, 1, 10, 64]
