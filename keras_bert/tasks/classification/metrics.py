"""The official metrics of classifiers and regressors."""

import numpy as np
from scipy import sparse, stats
from sklearn import metrics

from keras_bert.tasks import summed_metrics as summed
from keras_bert.tasks.metrics import calibration, cross_entropies, mean_cross_entropy


def pearson(x, y):
    """The linear correlation of x (N,) and y (N,), from -1 to 1.

    0 if it is undefined: for fewer than two numbers, or if one side is constant.
    """
    x, y = (np.asarray(numbers, np.float64) for numbers in (x, y))
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return 0.0
    return float(stats.pearsonr(x, y).statistic)


def spearman(x, y):
    """The rank correlation; equal numbers have the mean of their ranks. 0 as in `pearson`."""
    return pearson(stats.rankdata(x), stats.rankdata(y))


def classification_metrics(expected, probabilities, *, labels):
    """The official metrics of a classifier, as JSON values.

    Shapes: expected int (N,), probabilities float (N, C), `labels` the C names, and behind them
    those of labels that are expected and that the model does not have.

    `accuracy`; `macro_f1` (over the labels that are expected or predicted) and `micro_f1`;
    `matthews`, the correlation coefficient (0 if one side is constant); for a model of two labels
    `f1`, that of the last one, and `accuracy_and_f1`, the mean of the two; `cross_entropy` in nats,
    over the examples whose label the model has; `examples`; for each label under `labels` its
    `precision`, `recall`, `f1` and `examples`; `confusion`, with expected labels as rows and
    predicted ones as columns, in the order of `labels`; and `calibration` (see there). A ratio
    without cases is 0.
    """
    probabilities = np.asarray(probabilities, np.float64)  # rounding might create ties
    predicted = probabilities.argmax(axis=-1)
    numbers = np.arange(len(labels))
    by_label = metrics.precision_recall_fscore_support(
        expected, predicted, labels=numbers, zero_division=0
    )
    known = np.flatnonzero(expected < probabilities.shape[1])
    constant = len({*expected.tolist(), *predicted.tolist()}) == 1
    accuracy = float(metrics.accuracy_score(expected, predicted))
    binary_metrics = {}
    if probabilities.shape[1] == 2:
        f1 = float(by_label[2][1])
        binary_metrics = {"f1": f1, "accuracy_and_f1": (accuracy + f1) / 2}
    return {
        "accuracy": accuracy,
        "macro_f1": float(metrics.f1_score(expected, predicted, average="macro", zero_division=0)),
        "micro_f1": float(metrics.f1_score(expected, predicted, average="micro", zero_division=0)),
        "matthews": 0.0 if constant else float(metrics.matthews_corrcoef(expected, predicted)),
        **binary_metrics,
        "cross_entropy": mean_cross_entropy(probabilities[known, expected[known]]),
        "examples": len(expected),
        "labels": _by_label(labels, by_label),
        "confusion": metrics.confusion_matrix(expected, predicted, labels=numbers).tolist(),
        "calibration": calibration(probabilities.max(axis=-1), predicted == expected),
    }


def summed_classification(expected, probabilities, *, labels):
    """The `SummedMetrics` of a classifier; arguments are those of `classification_metrics`."""
    probabilities = np.asarray(probabilities, np.float64)
    predicted = probabilities.argmax(axis=-1)
    has_label = expected < probabilities.shape[1]
    numbers = np.arange(len(expected))
    expected_probabilities = probabilities[numbers, np.where(has_label, expected, 0)]
    losses = np.where(has_label, cross_entropies(expected_probabilities), 0.0)
    pairs = zip(expected.tolist(), predicted.tolist(), strict=True)
    counts = summed.label_counts(
        (([true] if true == guess else [], [guess], [true]) for true, guess in pairs),
        range(len(labels)),
    )
    is_of_two = probabilities.shape[1] == 2

    def metrics_of_sums(sums):
        by_label = correct, _, true = summed.counts_of_labels(sums)
        accuracy = summed.ratio(correct.sum(axis=-1), true.sum(axis=-1))
        binary_metrics = {}
        if is_of_two:
            f1 = summed.f1(*by_label)[..., 1]
            binary_metrics = {"f1": f1, "accuracy_and_f1": (accuracy + f1) / 2}
        return {
            "accuracy": accuracy,
            "macro_f1": summed.macro_f1(*by_label),
            "micro_f1": accuracy,
            "matthews": summed.matthews(*by_label),
            **binary_metrics,
            "cross_entropy": summed.ratio(sums["losses"], sums["has_label"]),
        }

    parts = {"labels": counts, "losses": losses, "has_label": has_label.astype(np.float64)}
    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums, labels=labels)


def summed_multi_label(expected, predicted, *, labels):
    """The `SummedMetrics` of several labels; arguments are those of `multi_label_metrics`."""
    sides = (expected & predicted, predicted, expected)
    parts = {
        "labels": sparse.csr_array(np.concatenate(sides, axis=1).astype(np.float64)),
        "right": (expected == predicted).all(axis=1).astype(np.float64),
        "examples": np.ones(len(expected)),
    }

    def metrics_of_sums(sums):
        by_label = summed.counts_of_labels(sums)
        return {
            "subset_accuracy": summed.ratio(sums["right"], sums["examples"]),
            "micro_f1": summed.scores_over_labels(*by_label)["f1"],
            "macro_f1": summed.f1(*by_label).mean(axis=-1),
        }

    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums, labels=labels)


def multi_label_metrics(expected, predicted, probabilities, *, labels):
    """The official metrics for texts with any number of labels, as JSON values.

    Shapes: expected and predicted bool (N, D), of the D names `labels`, and probabilities float
    (N, C) of the first C, those that the model has.

    `subset_accuracy`, the fraction of texts with all labels right; `micro_f1`, over all decisions;
    `macro_f1`, the mean over all labels; `examples`; for each label under `labels` its `precision`,
    `recall`, `f1` and `examples`; `confusion`, for each label in their order a table of texts, with
    rows for those without and with it as expected and columns as predicted; and `calibration` over
    all decisions of the model (see there). A ratio without cases is 0.
    """
    by_label = metrics.precision_recall_fscore_support(expected, predicted, zero_division=0)
    probabilities = np.asarray(probabilities, np.float64)
    known = slice(None), slice(probabilities.shape[1])
    confidence = np.where(predicted[known], probabilities, 1 - probabilities)
    return {
        "subset_accuracy": float(metrics.accuracy_score(expected, predicted)),
        "micro_f1": float(metrics.f1_score(expected, predicted, average="micro", zero_division=0)),
        "macro_f1": float(by_label[2].mean()),
        "examples": len(expected),
        "labels": _by_label(labels, by_label),
        "confusion": metrics.multilabel_confusion_matrix(expected, predicted).tolist(),
        "calibration": calibration(confidence.ravel(), (expected == predicted)[known].ravel()),
    }


def _by_label(labels, columns):
    """Scikit-learn's arrays (C,) of precision, recall, F1 and support -> dictionaries by label."""
    names = ("precision", "recall", "f1", "examples")
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        label: dict(zip(names, row, strict=True)) for label, row in zip(labels, rows, strict=True)
    }


def score_metrics(expected, predicted):
    """The official metrics of scores, as JSON values.

    Shapes: expected and predicted float (N,).

    `pearson` and `spearman` (0 if one side is constant), `pearson_and_spearman`, the mean of the
    two, `mse`, the mean squared error, and `examples`.
    """
    expected, predicted = (np.asarray(x, np.float64) for x in (expected, predicted))
    linear, rank_correlation = pearson(expected, predicted), spearman(expected, predicted)
    return {
        "pearson": linear,
        "spearman": rank_correlation,
        "pearson_and_spearman": (linear + rank_correlation) / 2,
        "mse": float(np.mean((expected - predicted) ** 2)),
        "examples": len(expected),
    }


def summed_scores(expected, predicted):
    """The `SummedMetrics` of scores, without those of ranks; arguments as in `score_metrics`."""
    expected, predicted = (np.asarray(x, np.float64) for x in (expected, predicted))
    parts = {
        "moments": summed.moments(expected, predicted),
        "squares": (expected - predicted) ** 2,
    }

    def metrics_of_sums(sums):
        count = sums["moments"][..., 0]
        return {
            "pearson": summed.pearson(sums["moments"]),
            "mse": summed.ratio(sums["squares"], count),
        }

    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums)
