"""Figures of tags equal to seqeval's and scikit-learn's on random and adversarial sequences."""

import random
import warnings

import pytest
import seqeval.metrics
import sklearn.metrics
from seqeval.scheme import IOB2, IOBES

from keras_bert.readers.schemes import converted, labels_of
from keras_bert.tasks.tagging.metrics import chunk_metrics, word_metrics
from tests.seeds import shifted

KINDS = ("LOC", "PER", "creative-work")


def corpora(scheme):
    """Pairs of expected and found tags: nothing right, everything broken, nothing there, mixed."""
    rng = random.Random(shifted(3))
    labels = labels_of(KINDS, scheme)
    lengths = [rng.randint(1, 12) for _ in range(60)]

    def noise(tags):
        return [[rng.choice(tags) for _ in range(length)] for length in lengths]

    outside = [["O"] * length for length in lengths]
    broken = noise(labels)
    gold = [converted(tags, scheme) for tags in noise([*labels, "O", "O", "O"])]
    near = [[tag if rng.random() < 0.8 else rng.choice(labels) for tag in s] for s in gold]
    inside = noise([label for label in labels if label[0] in "IE"])
    return [
        (gold, gold),
        (gold, near),
        (near, gold),
        (broken, noise(labels)),
        (gold, inside),
        (gold, outside),
        (outside, gold),
        (outside, outside),
    ]


def scores(predicted):
    return [[0.75] * len(tags) for tags in predicted]


def metrics(report):
    names = {"precision": "precision", "recall": "recall", "f1-score": "f1", "support": "examples"}
    return {
        our_name: pytest.approx(report[their_name], abs=1e-12)
        for their_name, our_name in names.items()
    }


@pytest.mark.parametrize(("scheme", "reference"), [("bio", IOB2), ("bioes", IOBES)])
def test_chunks_are_counted_as_seqeval_counts_them(scheme, reference):
    for expected, predicted in corpora(scheme):
        measures = chunk_metrics(expected, predicted, scores(predicted), scheme=scheme)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for prefix, options in (("", {}), ("strict_", {"mode": "strict", "scheme": reference})):
                for name in ("f1", "precision", "recall"):
                    score = getattr(seqeval.metrics, f"{name}_score")
                    their_score = score(
                        expected, predicted, average="micro", zero_division=0, **options
                    )
                    assert measures[f"{prefix}{name}"] == pytest.approx(their_score, abs=1e-12)
            if any(tag != "O" for tags in [*expected, *predicted] for tag in tags):
                report = seqeval.metrics.classification_report(
                    expected, predicted, output_dict=True, zero_division=0
                )
                kinds = [name for name in report if not name.endswith(" avg")]
                assert measures["labels"] == {kind: metrics(report[kind]) for kind in kinds}
            accuracy = seqeval.metrics.accuracy_score(expected, predicted)
            kinds = [
                [tag[2:] or "O" for tags in side for tag in tags] for side in (expected, predicted)
            ]
            names = [*sorted({*kinds[0], *kinds[1]} - {"O"}), "O"]
            matrix = sklearn.metrics.confusion_matrix(*kinds, labels=names)
        assert measures["confusion_labels"] == names
        assert measures["confusion"] == matrix.tolist()
        assert measures["accuracy"] == pytest.approx(accuracy, abs=1e-12)
        assert measures["words"] == sum(map(len, expected)) and measures["examples"] == 60


def test_a_case_by_hand():
    expected = [["B-A", "I-A", "O", "B-B"], ["O"]]
    predicted = [["B-A", "I-A", "O", "I-B"], ["B"]]
    measures = chunk_metrics(expected, predicted, scores(predicted), scheme="bio")
    assert measures["precision"] == 2 / 3 and measures["recall"] == 1
    assert (measures["strict_precision"], measures["strict_recall"]) == (1 / 2, 1 / 2)
    assert measures["labels"]["_"]["examples"] == 0 and measures["chunks"] == 2
    assert measures["confusion_labels"] == ["_", "A", "B", "O"]
    assert measures["confusion"] == [[0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]
    filled = [part for part in measures["calibration"] if part["examples"]]
    assert filled == [{"confidence": 0.75, "accuracy": 3 / 5, "examples": 5}]


def test_tags_without_a_scheme_are_counted_as_scikit_learn_counts_them():
    rng = random.Random(shifted(5))
    labels = ["NOUN", "VERB", "X", "ADJ"]
    expected = [[rng.choice([*labels, "NEW"]) for _ in range(rng.randint(1, 9))] for _ in range(50)]
    predicted = [[tag if rng.random() < 0.6 else "NOUN" for tag in tags] for tags in expected]
    predicted = [["VERB" if tag == "NEW" else tag for tag in tags] for tags in predicted]
    measures = word_metrics(expected, predicted, scores(predicted), labels=[*labels, "NEVER"])
    flat, said = sum(expected, []), sum(predicted, [])
    assert measures["accuracy"] == pytest.approx(sklearn.metrics.accuracy_score(flat, said))
    macro = sklearn.metrics.f1_score(flat, said, average="macro", zero_division=0)
    assert measures["macro_f1"] == pytest.approx(macro)
    report = sklearn.metrics.classification_report(flat, said, output_dict=True, zero_division=0)
    for label in [*labels, "NEW"]:
        assert measures["labels"][label] == metrics(report[label])
    assert measures["labels"]["NEVER"]["examples"] == 0
    matrix = sklearn.metrics.confusion_matrix(flat, said, labels=[*labels, "NEVER", "NEW"])
    assert measures["confusion"] == matrix.tolist()
