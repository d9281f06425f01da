"""When a run ends by itself: a rule over its records."""

from types import SimpleNamespace

import pytest

from keras_bert.training.parts.early_stopping import (
    PREDICTED_LABELS,
    EarlyStopping,
    evaluations_without_gain,
    patience_of,
)
from keras_bert.training.selection import best_record
from tests.seeds import make_rng

NAN = float("nan")


def records(*pairs, labels=()):
    """Records of (F1, loss), None for one without an evaluation, and the labels predicted."""
    evaluated = [
        {} if pair is None else {"eval": {"f1": pair[0], "loss": pair[1]}} for pair in pairs
    ]
    for record, count in zip(evaluated, labels, strict=False):
        record["eval"][PREDICTED_LABELS] = count
    return evaluated


@pytest.mark.parametrize(
    "pairs, expected",
    [
        ([], 0),
        ([None], 0),
        ([(0.5, 1.0)], 0),
        ([(0.5, 1.0), None, (0.5, 1.0), (0.4, 1.1)], 2),
        ([(0.5, 1.0), (0.4, 1.1), None, (0.6, 1.2), None], 0),  # a better metric
        ([(0.5, 1.0), (0.4, 1.1), (0.4, 0.98)], 0),  # a lower loss
        ([(0.5, 1.0), (0.5, 0.995), (0.5, 0.992)], 2),  # not clearly lower
        ([(0.5, 1.0), (0.5, 0.995), (0.5, 0.985)], 0),  # slowly, but so far
        ([(NAN, NAN), (0.5, 0.9), (NAN, NAN)], 1),
        ([(None, 1.0), (0.5, None), (0.5, NAN)], 1),
        ([(0.0, 1.0), (0.0, 1.0), (-0.1, 2.0)], 0),  # nothing is right yet
    ],
)
def test_evaluations_count_from_the_last_that_brought_something(pairs, expected):
    assert evaluations_without_gain(records(*pairs), "f1") == expected


def test_a_model_that_predicts_one_label_for_everything_goes_on():
    stuck = [(0.3, 1.0)] * 9
    assert evaluations_without_gain(records(*stuck), "f1") == 8
    assert evaluations_without_gain(records(*stuck, labels=[1] * 9), "f1") == 0
    # What it did before it predicts a second label does not count, nor does a way back.
    assert evaluations_without_gain(records(*stuck, labels=[1] * 7 + [2] * 2), "f1") == 2
    assert evaluations_without_gain(records(*stuck, labels=[2] * 8 + [1]), "f1") == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_ended_stays_ended(seed):
    """A resumed run has the records up to its last checkpoint, and ends where the whole one did."""
    rng = make_rng(seed)
    curve = records(*zip(rng.uniform(size=60).round(1), rng.uniform(size=60), strict=True))
    stopping = EarlyStopping("f1", patience=5)
    over = [number for number in range(61) if stopping.is_over(curve[:number])]
    assert over and stopping.is_over(curve[: over[0]])
    assert not any(stopping.is_over(curve[:number]) for number in range(over[0]))


def settings(**changes):
    given = {"patience": None, "epochs": 40, "keep": "best", "gradual_unfreezing": False}
    given["contrastive"] = False
    return SimpleNamespace(**given | changes)


@pytest.mark.parametrize(
    "changes, patience",
    [
        ({}, 8),
        ({"epochs": 3}, 3),  # never ends before its last epoch
        ({"keep": "last"}, 0),
        ({"keep": "last", "patience": 2}, 2),
        ({"gradual_unfreezing": True}, 0),
        ({"contrastive": True}, 0),
        ({"patience": 0}, 0),
    ],
)
def test_the_default_depends_on_the_epochs_and_on_what_is_kept(changes, patience):
    stopping = EarlyStopping("f1", patience_of(settings(**changes)))
    assert stopping.patience == patience
    endless = records(*[(0.5, 1.0)] * 1000)
    assert stopping.is_over(endless) == (patience > 0)


def test_of_equal_metrics_the_lower_loss_is_the_best():
    for pairs, best in (
        ([(0.5, 0.9), (0.5, 0.7), (0.5, 0.8)], 1),
        ([(0.5, 0.7), (0.5, 0.7)], 0),
        ([(0.5, 0.1), (0.6, 0.9)], 1),
        ([(0.5, NAN), (0.5, 0.9), (0.4, 0.1)], 1),
        ([(0.5, 0.9), (0.5, NAN), (0.5, None)], 0),
    ):
        history = records(*pairs)
        assert best_record(history, "f1") is history[best]


def test_nan_is_never_the_best_metric():
    nan = {"eval": {"f1": NAN}}
    left_out = {"eval": {"loss": 1.0}}  # as the curve has it
    low, high = ({"eval": {"f1": value}} for value in (-1.0, 0.5))
    for first in (nan, left_out):
        assert best_record([first, low, high, nan], "f1") is high
        assert best_record([first, low], "f1") is low
        assert best_record([first, nan], "f1") is first
