"""Metrics as functions of sums over examples, by which many samples of examples are scored at once.

A bootstrap draws the same examples thousands of times. Sums of a sample are a product of its counts
and a matrix with a row per example; the metrics follow from the sums.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

LABELS = "labels"  # the part with `label_counts`


@dataclass(frozen=True, kw_only=True)
class SummedMetrics:
    """Official metrics of N examples, and of any sample of them.

    Attributes:
        parts: {name: what is summed, a SciPy array (N, K) or NumPy's (N, K) or (N,)}.
        metrics: a function from {name: sums (..., K)} to {name of an official metric: (...)}; those
            of an array (N,) are (...). A ratio without cases is as in the official metric.
        labels: the names of the labels that the part "labels" has (see `label_counts`).
    """

    parts: dict
    metrics: Callable
    labels: Sequence[str] = ()

    def metrics_of_samples(self, counts):
        """Returns ({metric: (R,)}, F1 (R, L) by label) of R samples.

        `counts` (R, N) is how often each example is in a sample.
        """
        sums = {name: counts @ part for name, part in self.parts.items()}
        by_label = np.zeros((len(counts), 0))
        if self.labels:
            by_label = f1(*counts_of_labels(sums))
        return self.metrics(sums), by_label

    @property
    def count(self):
        """N."""
        return next(iter(self.parts.values())).shape[0]


def label_counts(triples: Iterable[tuple[Iterable, Iterable, Iterable]], labels: Sequence):
    """Counts correct, predicted and expected labels in each example: (N, 3 L), sparse.

    `triples` are for each example the correct, the predicted and the expected labels; labels that
    are not among `labels` are left out.
    """
    numbers = {label: number for number, label in enumerate(labels)}
    rows, columns, values, count = [], [], [], 0
    for row, triple in enumerate(triples):
        count = row + 1
        for side, labels_of_side in enumerate(triple):
            for label, times in Counter(labels_of_side).items():
                if label in numbers:
                    rows.append(row)
                    columns.append(side * len(labels) + numbers[label])
                    values.append(float(times))
    shape = count, 3 * len(labels)
    return sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=shape))


def counts_of_labels(sums):
    """{"labels": (..., 3 L), …} -> correct, predicted and expected, each (..., L)."""
    return np.split(sums[LABELS], 3, axis=-1)


def ratio(numerators, denominators, *, empty=0.0):
    """A quotient, and `empty` if the denominator is 0."""
    is_empty = denominators == 0
    return np.where(is_empty, empty, numerators / np.where(is_empty, 1.0, denominators))


def f1(correct, predicted, expected):
    """2 TP / (predicted + expected)."""
    return ratio(2 * correct, predicted + expected)


def precision_recall_f1(correct, predicted, expected):
    """The metrics `precision`, `recall` and `f1` of sums of any shape."""
    return {
        "precision": ratio(correct, predicted),
        "recall": ratio(correct, expected),
        "f1": f1(correct, predicted, expected),
    }


def scores_over_labels(correct, predicted, expected):
    """`precision_recall_f1` over all labels together (micro)."""
    return precision_recall_f1(*(side.sum(axis=-1) for side in (correct, predicted, expected)))


def macro_f1(correct, predicted, expected):
    """The mean F1 of the labels that are expected or predicted; (..., L) -> (...)."""
    occurring = predicted + expected > 0
    return ratio(f1(correct, predicted, expected).sum(axis=-1), occurring.sum(axis=-1))


def matthews(correct, predicted, expected):
    """The correlation coefficient of one label per example; 0 if one side is constant."""
    total = expected.sum(axis=-1)
    covariance = correct.sum(axis=-1) * total - (predicted * expected).sum(axis=-1)
    variances = [total**2 - (side**2).sum(axis=-1) for side in (predicted, expected)]
    return ratio(covariance, np.sqrt(variances[0] * variances[1]))


def moments(x, y):
    """The part (N, 6) of which `pearson` is a function: 1, x, y, x², y² and x y, around the means.

    Both are centred, so that differences of large sums lose no digits.
    """
    x, y = (np.asarray(side, np.float64) for side in (x, y))
    x, y = x - x.mean(), y - y.mean()
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def pearson(sums):
    """The linear correlation of the sums of `moments`, (..., 6) -> (...); 0 if one is constant."""
    count, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    covariance = ratio(xy - ratio(x * y, count), count)
    variances = [ratio(s2 - ratio(s * s, count), count) for s, s2 in ((x, xx), (y, yy))]
    tiny = np.finfo(np.float64).eps * np.maximum(*(ratio(s2, count) for s2 in (xx, yy)))
    is_constant = (variances[0] <= tiny) | (variances[1] <= tiny)
    product = np.sqrt(np.where(is_constant, 1.0, variances[0] * variances[1]))
    return np.where(is_constant, 0.0, covariance / product)


def right_alone(is_right):
    """The `SummedMetrics` of a task without others: `right`, the fraction of right examples."""
    is_correct = np.asarray(is_right, np.float64)
    return SummedMetrics(
        parts={"right": is_correct, "examples": np.ones(len(is_correct))},
        metrics=lambda sums: {"right": ratio(sums["right"], sums["examples"])},
    )
