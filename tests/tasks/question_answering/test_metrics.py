"""The official SQuAD rules: cases worked out by hand, and figures of the official programs."""

import json
from pathlib import Path

import pytest

from keras_bert.tasks.question_answering import metrics

REFERENCE = Path(__file__).resolve().parents[2] / "reference" / "squad_figures.json"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat,\tsat.", "cat sat"),
        ("a.b", "ab"),  # punctuation goes before articles are looked for
        ("An apple-a day", "apple-a day".replace("-", "")),
        ("theatre banana", "theatre banana"),
        ("“The” cat", "“ ” cat"),  # only ASCII's punctuation is one
        ("don't", "dont"),
        ("the", ""),
        ("THÉ à la", "thé à la"),
        ("a_b the", "ab"),
        ("\u00a0the\u2003end\u00a0", "end"),
        ("İ", "i̇"),
        ("!?", ""),
    ],
)
def test_normalized_by_hand(text, expected):
    assert metrics.normalized(text) == expected


@pytest.mark.parametrize(
    ("prediction", "gold", "f1"),
    [
        ("the cat sat", "cat", 2 / 3),
        ("to be or not to be", "to be", 2 * (2 / 6) * 1 / (2 / 6 + 1)),
        ("be be be", "be", 0.5),  # a repeated word counts once for each that the gold one has
        ("be", "be be be", 0.5),
        ("dog", "cat", 0.0),
        ("", "cat", 0.0),
        ("cat", "", 0.0),
    ],
)
def test_overlap_by_hand(prediction, gold, f1):
    for version in (1, 2):
        assert metrics.overlap(prediction, gold, version=version) == pytest.approx(f1)


def test_answers_without_a_word_differ_between_the_versions():
    assert metrics.overlap("the", "a", version=2) == 1.0
    assert metrics.overlap("the", "a", version=1) == 0.0
    assert metrics.scores_of("A", ["a"], version=1) == (1.0, 0.0)
    assert metrics.scores_of("A", ["a"]) == (1.0, 1.0)
    assert metrics.scores_of("cat", ["the", "cat"]) == (1.0, 1.0)
    assert metrics.scores_of("", ["the", "cat"]) == (0.0, 0.0)  # "the" is no answer that counts
    assert metrics.scores_of("", []) == (1.0, 1.0)
    assert metrics.scores_of("cat", []) == (0.0, 0.0)


def test_the_best_of_several_gold_answers_counts():
    exact, f1 = metrics.scores_of("big red dog", ["dog", "red dog", "cat"])
    assert (exact, f1) == (0.0, pytest.approx(0.8))


def test_a_missing_prediction_is_wrong_in_version_1_and_left_out_in_version_2():
    golds = [["cat"], ["dog"]]
    assert metrics.squad_1(["cat", None], golds) == {"exact": 0.5, "f1": 0.5, "total": 2}
    scores = metrics.squad_2(["cat", None], golds)
    assert {name: scores[name] for name in ("exact", "f1", "total")} == {
        "exact": 1.0,
        "f1": 1.0,
        "total": 1,
    }


def test_the_best_threshold_by_hand():
    predictions, golds = ["cat", "cat", "dog", "dog"], [["cat"], [], ["dog"], []]
    best = metrics.best_thresholds(predictions, golds, [-3.0, 5.0, -1.0, -2.0])
    # Two are right without an answer. Answering -3 gains one, -2 loses it, -1 gains it again.
    assert best["best_f1"] == 0.75 and best["best_f1_thresh"] == -3.0
    assert metrics.tuned_threshold(predictions, golds, [-3.0, 5.0, -1.0, -2.0]) == -2.5


def test_a_threshold_where_all_or_nothing_is_to_be_answered():
    assert metrics.tuned_threshold(["cat", "cat"], [[], []], [1.0, 4.0]) == 0.0  # below the lowest
    assert metrics.tuned_threshold(["cat", "dog"], [["cat"], ["dog"]], [1.0, 4.0]) == 5.0
    assert metrics.best_thresholds(["cat"], [[]], [3.0])["best_f1_thresh"] == 0.0  # as they say it


def test_no_answer_that_is_predicted_costs_nothing_to_answer():
    golds = [[], ["cat"], []]
    best = metrics.best_thresholds(["", "cat", "dog"], golds, [0.0, 1.0, 2.0])
    assert best["best_exact"] == 1.0 and best["best_exact_thresh"] == 1.0


def test_the_metrics_are_those_of_the_official_programs():
    for case in json.loads(REFERENCE.read_text(encoding="utf-8")):
        predictions, golds = case["predictions"], case["golds"]
        if case["version"] == 1:
            scores = metrics.squad_1(predictions, golds)
        else:
            scores = metrics.squad_2(predictions, golds)
            if "null_scores" in case:
                scores |= metrics.best_thresholds(predictions, golds, case["null_scores"])
        fractions = {
            name: value / 100 if "thresh" not in name and "total" not in name else value
            for name, value in case["figures"].items()
        }
        assert scores == pytest.approx(fractions, rel=1e-13, abs=1e-13)
