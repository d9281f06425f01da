"""Metrics of the arguments of predicates, by the rules of srl-eval (Carreras and Màrquez 2005)."""

from collections import Counter

from keras_bert.readers.predicates import VERB
from keras_bert.readers.schemes import spans_of
from keras_bert.tasks.metrics import metrics_per_label, precision_recall_f1
from keras_bert.tasks.tagging.metrics import chunk_metrics

# C-A1 continues the A1 before it.
_CONTINUES = "C-"


def arguments_of(tags):
    """The arguments of a predicate: a set of (role, its parts as (start, end) in words).

    C-A1 continues the A1 before it, and the two are one argument; without one before it, it is an
    A1. R-A1, which refers to an A1, is a role of its own.
    """
    arguments, latest = [], {}
    for start, end, kind in spans_of(tags):
        role = kind.removeprefix(_CONTINUES)
        if role == kind or role not in latest:
            latest[role] = []
            arguments.append((role, latest[role]))
        latest[role].append((start, end))
    return {(role, tuple(parts)) for role, parts in arguments}


def role_metrics(expected, predicted, scores, *, scheme):
    """The official metrics of the arguments of predicates, as JSON can hold them.

    Args:
        expected, predicted: for each predicate the list of its sentence's tags.
        scores: for each the list of the probabilities of its predicted tags.
        scheme: that of the tags.

    Returns:
        `f1`, `precision` and `recall` of whole arguments with their roles, over all roles but the
        predicate's own, V; `perfect`, the fraction of predicates with all of them correct and no
        others; under `labels`, for each role, its `precision`, `recall`, `f1` and `examples`;
        `examples` (predicates) and `arguments` (expected); and of the tags `accuracy`, `words`,
        `confusion`, `confusion_labels` and `calibration` (see `chunk_metrics`).
    """
    counts = correct, given, true = Counter(), Counter(), Counter()
    perfect = 0
    for tags, predicted_tags in zip(expected, predicted, strict=True):
        theirs, ours = (
            {argument for argument in arguments_of(sentence_tags) if argument[0] != VERB}
            for sentence_tags in (tags, predicted_tags)
        )
        perfect += theirs == ours
        for count, arguments in zip(counts, (theirs & ours, ours, theirs), strict=True):
            count.update(role for role, _ in arguments)
    of_tags = chunk_metrics(expected, predicted, scores, scheme=scheme)
    names = ("accuracy", "words", "confusion", "confusion_labels", "calibration")
    metrics = precision_recall_f1(correct.total(), given.total(), true.total())
    return {
        **{name: metrics[name] for name in ("f1", "precision", "recall")},
        "perfect": perfect / max(1, len(expected)),
        "examples": len(expected),
        "arguments": true.total(),
        "labels": metrics_per_label(sorted(given | true), *counts),
        **{name: of_tags[name] for name in names},
    }
