"""How well labels were predicted."""

import numpy as np
from sklearn import metrics


def classification_metrics(expected, probabilities, *, labels):
    """The official measures of a classifier, as JSON can hold them.

    Shapes: expected int (N,), probabilities float (N, C), `labels` the C names.

    `accuracy`; `macro_f1` and `micro_f1` (the macro average is over the labels that occur in the
    data or among the answers); `matthews`, the correlation coefficient (0 where one side is
    constant); `cross_entropy` in nats; `examples`; for each label its `precision`, `recall`, `f1`
    and `examples`; and `confusion`, whose row is the expected and whose column the predicted label,
    in the order of `labels`. A ratio without cases is 0.
    """
    probabilities = np.asarray(probabilities, np.float32)
    predicted = probabilities.argmax(axis=-1)
    numbers = np.arange(len(labels))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        expected, predicted, labels=numbers, zero_division=0
    )
    constant = len({*expected.tolist(), *predicted.tolist()}) == 1
    chosen = probabilities[np.arange(len(expected)), expected]
    smallest = np.finfo(np.float32).tiny  # a probability of 0 in float32 is not one in truth
    return {
        "accuracy": float(metrics.accuracy_score(expected, predicted)),
        "macro_f1": float(metrics.f1_score(expected, predicted, average="macro", zero_division=0)),
        "micro_f1": float(metrics.f1_score(expected, predicted, average="micro", zero_division=0)),
        "matthews": 0.0 if constant else float(metrics.matthews_corrcoef(expected, predicted)),
        "cross_entropy": float(-np.log(np.maximum(chosen, smallest)).mean()),
        "examples": len(expected),
        "labels": {
            label: {
                "precision": float(precision[number]),
                "recall": float(recall[number]),
                "f1": float(f1[number]),
                "examples": int(support[number]),
            }
            for number, label in enumerate(labels)
        },
        "confusion": metrics.confusion_matrix(expected, predicted, labels=numbers).tolist(),
    }
