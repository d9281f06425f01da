"""Metrics of tags: chunks by conlleval's rules and strictly, tags by the word, and the arguments
of predicates by the rules of srl-eval (Carreras and Màrquez 2005).
"""

from collections import Counter
from itertools import chain

import numpy as np

from keras_bert.readers.predicates import VERB
from keras_bert.readers.schemes import OUTSIDE, spans_of, split_tag, strict_spans
from keras_bert.tasks import summed_metrics as summed
from keras_bert.tasks.metrics import (
    calibration,
    confusion_matrix,
    macro_f1,
    metrics_per_label,
    precision_recall_f1,
)


def chunk_metrics(expected, predicted, scores, *, scheme):
    """The official metrics of tags that name chunks, as JSON can hold them.

    Args:
        expected, predicted: for each sentence the list of its tags.
        scores: for each sentence the list of the probabilities of its predicted tags.
        scheme: that of the tags, one of `SCHEMES`, for the strict metrics.

    Returns:
        `f1`, `precision` and `recall` of whole chunks by the rules of conlleval (Tjong Kim Sang and
        Buchholz 2000), micro-averaged over kinds; `strict_f1`, `strict_precision` and
        `strict_recall` of those that follow the scheme; `accuracy`, the fraction of words with the
        correct tag; `examples` (sentences), `words`, `chunks`; under `labels`, for each kind of
        chunk, its `precision`, `recall`, `f1` and `examples`; `confusion`, which counts words by
        the kind of their chunk, with one row per expected and one column per predicted kind, in the
        order of `confusion_labels` (the kinds, and O for words outside of chunks); and the
        `calibration` of words (see there). A ratio without cases is 0.
    """
    counts = _count_chunks(map(spans_of, expected), map(spans_of, predicted))
    strict = _count_chunks(*([strict_spans(t, scheme) for t in x] for x in (expected, predicted)))
    metrics, strict = (
        precision_recall_f1(*(count.total() for count in triple)) for triple in (counts, strict)
    )
    kinds = sorted(counts[1] | counts[2])
    labels = metrics_per_label(kinds, *counts)
    words = Counter(zip(*(map(_kind, chain(*tags)) for tags in (expected, predicted)), strict=True))
    correct = _correct(expected, predicted)
    return {
        "f1": metrics["f1"],
        "precision": metrics["precision"],
        "recall": metrics["recall"],
        **{f"strict_{name}": strict[name] for name in ("f1", "precision", "recall")},
        "accuracy": float(np.mean(correct)) if len(correct) else 0.0,
        "examples": len(expected),
        "words": len(correct),
        "chunks": counts[2].total(),
        "labels": {kind or "_": labels[kind] for kind in kinds},
        "confusion": confusion_matrix(words, [*kinds, None]),
        "confusion_labels": [*(kind or "_" for kind in kinds), OUTSIDE],
        "calibration": calibration(list(chain(*scores)), correct),
    }


def word_metrics(expected, predicted, scores, *, labels):
    """The official metrics of tags that do not name chunks, as JSON can hold them.

    Args:
        expected, predicted, scores: see `chunk_metrics`.
        labels: those of the model.

    Returns:
        `accuracy`, the fraction of words with the correct tag; `macro_f1`, the mean over the tags
        that are expected or predicted anywhere; `examples` (sentences), `words`; `labels`, for each
        tag `precision`, `recall`, `f1`, `examples`, first the model's; `confusion`, with one row
        per expected and one column per predicted tag, in the order of `labels`; and `calibration`
        (see there).
    """
    pairs = Counter(zip(chain(*expected), chain(*predicted), strict=True))
    labels = [*labels, *sorted({true for true, _ in pairs} - set(labels))]
    correct = Counter({label: pairs[label, label] for label in labels})
    counts = correct, Counter(chain(*predicted)), Counter(chain(*expected))
    return {
        "accuracy": correct.total() / max(1, pairs.total()),
        "macro_f1": macro_f1(labels, *counts),
        "examples": len(expected),
        "words": pairs.total(),
        "labels": metrics_per_label(labels, *counts),
        "confusion": confusion_matrix(pairs, labels),
        "calibration": calibration(list(chain(*scores)), _correct(expected, predicted)),
    }


def _correct(expected, predicted):
    """Whether each word's tag is correct, bool (W,) over all sentences."""
    return [true == tag for true, tag in zip(chain(*expected), chain(*predicted), strict=True)]


def _kind(tag):
    """The kind of the chunk of a word with this tag; None outside of chunks."""
    letter, kind = split_tag(tag)
    return None if letter == OUTSIDE else kind


def _count_chunks(expected, predicted):
    """The numbers of correct, predicted and expected chunks by kind, from spans per sentence."""
    return _counts(_kinds_of_chunks(expected, predicted))


def _kinds_of_chunks(expected, predicted):
    """Yields for each sentence the kinds of its correct, predicted and expected chunks."""
    for true, ours in zip(expected, predicted, strict=True):
        yield tuple([span.kind for span in spans] for spans in (set(true) & set(ours), ours, true))


def _counts(triples):
    """Three `Counter`s over all of some triples of labels."""
    counts = Counter(), Counter(), Counter()
    for triple in triples:
        for count, labels in zip(counts, triple, strict=True):
            count.update(labels)
    return counts


def _words_right(expected, predicted):
    """The parts of the accuracy of words: float64 (N,) right ones and all of each sentence."""
    correct = [
        sum(true == tag for true, tag in zip(*tags, strict=True))
        for tags in zip(expected, predicted, strict=True)
    ]
    words = [len(tags) for tags in expected]
    return {"right": np.array(correct, np.float64), "words": np.array(words, np.float64)}


def summed_chunks(expected, predicted, *, scheme):
    """The `SummedMetrics` of `chunk_metrics`."""
    sides = [[spans_of(tags) for tags in side] for side in (expected, predicted)]
    triples = [*_kinds_of_chunks(*sides)]
    kinds = sorted({kind for _, *others in triples for kind in chain(*others)})
    strict = _kinds_of_chunks(
        *([strict_spans(tags, scheme) for tags in side] for side in (expected, predicted))
    )
    parts = {
        summed.LABELS: summed.label_counts(triples, kinds),
        "strict": np.array([[*map(len, triple)] for triple in strict], np.float64),
        **_words_right(expected, predicted),
    }

    def metrics_of_sums(sums):
        strict = summed.precision_recall_f1(*np.moveaxis(sums["strict"], -1, 0))
        return {
            **summed.scores_over_labels(*summed.counts_of_labels(sums)),
            **{f"strict_{name}": values for name, values in strict.items()},
            "accuracy": summed.ratio(sums["right"], sums["words"]),
        }

    labels = [kind or "_" for kind in kinds]
    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums, labels=labels)


def summed_words(expected, predicted, *, labels):
    """The `SummedMetrics` of `word_metrics`."""
    triples = [
        ([true for true, tag in zip(*tags, strict=True) if true == tag], tags[1], tags[0])
        for tags in zip(expected, predicted, strict=True)
    ]
    labels = [*labels, *sorted({*chain(*expected)} - {*labels})]
    parts = {
        summed.LABELS: summed.label_counts(triples, labels),
        **_words_right(expected, predicted),
    }

    def metrics_of_sums(sums):
        return {
            "accuracy": summed.ratio(sums["right"], sums["words"]),
            "macro_f1": summed.macro_f1(*summed.counts_of_labels(sums)),
        }

    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums, labels=labels)


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
    triples = [*_roles_of_arguments(expected, predicted)]
    counts = correct, given, true = _counts(triples)
    perfect = sum(map(_is_perfect, triples))
    tag_metrics = chunk_metrics(expected, predicted, scores, scheme=scheme)
    names = ("accuracy", "words", "confusion", "confusion_labels", "calibration")
    metrics = precision_recall_f1(correct.total(), given.total(), true.total())
    return {
        **{name: metrics[name] for name in ("f1", "precision", "recall")},
        "perfect": perfect / max(1, len(expected)),
        "examples": len(expected),
        "arguments": true.total(),
        "labels": metrics_per_label(sorted(given | true), *counts),
        **{name: tag_metrics[name] for name in names},
    }


def _roles_of_arguments(expected, predicted):
    """Yields for each predicate the roles of its correct, predicted and expected arguments."""
    for tags in zip(expected, predicted, strict=True):
        expected_arguments, predicted_arguments = (
            {a for a in arguments_of(side) if a[0] != VERB} for side in tags
        )
        yield tuple(
            [role for role, _ in side]
            for side in (
                expected_arguments & predicted_arguments,
                predicted_arguments,
                expected_arguments,
            )
        )


def _is_perfect(triple):
    """Whether all arguments of a predicate are correct, and no others are predicted."""
    return len({*map(len, triple)}) == 1


def summed_roles(expected, predicted, *, scheme):
    """The `SummedMetrics` of `role_metrics`."""
    triples = [*_roles_of_arguments(expected, predicted)]
    labels = sorted({role for _, *others in triples for role in chain(*others)})
    parts = {
        summed.LABELS: summed.label_counts(triples, labels),
        "perfect": np.array([*map(_is_perfect, triples)], np.float64),
        "examples": np.ones(len(triples)),
        **_words_right(expected, predicted),
    }

    def metrics_of_sums(sums):
        return {
            **summed.scores_over_labels(*summed.counts_of_labels(sums)),
            "perfect": summed.ratio(sums["perfect"], sums["examples"]),
            "accuracy": summed.ratio(sums["right"], sums["words"]),
        }

    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums, labels=labels)
