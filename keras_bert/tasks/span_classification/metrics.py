"""Metrics of spans and relations, by exact match."""

from collections import Counter, defaultdict
from itertools import chain, zip_longest

import numpy as np

from keras_bert.tasks import summed_metrics as summed
from keras_bert.tasks.metrics import (
    confusion_matrix,
    macro_f1,
    metrics_per_label,
    precision_recall_f1,
)

NO_SPAN = "no span"


def span_metrics(expected, predicted, *, labels):
    """Precision, recall and F1 of spans, nested ones among them, as JSON can hold them.

    A predicted span is correct if one with the same first word, last word and label is expected in
    the same text; on text without nested spans this is what seqeval and conlleval count.

    Args:
        expected, predicted: for each text the set of its (first, last, label).
        labels: the names of the labels in order.

    `precision`, `recall` and `f1` are over all spans of all texts (micro), `macro_f1` is the mean
    F1 of the labels that are expected or predicted anywhere; `identification_precision` and so on
    ignore the labels; `examples` counts texts, `spans` and `found` count expected and predicted
    spans; `labels` has the `precision`, `recall`, `f1` and `examples` (the expected spans) of each
    label; `confusion` counts spans by label, with one row per expected and one column per predicted
    label, in the order of `confusion_labels`: `labels` and "no span", for spans that are missed or
    predicted where there is none. A ratio without cases is 0.
    """
    triples = [*_labels_of_spans(expected, predicted)]
    counts = tuple(Counter(chain(*side)) for side in zip(*triples, strict=True))
    counts = counts or (Counter(), Counter(), Counter())
    identified = precision_recall_f1(*_identified(expected, predicted).sum(axis=0).tolist())
    return {
        **precision_recall_f1(*(count.total() for count in counts)),
        "macro_f1": macro_f1(labels, *counts),
        **{f"identification_{name}": value for name, value in identified.items()},
        "examples": len(expected),
        "spans": counts[2].total(),
        "found": counts[1].total(),
        "labels": metrics_per_label(labels, *counts),
        "confusion": confusion_matrix(_pairs(expected, predicted), [*labels, None]),
        "confusion_labels": [*labels, NO_SPAN],
    }


def _labels_of_spans(expected, predicted):
    """Yields for each text the labels of its correct, predicted and expected spans."""
    for true, ours in zip(expected, predicted, strict=True):
        yield tuple([label for *_, label in spans] for spans in (true & ours, ours, true))


def _identified(expected, predicted):
    """int (N, 3): how many spans of each text are correct, predicted, expected without labels."""
    counts = []
    for sides in zip(expected, predicted, strict=True):
        true, ours = ({span[:2] for span in spans} for spans in sides)
        counts.append([len(true & ours), len(ours), len(true)])
    return np.array(counts, int).reshape(-1, 3)


def summed_spans(expected, predicted, *, labels):
    """The `SummedMetrics` of `span_metrics`."""
    parts = {
        summed.LABELS: summed.label_counts(_labels_of_spans(expected, predicted), labels),
        "identified": _identified(expected, predicted).astype(np.float64),
    }

    def metrics_of_sums(sums):
        by_label = summed.counts_of_labels(sums)
        identified = summed.precision_recall_f1(*np.moveaxis(sums["identified"], -1, 0))
        return {
            **summed.scores_over_labels(*by_label),
            "macro_f1": summed.macro_f1(*by_label),
            **{f"identification_{name}": values for name, values in identified.items()},
        }

    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums, labels=labels)


def relation_metrics(expected, predicted, *, labels, null_label):
    """The metrics of a classification in which one label means "none of them".

    `f1`, `precision` and `recall` leave out the null label, as TACRED's scorer does (Zhang et al.
    2017): precision is over the pairs with another predicted label, recall over those with another
    expected label. Without a null label all three are the accuracy. `macro_f1` is the mean over the
    other labels that are expected or predicted anywhere. Also `accuracy`, `examples`, `labels` with
    the `precision`, `recall`, `f1` and `examples` of each, and `confusion`, with one row per
    expected and one column per predicted label.

    Args:
        expected, predicted: lists of labels; None, for a pair without a prediction, is wrong.
        labels: their names in order.
        null_label: one of them, or None.
    """
    pairs = Counter(zip(expected, predicted, strict=True))
    correct = Counter({label: count for (label, other), count in pairs.items() if label == other})
    counts = correct, Counter(predicted), Counter(expected)
    relations = [label for label in labels if label != null_label]
    return {
        **precision_recall_f1(*(sum(count[label] for label in relations) for count in counts)),
        "macro_f1": macro_f1(relations, *counts),
        "accuracy": correct.total() / max(1, len(expected)),
        "examples": len(expected),
        "labels": metrics_per_label(labels, *counts),
        "confusion": confusion_matrix(pairs, labels),
    }


def summed_relations(expected, predicted, *, labels, null_label):
    """The `SummedMetrics` of `relation_metrics`."""
    pairs = zip(expected, predicted, strict=True)
    triples = (([true] if true == label else [], [label], [true]) for true, label in pairs)
    parts = {
        summed.LABELS: summed.label_counts(triples, labels),
        "examples": np.ones(len(expected)),
    }
    is_relation = np.array([label != null_label for label in labels])

    def metrics_of_sums(sums):
        by_label = summed.counts_of_labels(sums)
        relations = [side[..., is_relation] for side in by_label]
        return {
            **summed.scores_over_labels(*relations),
            "macro_f1": summed.macro_f1(*relations),
            "accuracy": summed.ratio(by_label[0].sum(axis=-1), sums["examples"]),
        }

    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums, labels=labels)


def _pairs(expected, predicted):
    """A `Counter` of (expected, predicted) labels of spans.

    Two spans are a pair if they have the same words; if these have several labels, correct ones are
    paired first. A span alone has the other label None.
    """
    pairs = Counter()
    for true, ours in zip(expected, predicted, strict=True):
        pairs.update((label, label) for *_, label in true & ours)
        positions = defaultdict(lambda: ([], []))
        for side, spans in enumerate((true - ours, ours - true)):
            for *position, label in sorted(spans):
                positions[tuple(position)][side].append(label)
        for sides in positions.values():
            pairs.update(zip_longest(*sides))
    return pairs
