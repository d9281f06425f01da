"""Metrics of tags: chunks by conlleval's rules and strictly, and tags by the word."""

from collections import Counter
from itertools import chain

import numpy as np

from keras_bert.readers.schemes import OUTSIDE, spans_of, split_tag, strict_spans
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
    counts = Counter(), Counter(), Counter()
    for true, found in zip(expected, predicted, strict=True):
        for count, spans in zip(counts, (set(true) & set(found), found, true), strict=True):
            count.update(span.kind for span in spans)
    return counts
