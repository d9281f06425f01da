"""Metrics that several tasks share: ratios per label and calibration."""

import numpy as np

_BINS = 10


def worst_first(errors, *, by="score"):
    """The dictionaries of `Task.errors` by falling values of a key."""
    return sorted(errors, key=lambda error: -error[by])


def precision_recall_f1(correct, predicted, expected):
    """`precision`, `recall` and `f1` of three counts; a ratio without cases is 0."""
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / expected if expected else 0.0,
        "f1": 2 * correct / (predicted + expected) if predicted + expected else 0.0,
    }


def metrics_per_label(labels, correct, predicted, expected):
    """`precision_recall_f1` and `examples` (those expected) by label, from `Counter`s of labels."""
    return {
        label: {
            **precision_recall_f1(correct[label], predicted[label], expected[label]),
            "examples": expected[label],
        }
        for label in labels
    }


def macro_f1(labels, correct, predicted, expected):
    """The mean F1 of the labels that are expected or predicted anywhere."""
    occurring = [label for label in labels if predicted[label] or expected[label]]
    ratios = metrics_per_label(occurring, correct, predicted, expected).values()
    return float(np.mean([metrics["f1"] for metrics in ratios])) if occurring else 0.0


def confusion_matrix(pairs, labels):
    """A `Counter` of (expected, predicted) as a list of rows, one per expected label."""
    return [[pairs[expected, predicted] for predicted in labels] for expected in labels]


def calibration(confidence, correct):
    """Ten bins of equal width: are predictions with a confidence of 0.7 right 7 times in 10?

    Shapes: confidence float (N,) from 0 to 1, correct bool (N,).

    Returns a list of the bins from 0 to 1, each with the mean `confidence`, the `accuracy` and the
    number of `examples`; a bin without examples has 0 in all three. 1 is in the last bin.
    """
    confidence, correct = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    bins = np.clip((confidence * _BINS).astype(int), 0, _BINS - 1)
    counts, confidences, hits = (
        np.bincount(bins, weights=weights, minlength=_BINS)
        for weights in (None, confidence, correct)
    )
    means, accuracies = (sums / np.maximum(counts, 1) for sums in (confidences, hits))
    return [
        {"confidence": float(mean), "accuracy": float(accuracy), "examples": int(count)}
        for mean, accuracy, count in zip(means, accuracies, counts, strict=True)
    ]


def cross_entropies(probabilities):
    """-log p in nats of the probabilities (N,) of the expected labels."""
    smallest = np.finfo(np.float32).tiny  # a float32 probability may underflow to 0
    return -np.log(np.maximum(probabilities, smallest))


def mean_cross_entropy(probabilities):
    """The mean of `cross_entropies`."""
    return float(cross_entropies(probabilities).mean())
