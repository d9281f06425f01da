"""How well labels and scores were predicted."""

import numpy as np
from scipy import stats
from sklearn import metrics

from keras_bert.tasks.metrics import calibration


def pearson(x, y):
    """The linear correlation of x (N,) and y (N,), from -1 to 1.

    0 where it is not defined: of fewer than two numbers, or where one side is constant.
    """
    x, y = (np.asarray(values, np.float64) for values in (x, y))
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return 0.0
    return float(stats.pearsonr(x, y).statistic)


def spearman(x, y):
    """The correlation of ranks; equal numbers have the mean of their ranks. 0 as in `pearson`."""
    return pearson(stats.rankdata(x), stats.rankdata(y))


def classification_metrics(expected, probabilities, *, labels):
    """The official measures of a classifier, as JSON can hold them.

    Shapes: expected int (N,), probabilities float (N, C), `labels` the C names.

    `accuracy`; `macro_f1` and `micro_f1` (the macro average is over the labels that occur in the
    data or among the answers); `matthews`, the correlation coefficient (0 where one side is
    constant); of two labels `f1`, that of the last one, and `accuracy_and_f1`, the mean of the two;
    `cross_entropy` in nats; `examples`; for each label its `precision`, `recall`, `f1` and
    `examples`; `confusion`, whose row is the expected and whose column the predicted label, in the
    order of `labels`; and `calibration` (see there). A ratio without cases is 0.
    """
    probabilities = np.asarray(probabilities, np.float64)  # rounded, they might be the same
    predicted = probabilities.argmax(axis=-1)
    numbers = np.arange(len(labels))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        expected, predicted, labels=numbers, zero_division=0
    )
    constant = len({*expected.tolist(), *predicted.tolist()}) == 1
    chosen = probabilities[np.arange(len(expected)), expected]
    smallest = np.finfo(np.float32).tiny  # a probability of 0 in float32 is not one in truth
    accuracy = float(metrics.accuracy_score(expected, predicted))
    of_two = {}
    if len(labels) == 2:
        of_two = {"f1": float(f1[1]), "accuracy_and_f1": (accuracy + float(f1[1])) / 2}
    return {
        "accuracy": accuracy,
        "macro_f1": float(metrics.f1_score(expected, predicted, average="macro", zero_division=0)),
        "micro_f1": float(metrics.f1_score(expected, predicted, average="micro", zero_division=0)),
        "matthews": 0.0 if constant else float(metrics.matthews_corrcoef(expected, predicted)),
        **of_two,
        "cross_entropy": float(-np.log(np.maximum(chosen, smallest)).mean()),
        "examples": len(expected),
        "labels": _by_label(labels, precision, recall, f1, support),
        "confusion": metrics.confusion_matrix(expected, predicted, labels=numbers).tolist(),
        "calibration": calibration(probabilities.max(axis=-1), predicted == expected),
    }


def multi_label_metrics(expected, predicted, probabilities, *, labels):
    """The official measures where a text may have any number of labels, as JSON can hold them.

    Shapes: expected and predicted bool (N, C), probabilities float (N, C), `labels` the C names.

    `subset_accuracy`, the share of texts all of whose labels are right; `micro_f1`, over all
    decisions; `macro_f1`, the mean over all labels; `examples`; for each label its `precision`,
    `recall`, `f1` and `examples`; `confusion`, for each label in their order a table of texts,
    whose rows are those without and with it as expected and whose columns as predicted; and
    `calibration` over all decisions (see there). A ratio without cases is 0.
    """
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        expected, predicted, zero_division=0
    )
    probabilities = np.asarray(probabilities, np.float64)
    confidence = np.where(predicted, probabilities, 1 - probabilities)
    return {
        "subset_accuracy": float(metrics.accuracy_score(expected, predicted)),
        "micro_f1": float(metrics.f1_score(expected, predicted, average="micro", zero_division=0)),
        "macro_f1": float(f1.mean()),
        "examples": len(expected),
        "labels": _by_label(labels, precision, recall, f1, support),
        "confusion": metrics.multilabel_confusion_matrix(expected, predicted).tolist(),
        "calibration": calibration(confidence.ravel(), (expected == predicted).ravel()),
    }


def score_metrics(expected, predicted):
    """The official measures of scores, as JSON can hold them.

    Shapes: expected and predicted float (N,).

    `pearson` and `spearman` (0 where one side is constant), `pearson_and_spearman`, the mean of the
    two, `mse`, the mean squared error, and `examples`.
    """
    expected, predicted = (np.asarray(x, np.float64) for x in (expected, predicted))
    linear, of_ranks = pearson(expected, predicted), spearman(expected, predicted)
    return {
        "pearson": linear,
        "spearman": of_ranks,
        "pearson_and_spearman": (linear + of_ranks) / 2,
        "mse": float(np.mean((expected - predicted) ** 2)),
        "examples": len(expected),
    }


def _by_label(labels, precision, recall, f1, support):
    return {
        label: {
            "precision": float(precision[number]),
            "recall": float(recall[number]),
            "f1": float(f1[number]),
            "examples": int(support[number]),
        }
        for number, label in enumerate(labels)
    }
