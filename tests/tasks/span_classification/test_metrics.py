"""The figures of spans by brute force and by seqeval, those of relations by scikit-learn."""

import numpy as np
import pytest
from seqeval.metrics import classification_report
from seqeval.scheme import IOB2
from sklearn import metrics

from keras_bert.tasks.span_classification.metrics import relation_metrics, span_metrics
from tests.seeds import make_rng

RNG = make_rng(3)
LABELS = ["LOC", "ORG", "PER"]


def random_spans(count):
    """Nested and overlapping spans, some of them equal in place but not in label."""
    firsts = RNG.integers(0, 5, count)
    return {(int(f), int(f + RNG.integers(0, 3)), str(RNG.choice(LABELS))) for f in firsts}


def test_nested_spans_are_counted_as_by_a_loop():
    expected = [random_spans(RNG.integers(0, 9)) for _ in range(30)]
    predicted = [random_spans(RNG.integers(0, 9)) | set(list(spans)[:2]) for spans in expected]
    measures = span_metrics(expected, predicted, labels=LABELS)
    for label, measured in [(None, measures), *measures["labels"].items()]:
        correct = wrong = missed = 0
        for wanted, given in zip(expected, predicted, strict=True):
            for span in given:
                if label in (None, span[2]):
                    correct, wrong = (
                        (correct + 1, wrong) if span in wanted else (correct, wrong + 1)
                    )
            missed += sum(label in (None, span[2]) and span not in given for span in wanted)
        precision, recall = correct / (correct + wrong), correct / (correct + missed)
        assert measured["precision"] == pytest.approx(precision)
        assert measured["recall"] == pytest.approx(recall)
        assert measured["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert measures["spans"] == sum(map(len, expected))
    assert measures["found"] == sum(map(len, predicted))
    unlabelled = [
        [{(*span[:2], "x") for span in spans} for spans in s] for s in (expected, predicted)
    ]
    identified = span_metrics(*unlabelled, labels=["x"])
    for name in ("precision", "recall", "f1"):
        assert measures[f"identification_{name}"] == identified[name] > measures[name]


def test_spans_of_the_same_words_are_taken_for_each_other_and_the_others_for_none():
    expected = [{(0, 0, "LOC"), (0, 2, "ORG"), (4, 4, "PER")}, {(1, 1, "LOC"), (1, 1, "ORG")}]
    predicted = [{(0, 0, "LOC"), (0, 2, "PER"), (0, 1, "ORG")}, {(1, 1, "ORG")}]
    measures = span_metrics(expected, predicted, labels=LABELS)
    assert measures["confusion_labels"] == [*LABELS, "no span"]
    assert measures["confusion"] == [[1, 0, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]]
    many = [random_spans(8) for _ in range(30)], [random_spans(8) for _ in range(30)]
    measures = span_metrics(*many, labels=LABELS)
    table = np.array(measures["confusion"])
    rights = [round(m["recall"] * m["examples"]) for m in measures["labels"].values()]
    assert table.diagonal().tolist() == [*rights, 0]
    assert table[:3].sum() == measures["spans"] and table[:, :3].sum() == measures["found"]


def tags_of(spans, length):
    tags = ["O"] * length
    for first, last, label in spans:
        tags[first : last + 1] = [f"B-{label}"] + [f"I-{label}"] * (last - first)
    return tags


def flat_spans(length):
    spans, first = set(), 0
    while first < length:
        last = min(length - 1, first + int(RNG.integers(0, 3)))
        if RNG.random() < 0.6:
            spans.add((first, last, str(RNG.choice(LABELS))))
        first = last + 1
    return spans


def test_flat_spans_are_counted_as_seqeval_counts_them():
    lengths = RNG.integers(1, 12, 40)
    expected = [flat_spans(length) for length in lengths]
    predicted = [
        spans if RNG.random() < 0.5 else flat_spans(length)
        for spans, length in zip(expected, lengths, strict=True)
    ]
    tags = [
        [tags_of(spans, length) for spans, length in zip(side, lengths, strict=True)]
        for side in (expected, predicted)
    ]
    their_report = classification_report(
        *tags, mode="strict", scheme=IOB2, output_dict=True, zero_division=0
    )
    ours = span_metrics(expected, predicted, labels=LABELS)
    for label in LABELS:
        for name, their_name in (("precision",) * 2, ("recall",) * 2, ("f1", "f1-score")):
            assert ours["labels"][label][name] == pytest.approx(their_report[label][their_name])
        assert ours["labels"][label]["examples"] == their_report[label]["support"]
    assert ours["f1"] == pytest.approx(their_report["micro avg"]["f1-score"])
    assert ours["macro_f1"] == pytest.approx(their_report["macro avg"]["f1-score"])


def test_nothing_expected_and_nothing_found_is_zero_everywhere():
    for expected, predicted in (([set()], [set()]), ([{(0, 0, "LOC")}], [set()]), ([], [])):
        measures = span_metrics(expected, predicted, labels=LABELS)
        assert measures["f1"] == measures["macro_f1"] == measures["identification_f1"] == 0.0
        swapped = span_metrics(predicted, expected, labels=LABELS)
        assert swapped["f1"] == swapped["precision"] == 0.0


def test_relations_are_counted_without_the_null_label():
    labels = ["no_relation", "born_in", "works_for", "never_seen"]
    expected = RNG.choice(labels[:3], 200, p=[0.6, 0.3, 0.1]).tolist()
    predicted = np.where(RNG.random(200) < 0.6, expected, RNG.choice(labels[:3], 200)).tolist()
    ours = relation_metrics(expected, predicted, labels=labels, null_label="no_relation")
    their_scores = metrics.precision_recall_fscore_support(
        expected, predicted, labels=labels[1:], average="micro", zero_division=0
    )
    assert [ours["precision"], ours["recall"], ours["f1"]] == pytest.approx(list(their_scores[:3]))
    assert ours["macro_f1"] == pytest.approx(
        metrics.f1_score(expected, predicted, labels=labels[1:3], average="macro")
    )
    assert ours["accuracy"] == pytest.approx(metrics.accuracy_score(expected, predicted))
    their_confusion = metrics.confusion_matrix(expected, predicted, labels=labels)
    assert (
        ours["confusion"] == their_confusion.tolist()
        and ours["labels"]["never_seen"]["examples"] == 0
    )
    all_of_them = relation_metrics(expected, predicted, labels=labels, null_label=None)
    assert all_of_them["f1"] == pytest.approx(ours["accuracy"])
