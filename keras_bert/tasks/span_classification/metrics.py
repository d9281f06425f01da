"""How well spans and relations were found, by exact match."""

from collections import Counter, defaultdict
from itertools import zip_longest

import numpy as np

from keras_bert.tasks.metrics import precision_recall_f1

NO_SPAN = "no span"


def span_metrics(expected, found, *, labels):
    """Precision, recall and F1 of spans, nested ones among them, as JSON can hold them.

    A span that is found is right where one with the same first word, last word and label is
    expected in the same text; on text without nested spans this is what seqeval and conlleval
    count.

    Args:
        expected, found: for each text the set of its (first, last, label).
        labels: the names of the labels in order.

    `precision`, `recall` and `f1` are over all spans of all texts (micro), `macro_f1` is the mean
    of the labels' F1 over those that are expected or found anywhere; `identification_precision`
    and so on leave the labels out; `examples` counts texts, `spans` and `found` count spans; for
    each label under `labels` its `precision`, `recall`, `f1` and `examples` (the spans expected);
    `confusion` counts spans by their labels, the expected one a row and the found one a column, in
    the order of `confusion_labels`: `labels` and "no span", which is what a span that is missed was
    taken for, and what one that is found where there is none is. A ratio without cases is 0.
    """
    wanted, given, right = (
        _counts(expected),
        _counts(found),
        _counts([a & b for a, b in zip(expected, found, strict=True)]),
    )
    by_label = {
        label: {
            **precision_recall_f1(right[label], given[label], wanted[label]),
            "examples": wanted[label],
        }
        for label in labels
    }
    met = [each["f1"] for label, each in by_label.items() if wanted[label] or given[label]]
    positions = [[{span[:2] for span in spans} for spans in side] for side in (expected, found)]
    identified = precision_recall_f1(
        sum(len(a & b) for a, b in zip(*positions, strict=True)),
        *(sum(map(len, side)) for side in reversed(positions)),
    )
    return {
        **precision_recall_f1(right.total(), given.total(), wanted.total()),
        "macro_f1": float(np.mean(met)) if met else 0.0,
        **{f"identification_{name}": value for name, value in identified.items()},
        "examples": len(expected),
        "spans": wanted.total(),
        "found": given.total(),
        "labels": by_label,
        "confusion": _confusion(expected, found, order=[*labels, None]),
        "confusion_labels": [*labels, NO_SPAN],
    }


def relation_metrics(expected, predicted, *, labels, null_label):
    """The figures of a classification in which one label means "none of them".

    `f1`, `precision` and `recall` are over all pairs without those of the null label, as TACRED's
    scorer has them (Zhang et al. 2017): precision over the pairs that are given another label,
    recall over those that have another. Where there is no null label all three are the accuracy.
    `macro_f1` is the mean over the other labels that are expected or predicted anywhere. Also
    `accuracy`, `examples`, for each label under `labels` its `precision`, `recall`, `f1` and
    `examples`, and `confusion`, whose row is the expected and whose column the predicted label.

    Args:
        expected, predicted: lists of labels; None is predicted where there is no answer, which is
            always wrong.
        labels: their names in order.
        null_label: one of them, or None.
    """
    wanted, given = Counter(expected), Counter(predicted)
    right = Counter(a for a, b in zip(expected, predicted, strict=True) if a == b)
    by_label = {
        label: {
            **precision_recall_f1(right[label], given[label], wanted[label]),
            "examples": wanted[label],
        }
        for label in labels
    }
    counted = [label for label in labels if label != null_label]
    pairs = Counter(zip(expected, predicted, strict=True))
    met = [by_label[label]["f1"] for label in counted if wanted[label] or given[label]]
    return {
        **precision_recall_f1(
            *(sum(count[label] for label in counted) for count in (right, given, wanted))
        ),
        "macro_f1": float(np.mean(met)) if met else 0.0,
        "accuracy": right.total() / max(1, len(expected)),
        "examples": len(expected),
        "labels": by_label,
        "confusion": [[pairs[row, column] for column in labels] for row in labels],
    }


def _confusion(expected, found, *, order):
    """How many spans there are of each pair of labels, as lists of rows.

    Two spans are a pair where they are of the same words; of several labels there, those that both
    sides have go together first. A span alone has the other label None.
    """
    pairs = Counter()
    for wanted, given in zip(expected, found, strict=True):
        pairs.update((label, label) for *_, label in wanted & given)
        positions = defaultdict(lambda: ([], []))
        for side, spans in enumerate((wanted - given, given - wanted)):
            for *position, label in sorted(spans):
                positions[tuple(position)][side].append(label)
        for sides in positions.values():
            pairs.update(zip_longest(*sides))
    return [[pairs[truth, said] for said in order] for truth in order]


def _counts(sets):
    return Counter(label for spans in sets for *_, label in spans)
