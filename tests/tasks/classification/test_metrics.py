"""Figures against scikit-learn and scipy, on random and on adversarial answers."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from keras_bert.tasks.classification.decode import example_weights
from keras_bert.tasks.classification.metrics import (
    classification_metrics,
    multi_label_metrics,
    pearson,
    score_metrics,
    spearman,
)
from keras_bert.tasks.metrics import calibration
from tests.seeds import make_rng

RNG = make_rng(11)


def labelled(count, classes):
    return RNG.integers(0, classes, count), RNG.dirichlet(np.ones(classes), count)


@pytest.mark.parametrize(
    "expected, probabilities",
    [
        labelled(500, 2),
        labelled(300, 5),
        labelled(1, 2),
        (np.array([0, 0, 0, 1]), np.eye(2)[[0, 0, 0, 0]]),  # one side constant
        (np.array([1, 1, 1]), np.eye(2)[[1, 1, 1]]),
        (np.array([0, 1, 0, 1]), np.eye(2)[[1, 0, 1, 0]]),  # all wrong
        (np.array([0, 1]), np.full((2, 2), 0.5)),  # ties
        (np.array([1, 0]), np.array([[0.5 - 1e-9, 0.5 + 1e-9]] * 2)),  # nearly
    ],
)
def test_one_label(expected, probabilities):
    count = probabilities.shape[1]
    scores = classification_metrics(expected, probabilities, labels=list(map(str, range(count))))
    predicted = probabilities.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matthews = metrics.matthews_corrcoef(expected, predicted)
    assert scores["accuracy"] == metrics.accuracy_score(expected, predicted)
    assert scores["matthews"] == matthews
    for average in ("macro", "micro"):
        expected_f1 = metrics.f1_score(expected, predicted, average=average, zero_division=0)
        assert scores[f"{average}_f1"] == expected_f1
    if count == 2:
        positive = metrics.f1_score(expected, predicted, pos_label=1, zero_division=0)
        assert scores["f1"] == positive
        assert scores["accuracy_and_f1"] == (positive + scores["accuracy"]) / 2
    else:
        assert "f1" not in scores
    assert sum(bin_["examples"] for bin_ in scores["calibration"]) == len(expected)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_several_labels(fraction):
    expected = RNG.random((200, 4)) < 0.3
    probabilities = RNG.random((200, 4))
    predicted = probabilities < fraction
    scores = multi_label_metrics(expected, predicted, probabilities, labels=list("abcd"))
    for average in ("macro", "micro"):
        reference = metrics.f1_score(expected, predicted, average=average, zero_division=0)
        assert scores[f"{average}_f1"] == pytest.approx(reference, abs=1e-15)
    assert scores["subset_accuracy"] == metrics.accuracy_score(expected, predicted)
    sequences = metrics.precision_recall_fscore_support(expected, predicted, zero_division=0)
    for place, label in enumerate("abcd"):
        mine = [scores["labels"][label][k] for k in ("precision", "recall", "f1", "examples")]
        np.testing.assert_allclose(mine, [row[place] for row in sequences], atol=1e-15)
    tables = metrics.multilabel_confusion_matrix(expected, predicted)
    assert scores["confusion"] == tables.tolist()


X = RNG.normal(size=400)


@pytest.mark.parametrize(
    "x, y",
    [
        (X, X + RNG.normal(size=400)),
        (X, -X),
        (X, X**3),
        (RNG.integers(0, 4, 300), RNG.integers(0, 3, 300)),  # ties
        (np.array([1.0, 2.0]), np.array([2.0, 1.0])),
        (1e8 + X, X * 1e-8 + 3),
        (np.r_[X, 1e6], np.r_[-X, 1e6]),  # one outlier
    ],
)
def test_correlations(x, y):
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("x, y", [([3.0], [4.0]), ([2, 2, 2], [1, 2, 3]), ([1, 2], [0.1, 0.1])])
def test_a_correlation_that_is_not_defined_is_zero_without_a_warning(x, y, recwarn):
    assert pearson(x, y) == spearman(x, y) == pearson(y, x) == 0
    assert not recwarn.list


def test_scores():
    scores = score_metrics(X, X + 1)
    assert scores["mse"] == pytest.approx(1) and scores["examples"] == 400
    assert scores["pearson"] == pytest.approx(1) and scores["pearson_and_spearman"] <= 1


def test_calibration_by_hand():
    bins = calibration([0.0, 0.05, 0.55, 0.5, 1.0, 0.999], [1, 0, 1, 0, 1, 0])
    assert [bin_["examples"] for bin_ in bins] == [2, 0, 0, 0, 0, 2, 0, 0, 0, 2]
    assert bins[0] == {"confidence": 0.025, "accuracy": 0.5, "examples": 2}
    assert bins[9]["confidence"] == pytest.approx(0.9995)
    assert bins[1] == {"confidence": 0.0, "accuracy": 0.0, "examples": 0}


def test_balanced_weights_give_every_label_the_same_sum():
    numbers = np.array([0, 0, 0, 2, 2, 3])
    weights = example_weights(numbers, "balanced")
    sums = [weights[numbers == label].sum() for label in (0, 2, 3)]
    assert sums == pytest.approx([2, 2, 2]) and weights.mean() == pytest.approx(1)
    assert example_weights(numbers, (2.0, 1.0, 0.5, 1.0)).tolist() == [2, 2, 2, 0.5, 0.5, 1]
