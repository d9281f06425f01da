"""Numbers that are fitted on dev data after training: a temperature, a threshold per label."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.metrics import precision_recall_curve

from keras_bert.tasks.metrics import calibration

_LEAST_LOGARITHM, _MOST_LOGARITHM = -5.0, 5.0  # of a temperature
_MARGIN = 1e-6  # of a threshold from 0 and 1


def fitted_temperature(logits, numbers):
    """The temperature of Guo et al. 2017: logits divided by it have the lowest cross-entropy.

    Shapes: logits (N, C), numbers int (N,), those of the true labels; -1 is a label that the model
    does not have, which is left out. 1 if nothing is left, or if every label has the highest
    logit: the cross-entropy then falls with the temperature to 0, at which all probabilities are 1.
    """
    logits, numbers = logits[numbers >= 0].astype(np.float64), numbers[numbers >= 0]

    def cross_entropy(logarithm):
        log_probabilities = log_softmax(logits / np.exp(logarithm), axis=-1)
        return -log_probabilities[np.arange(len(numbers)), numbers].mean()

    if (logits.argmax(axis=-1) == numbers).all():
        return 1.0
    return _best(cross_entropy)


def fitted_temperature_of_decisions(logits, matrix):
    """Fits a temperature of a sigmoid per label. Shapes: logits (N, C), matrix of 0 and 1."""
    logits, signs = logits.astype(np.float64), np.where(matrix > 0, 1.0, -1.0)
    if (signs * logits > 0).all():
        return 1.0
    return _best(lambda logarithm: np.logaddexp(0, -signs * logits / np.exp(logarithm)).mean())


def _best(loss):
    bounds = (_LEAST_LOGARITHM, _MOST_LOGARITHM)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def best_thresholds(probabilities, matrix, *, default):
    """For each label the threshold with the highest F1, a list of C floats.

    It is in the middle between two probabilities, so that rounding decides nothing. A label without
    examples has the `default`, and so has one whose F1 no threshold makes higher.

    Shapes: probabilities (N, C), matrix (N, C) of 0 and 1.
    """
    columns = zip(np.asarray(probabilities, np.float64).T, matrix.T > 0, strict=True)
    return [_best_threshold(*column, default=default) for column in columns]


def _best_threshold(probabilities, expected, *, default):
    if not expected.any():
        return default
    precision, recall, thresholds = precision_recall_curve(expected, probabilities)
    f1 = 2 * precision * recall / np.maximum(precision + recall, np.finfo(float).tiny)
    # Scikit-learn predicts what is at least the threshold; the last point predicts nothing.
    given = probabilities > default
    if f1.max() <= 2 * (given & expected).sum() / (given.sum() + expected.sum()):
        return default
    best = thresholds[f1[:-1].argmax()]
    lower = probabilities[probabilities < best].max(initial=0.0)
    return float(np.clip((best + lower) / 2, _MARGIN, 1 - _MARGIN))


def expected_calibration_error(bins):
    """The mean distance of accuracy and confidence over all examples, from bins of `calibration`.

    See Guo et al. 2017.
    """
    counts, confidences, accuracies = (
        np.array([one[name] for one in bins], np.float64)
        for name in ("examples", "confidence", "accuracy")
    )
    return float(counts @ np.abs(confidences - accuracies) / max(1.0, counts.sum()))


def error_of_labels(logits, numbers):
    """The `expected_calibration_error` of the most probable labels; shapes as above."""
    probabilities = softmax(logits.astype(np.float64), axis=-1)
    best = probabilities.argmax(axis=-1)
    return expected_calibration_error(calibration(probabilities.max(axis=-1), best == numbers))


def error_of_decisions(logits, matrix):
    """The `expected_calibration_error` of the probabilities of all labels; shapes as above."""
    probabilities = expit(logits.astype(np.float64))
    return expected_calibration_error(calibration(probabilities.ravel(), matrix.ravel() > 0))
