"""MUC, B³ and CEAFφ4 of clusters of mentions, as the scorer of CoNLL-2012 counts them.

Each is a ratio of sums over all documents (Pradhan et al. 2014). A mention that is predicted and
not expected, or the reverse, is one more that is in no cluster of the other side.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment


def _muc(common, expected, predicted):
    """Links (Vilain et al. 1995): a cluster of n mentions has n - 1."""
    correct = np.sum(np.maximum(common - 1, 0))
    return correct, np.sum(expected - 1), correct, np.sum(predicted - 1)


def _b_cubed(common, expected, predicted):
    """The mean over mentions of how much of their cluster is right (Bagga and Baldwin 1998)."""
    recall = np.sum(common**2 / expected[:, None])
    precision = np.sum(common**2 / predicted)
    return recall, np.sum(expected), precision, np.sum(predicted)


def _ceaf(common, expected, predicted):
    """Clusters matched one to one for the greatest sum of φ4, Dice's coefficient (Luo 2005)."""
    similarity = 2 * common / (expected[:, None] + predicted)
    matched = similarity[linear_sum_assignment(similarity, maximize=True)].sum()
    return matched, len(expected), matched, len(predicted)


def _mentions(common, expected, predicted):
    """Mentions with exactly the expected words."""
    right = np.sum(common)
    return right, np.sum(expected), right, np.sum(predicted)


_METRICS = {"muc": _muc, "b_cubed": _b_cubed, "ceaf": _ceaf, "mention": _mentions}
# The official score is the mean of these.
_OFFICIAL = ("muc", "b_cubed", "ceaf")


def coreference_metrics(expected, predicted):
    """The official metrics of documents, as JSON can hold them.

    Args:
        expected, predicted: for each document a list of clusters, each a set of mentions.

    Returns:
        `f1`, the mean of the F1 of MUC, B³ and CEAFφ4; `muc_f1`, `muc_precision`, `muc_recall`, and
        so on for `b_cubed`, `ceaf` and `mention` (mentions, whatever their cluster); `examples`
        (documents), `mentions` and `clusters` (expected). A ratio without cases is 0.
    """
    sums = {name: np.zeros(4) for name in _METRICS}
    for clusters, answers in zip(expected, predicted, strict=True):
        common = np.array(
            [[len(set(one) & set(other)) for other in answers] for one in clusters], np.float64
        ).reshape(len(clusters), len(answers))
        sizes = [np.array([len(c) for c in side], np.float64) for side in (clusters, answers)]
        for name, metric in _METRICS.items():
            sums[name] += metric(common, *sizes)
    metrics = {}
    for name, (right, expected_count, correct, predicted_count) in sums.items():
        recall = right / expected_count if expected_count else 0.0
        precision = correct / predicted_count if predicted_count else 0.0
        both = precision + recall
        metrics[f"{name}_f1"] = float(2 * precision * recall / both) if both else 0.0
        metrics[f"{name}_precision"], metrics[f"{name}_recall"] = float(precision), float(recall)
    return {
        "f1": float(np.mean([metrics[f"{name}_f1"] for name in _OFFICIAL])),
        **metrics,
        "examples": len(expected),
        "mentions": sum(len(cluster) for clusters in expected for cluster in clusters),
        "clusters": sum(map(len, expected)),
    }
