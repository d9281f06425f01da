"""How well questions were answered: the rules of the official SQuAD programs, 1.1 and 2.0.

Rajpurkar et al. 2016 and 2018. Figures are shares from 0 to 1; the programs print them times 100.
"""

import math
import re
import string
from collections import Counter

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text):
    """Lower case, without ASCII's punctuation, the articles a, an and the, and odd white space."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact(prediction, gold):
    """1.0 where two texts are the same as far as `normalised` goes, else 0.0."""
    return float(normalised(prediction) == normalised(gold))


def overlap(prediction, gold, *, version=2):
    """F1 of two texts as bags of normalised words.

    Where one has no word, it is 1.0 if both have none, else 0.0; by the rules of version 1, 0.0.
    """
    ours, theirs = normalised(prediction).split(), normalised(gold).split()
    if version == 2 and not (ours and theirs):
        return float(ours == theirs)
    common = sum((Counter(ours) & Counter(theirs)).values())
    if not common:
        return 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return 2 * precision * recall / (precision + recall)


def scores_of(prediction, golds, *, version=2):
    """(exact, f1) of an answer: each the best over the gold answers.

    By the rules of version 2 a gold answer without a word does not count, and where none is left,
    no answer ("") is right.
    """
    if version == 2:
        golds = [gold for gold in golds if normalised(gold)] or [""]
    return (
        max(exact(prediction, gold) for gold in golds),
        max(overlap(prediction, gold, version=version) for gold in golds),
    )


def squad_1(predictions, golds):
    """The figures of version 1.1: `exact`, `f1` and `total`.

    Args:
        predictions: a list of texts, None where one is missing, which counts as wrong.
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
    """The figures of version 2.0, by the names that the official program gives them.

    `exact`, `f1` and `total`; the same over the questions that have an answer (`HasAns_…`) and that
    have none (`NoAns_…`), where there are any. A missing prediction counts nowhere (the program
    names it and then stops).

    Args:
        predictions: a list of texts, "" for no answer, None where one is missing.
        golds: a list of the gold answers of each question, none where it has no answer.
    """
    there = _given(predictions)
    scores = _scores(predictions, golds, there)
    answerable = np.array([bool(golds[n]) for n in there], bool)
    metrics = _metrics(scores)
    for name, which in (("HasAns", answerable), ("NoAns", ~answerable)):
        if which.any():
            metrics |= {f"{name}_{metric}": v for metric, v in _metrics(scores[which]).items()}
    return metrics


def best_thresholds(predictions, golds, null_scores):
    """What version 2.0's figures could be with the best threshold, and that threshold.

    `best_exact`, `best_exact_thresh`, `best_f1` and `best_f1_thresh`: a null score above the
    threshold is to mean no answer. Where no answer at all is best, it is 0.0, as the official
    program says, which means probabilities.

    Args:
        predictions, golds: as for `squad_2`.
        null_scores: float (N,), the higher the likelier has a question no answer.
    """
    metrics = {}
    for name, (best, threshold) in _best(predictions, golds, null_scores).items():
        metrics[f"best_{name}"] = best
        metrics[f"best_{name}_thresh"] = threshold if threshold > -math.inf else 0.0
    return metrics


def tuned_threshold(predictions, golds, null_scores):
    """The threshold that is best for F1, as far as can be from the null scores beside it."""
    _, threshold = _best(predictions, golds, null_scores)["f1"]
    below = [score for score in null_scores if score <= threshold]
    above = [score for score in null_scores if score > threshold]
    if not below:
        return min(above) - 1.0
    return (max(below) + min(above)) / 2 if above else max(below) + 1.0


def best_threshold(scores, *, null_scores, answerable, answered):
    """(the best mean score, the null score up to which questions are answered for it).

    Shapes: all (N,): the score of each prediction, how likely its question has no answer, whether
    it has one, and whether one was predicted. Where no answer at all is best, the threshold is
    -inf.
    """
    if not len(scores):
        return 0.0, -math.inf
    order = np.argsort(null_scores, kind="stable")
    # Answering one more question adds its score, or takes the point for rightly saying nothing.
    gains = np.where(answerable, scores, -answered.astype(np.float64))[order]
    nothing = float(np.sum(~answerable))
    means = np.cumsum(np.concatenate([[nothing], gains]))
    best = int(means.argmax())
    threshold = float(null_scores[order[best - 1]]) if best else -math.inf
    return float(means[best] / len(scores)), threshold


def _best(predictions, golds, null_scores):
    """{figure: `best_threshold`} for exact and f1."""
    there = _given(predictions)
    scores = _scores(predictions, golds, there)
    facts = {
        "null_scores": np.asarray(null_scores, np.float64)[there],
        "answerable": np.array([bool(golds[n]) for n in there], bool),
        "answered": np.array([bool(predictions[n]) for n in there], bool),
    }
    columns = enumerate(("exact", "f1"))
    return {name: best_threshold(scores[:, column], **facts) for column, name in columns}


def _given(predictions):
    return [number for number, text in enumerate(predictions) if text is not None]


def _scores(predictions, golds, numbers):
    """(N, 2): exact and f1 of these predictions, by the rules of version 2."""
    return np.array([scores_of(predictions[n], golds[n]) for n in numbers]).reshape(-1, 2)


def _metrics(scores):
    """Of (N, 2) exact and f1."""
    if not len(scores):
        return {"exact": 0.0, "f1": 0.0, "total": 0}
    total = len(scores)
    return {
        "exact": sum(scores[:, 0].tolist()) / total,
        "f1": sum(scores[:, 1].tolist()) / total,
        "total": total,
    }
