"""SQuAD's official metrics, 1.1 and 2.0 (Rajpurkar et al. 2016 and 2018).

Values are from 0 to 1; the official programs print them times 100.
"""

import math
import re
import string
from collections import Counter

import numpy as np

from keras_bert.tasks.summed_metrics import SummedMetrics, ratio

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(text):
    """Lower case, without ASCII punctuation, articles (a, an, the) and extra white space."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact(prediction, gold):
    """1.0 if two texts are equal once `normalized`, else 0.0."""
    return float(normalized(prediction) == normalized(gold))


def overlap(prediction, gold, *, version=2):
    """F1 of two texts as bags of normalized words.

    If one has no word, it is 1.0 if both have none, else 0.0; by the rules of version 1, 0.0.
    """
    predicted_words, gold_words = normalized(prediction).split(), normalized(gold).split()
    if version == 2 and not (predicted_words and gold_words):
        return float(predicted_words == gold_words)
    common = sum((Counter(predicted_words) & Counter(gold_words)).values())
    if not common:
        return 0.0
    precision, recall = common / len(predicted_words), common / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def scores_of(prediction, golds, *, version=2):
    """(exact, f1) of an answer, each the best over the gold answers.

    In version 2 gold answers without a word do not count; if none is left, no answer ("") is right.
    """
    if version == 2:
        golds = [gold for gold in golds if normalized(gold)] or [""]
    return (
        max(exact(prediction, gold) for gold in golds),
        max(overlap(prediction, gold, version=version) for gold in golds),
    )


def squad_1(predictions, golds):
    """The metrics of version 1.1: `exact`, `f1` and `total`.

    Args:
        predictions: a list of texts; None for a missing one, which counts as wrong.
        golds: a list of the gold answers of each question, one or more.
    """
    scores = np.array(
        [
            (0.0, 0.0) if prediction is None else scores_of(prediction, texts, version=1)
            for prediction, texts in zip(predictions, golds, strict=True)
        ]
    )
    return _metrics(scores)


def squad_2(predictions, golds):
    """The metrics of version 2.0, by the official program's names.

    `exact`, `f1` and `total`, and the same over the questions with an answer (`HasAns_…`) and
    without one (`NoAns_…`), if there are any. Missing predictions are left out (the program names
    them and stops).

    Args:
        predictions: a list of texts; "" for no answer, None for a missing one.
        golds: a list of the gold answers of each question; empty if it has none.
    """
    there = _given(predictions)
    scores = _scores(predictions, golds, there)
    answerable = np.array([bool(golds[n]) for n in there], bool)
    metrics = _metrics(scores)
    for name, which in (("HasAns", answerable), ("NoAns", ~answerable)):
        if which.any():
            metrics |= {f"{name}_{metric}": v for metric, v in _metrics(scores[which]).items()}
    return metrics


def summed_squad(predictions, golds):
    """The `SummedMetrics` of `squad_1`, or of `squad_2` if some questions have no answer."""
    version = 1 if all(golds) else 2
    scores = [
        scores_of(prediction, texts, version=version)
        for prediction, texts in zip(predictions, golds, strict=True)
    ]
    answerable = np.array([bool(texts) for texts in golds])
    groups = {"": np.ones(len(golds), bool), "HasAns_": answerable, "NoAns_": ~answerable}
    if version == 1:
        groups = {"": groups[""]}
    groups = {name: which for name, which in groups.items() if which.any()}
    scores = np.reshape(np.array(scores, np.float64), (-1, 2))
    parts = {  # (N, 3): exact, F1 and 1 of the group's questions
        name: np.column_stack([scores, np.ones(len(golds))]) * which[:, None]
        for name, which in groups.items()
    }

    def metrics_of_sums(sums):
        return {
            f"{name}{metric}": ratio(sums[name][..., column], sums[name][..., 2])
            for name in groups
            for column, metric in enumerate(("exact", "f1"))
        }

    return SummedMetrics(parts=parts, metrics=metrics_of_sums)


def best_thresholds(predictions, golds, null_scores):
    """Version 2.0's metrics with the best threshold, and that threshold.

    `best_exact`, `best_exact_thresh`, `best_f1` and `best_f1_thresh`: a null score above the
    threshold means no answer. If never answering is best, it is 0.0, as in the official program.

    Args:
        predictions, golds: as in `squad_2`.
        null_scores: float (N,), higher for questions that are more likely to have no answer.
    """
    metrics = {}
    for name, (best, threshold) in _best(predictions, golds, null_scores).items():
        metrics[f"best_{name}"] = best
        metrics[f"best_{name}_thresh"] = threshold if threshold > -math.inf else 0.0
    return metrics


def tuned_threshold(predictions, golds, null_scores):
    """The threshold with the best F1, midway between its neighbouring null scores."""
    _, threshold = _best(predictions, golds, null_scores)["f1"]
    below = [score for score in null_scores if score <= threshold]
    above = [score for score in null_scores if score > threshold]
    if not below:
        return min(above) - 1.0
    return (max(below) + min(above)) / 2 if above else max(below) + 1.0


def best_threshold(scores, *, null_scores, answerable, answered):
    """(the best mean score, the highest null score at which questions are answered for it).

    Shapes, all (N,): the score of each prediction, its null score, whether the question has an
    answer, and whether one was predicted. If never answering is best, the threshold is -inf.
    """
    if not len(scores):
        return 0.0, -math.inf
    order = np.argsort(null_scores, kind="stable")
    # Answering one more question adds its score, or loses the point for rightly not answering.
    gains = np.where(answerable, scores, -answered.astype(np.float64))[order]
    nothing = float(np.sum(~answerable))
    means = np.cumsum(np.concatenate([[nothing], gains]))
    best = int(means.argmax())
    threshold = float(null_scores[order[best - 1]]) if best else -math.inf
    return float(means[best] / len(scores)), threshold


def _best(predictions, golds, null_scores):
    """{metric: `best_threshold`} for exact and f1."""
    there = _given(predictions)
    scores = _scores(predictions, golds, there)
    options = {
        "null_scores": np.asarray(null_scores, np.float64)[there],
        "answerable": np.array([bool(golds[n]) for n in there], bool),
        "answered": np.array([bool(predictions[n]) for n in there], bool),
    }
    columns = enumerate(("exact", "f1"))
    return {name: best_threshold(scores[:, column], **options) for column, name in columns}


def _given(predictions):
    return [number for number, text in enumerate(predictions) if text is not None]


def _scores(predictions, golds, numbers):
    """(N, 2): exact and f1 of these predictions, by the rules of version 2."""
    return np.array([scores_of(predictions[n], golds[n]) for n in numbers]).reshape(-1, 2)


def _metrics(scores):
    """Averages exact and f1, (N, 2)."""
    if not len(scores):
        return {"exact": 0.0, "f1": 0.0, "total": 0}
    total = len(scores)
    return {
        "exact": sum(scores[:, 0].tolist()) / total,
        "f1": sum(scores[:, 1].tolist()) / total,
        "total": total,
    }
