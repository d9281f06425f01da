"""How well words were tagged: chunks by conlleval's rules and strictly, tags by the word."""

from collections import Counter
from itertools import chain

import numpy as np

from keras_bert.readers.schemes import OUTSIDE, spans_of, split_tag, strict_spans
from keras_bert.tasks.metrics import calibration, precision_recall_f1


def chunk_metrics(expected, found, scores, *, scheme):
    """The official figures of tags that name chunks, as JSON can hold them.

    Args:
        expected, found: a list of the tags of a sentence each.
        scores: the same of the probabilities of those found.
        scheme: that of the tags, one of `SCHEMES`, for the strict figures.

    Returns:
        `f1`, `precision` and `recall` of whole chunks by the rules of conlleval (Tjong Kim Sang and
        Buchholz 2000), the micro average over kinds; `strict_f1`, `strict_precision` and
        `strict_recall` of those that are written as the scheme asks for; `accuracy`, the share of
        words with the right tag; `examples` (sentences), `words`, `chunks`; and under `labels`, for
        each kind of chunk, its `precision`, `recall`, `f1` and `examples`; `confusion`, which
        counts words by the kind of their chunk, the expected one a row and the found one a column,
        in the order of `confusion_labels` (the kinds, and O for words outside of chunks); and the
        `calibration` of words (see there). A ratio without cases is 0.
    """
    pairs = list(zip(expected, found, strict=True))
    lenient = [(spans_of(truth), spans_of(said)) for truth, said in pairs]
    strict = [(strict_spans(truth, scheme), strict_spans(said, scheme)) for truth, said in pairs]
    of_all, of_kinds = _counts(lenient)
    f1, strict_f1 = _ratios(of_all), _ratios(_counts(strict)[0])
    right = _right(expected, found)
    kinds = sorted(of_kinds)
    words = _pairs(*([list(map(_kind, tags)) for tags in side] for side in (expected, found)))
    return {
        "f1": f1["f1"],
        "precision": f1["precision"],
        "recall": f1["recall"],
        **{f"strict_{name}": strict_f1[name] for name in ("f1", "precision", "recall")},
        "accuracy": float(np.mean(right)) if len(right) else 0.0,
        "examples": len(pairs),
        "words": len(right),
        "chunks": of_all[1],
        "labels": {kind or "_": _ratios(of_kinds[kind]) for kind in kinds},
        "confusion": _table(words, order=[*kinds, None]),
        "confusion_labels": [*(kind or "_" for kind in kinds), OUTSIDE],
        "calibration": _calibration(expected, found, scores),
    }


def word_metrics(expected, found, scores, *, labels):
    """The official figures of tags that name no chunks, as JSON can hold them.

    Args:
        expected, found: a list of the tags of a sentence each.
        scores: the same of the probabilities of those found.
        labels: the model's.

    Returns:
        `accuracy`, the share of words with the right tag; `macro_f1`, the mean over the tags that
        occur on either side; `examples` (sentences), `words`; `labels` (for each tag `precision`,
        `recall`, `f1`, `examples`), those that the model does not have at their end; `confusion`,
        whose row is the expected and whose column the found one, in the order of `labels`; and
        `calibration` (see there).
    """
    pairs = _pairs(expected, found)
    words = sum(pairs.values())
    counts = {}
    for label in [*labels, *sorted({truth for truth, _ in pairs} - set(labels))]:
        counts[label] = [
            pairs[label, label],
            sum(count for (truth, _), count in pairs.items() if truth == label),
            sum(count for (_, said), count in pairs.items() if said == label),
        ]
    ratios = {label: _ratios(count) for label, count in counts.items()}
    occurring = [ratios[label]["f1"] for label, (_, truth, said) in counts.items() if truth or said]
    return {
        "accuracy": sum(count[0] for count in counts.values()) / max(1, words),
        "macro_f1": float(np.mean(occurring)) if occurring else 0.0,
        "examples": len(expected),
        "words": words,
        "labels": ratios,
        "confusion": _table(pairs, order=counts),
        "calibration": _calibration(expected, found, scores),
    }


def _right(expected, found):
    """Whether each word's tag is the expected one, bool (W,) over all sentences."""
    flat = zip(chain.from_iterable(expected), chain.from_iterable(found), strict=True)
    return np.array([truth == said for truth, said in flat], np.bool_)


def _kind(tag):
    """The kind of the chunk that a word with this tag is part of; None outside of chunks."""
    letter, kind = split_tag(tag)
    return None if letter == OUTSIDE else kind


def _pairs(expected, found):
    """How many words there are of each (expected, found)."""
    return Counter(zip(chain.from_iterable(expected), chain.from_iterable(found), strict=True))


def _table(pairs, *, order):
    """The counts of pairs as a list of rows; `order` is that of rows and of columns."""
    return [[pairs[truth, said] for said in order] for truth in order]


def _calibration(expected, found, scores):
    confidence = np.array(list(chain.from_iterable(scores)), np.float64)
    return calibration(confidence, _right(expected, found))


def _counts(spans):
    """[right, expected, found] over all chunks, and the same by kind.

    Args:
        spans: a list of (expected, found) spans of a sentence each.
    """
    kinds = {}
    for truth, said in spans:
        for position, some in enumerate((set(truth) & set(said), truth, said)):
            for span in some:
                kinds.setdefault(span.kind, [0, 0, 0])[position] += 1
    return [sum(count[position] for count in kinds.values()) for position in range(3)], kinds


def _ratios(counts):
    right, expected, found = counts
    return {**precision_recall_f1(right, found, expected), "examples": expected}
