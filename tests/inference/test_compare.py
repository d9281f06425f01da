"""Two models on the same examples: metrics, intervals, McNemar's test, and what changed."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.inference.compare import (
    Side,
    bootstrap_counts,
    comparison,
    describe_comparison,
    mcnemar,
)
from keras_bert.tasks.summed_metrics import right_alone
from tests.exports.models import shaken
from tests.messages import raises_input_error
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer

TABLE = pd.DataFrame(
    {
        "id": range(24),
        "message": [f"{word} {other}" for word in "abcdef" for other in "ghij"],
        "label": ["ham", "spam", "eggs"] * 8,
    }
)


def classifier(labels, *, halved):
    """A classifier for which `halved`, one of its labels, is the answer of half of the texts."""
    tokenizer = make_tokenizer()
    task = shaken(kb.Classifier(make_encoder(tokenizer), tokenizer, labels=labels))
    task.columns = {"text": ["message"], "label": ["label"]}
    distances = []
    for prediction in kb.predict(task, TABLE):
        logits = {n: math.log(max(p, 1e-9)) for n, p in prediction["probabilities"].items()}
        own = logits.pop(halved)
        distances.append(max(logits.values()) - own)
    bias = task.classifier.bias.numpy()
    bias[task.labels.index(halved)] += np.median(distances)
    task.classifier.bias.assign(bias)
    return task


@pytest.fixture(scope="module")
def tasks():
    return [
        classifier(["ham", "spam"], halved="ham"),
        classifier(["eggs", "ham", "spam"], halved="eggs"),
    ]


@pytest.fixture(scope="module")
def compared(tasks, tmp_path_factory):
    """(the comparison of the two tasks, the table of the examples that changed)."""
    output = tmp_path_factory.mktemp("compare") / "changed.csv"
    return kb.compare(tasks, TABLE, output=output, report=[].append), pd.read_csv(output)


def test_each_side_is_what_evaluate_says(tasks, compared):
    compared, _ = compared
    for name, task in zip(("old", "new"), tasks, strict=True):
        metrics = kb.evaluate(task, TABLE, report=[].append)
        for metric, values in compared["metrics"].items():
            assert values[name] == pytest.approx(metrics[metric], abs=1e-6)
        for label, values in compared["labels"].items():
            assert values[name] == pytest.approx(metrics["labels"][label]["f1"], abs=1e-6)
    assert compared["examples"] == 24 and compared["metric"] == "accuracy"
    assert compared["only_old"] == [] and compared["only_new"] == ["eggs"]
    counts = compared["mcnemar"]
    assert sum(counts[name] for name in ("both", "only_old", "only_new", "neither")) == 24
    old_right = counts["both"] + counts["only_old"]
    assert compared["metrics"]["accuracy"]["old"] == pytest.approx(old_right / 24, abs=1e-6)


def test_the_file_has_the_rows_whose_answer_changed(tasks, compared):
    compared, changed = compared
    answers = [[p["label"] for p in kb.predict(task, TABLE)] for task in tasks]
    rows = [n for n, (old, new) in enumerate(zip(*answers, strict=True)) if old != new]
    assert rows and changed["id"].tolist() == rows
    assert changed["message"].tolist() == TABLE["message"][rows].tolist()
    assert changed["old"].tolist() == [answers[0][n] for n in rows]
    assert changed["new"].tolist() == [answers[1][n] for n in rows]
    for row in changed.itertuples():
        is_right = [answer == row.expected for answer in (row.old, row.new)]
        assert row.change == {(True, False): "worse", (False, True): "better"}.get(
            tuple(is_right), "other"
        )
    counts = changed["change"].value_counts()
    assert compared["changed"] == {n: counts.get(n, 0) for n in ("better", "worse", "other")}


def test_the_same_model_has_no_difference(tasks):
    compared = kb.compare([tasks[1], tasks[1]], TABLE, report=[].append)
    for metric in (*compared["metrics"].values(), *compared["labels"].values()):
        assert metric["difference"] == metric.get("low", 0) == metric.get("high", 0) == 0
    assert compared["mcnemar"]["p_value"] == 1 and not any(compared["changed"].values())
    assert "did not change" in describe_comparison(compared)


@pytest.mark.parametrize(("ending", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_a_table_without_changes_has_the_columns_of_one_with_changes(tasks, tmp_path, ending, read):
    output = tmp_path / f"changed.{ending}"
    columns = []
    for models in (tasks, [tasks[1], tasks[1]]):  # the second replaces the table of the first
        kb.compare(models, TABLE, output=output, force=True, report=[].append)
        columns.append(read(output).columns.tolist())
    assert columns[0] == columns[1] and read(output).empty


class Right:
    """A task whose predictions say whether they are right."""

    METRIC, MIN_LABELS = "right", 0

    def official_metrics(self, predictions, examples):
        return {"right": float(np.mean(predictions))}

    def summed_metrics(self, predictions, examples):
        return right_alone(predictions)

    def is_right(self, predictions, examples):
        return predictions


def test_the_interval_is_that_of_scipy():
    rng = make_rng(8)
    old, new = rng.random((2, 200)) < [[0.6], [0.7]]

    sides = [Side(Right(), None, [None] * 200, is_right.tolist()) for is_right in (old, new)]
    metric = comparison(sides, samples=4000, seed=0)["metrics"]["right"]
    bootstrap = stats.bootstrap(
        (new.astype(float), old.astype(float)),
        lambda new, old, axis: np.mean(new, axis=axis) - np.mean(old, axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=4000,
        method="percentile",
        random_state=shifted(1),
    )
    # An end is off by about 0.06 standard errors in each of the two: a fifth is far beyond both.
    ends = bootstrap.confidence_interval
    bound = 0.6 * bootstrap.standard_error
    assert abs(metric["low"] - ends.low) < bound and abs(metric["high"] - ends.high) < bound
    assert metric["low"] <= metric["difference"] <= metric["high"]


def test_samples_are_drawn_with_replacement_by_the_seed_alone(monkeypatch):
    whole = np.concatenate([*bootstrap_counts(7, samples=30, seed=shifted(2))])
    assert whole.shape == (30, 7) and (whole.sum(axis=1) == 7).all() and whole.max() > 1
    monkeypatch.setattr("keras_bert.inference.compare._CELLS", 7 * 4)
    parts = [*bootstrap_counts(7, samples=30, seed=shifted(2))]
    assert len(parts) == 8 and np.array_equal(np.concatenate(parts), whole)
    other = np.concatenate([*bootstrap_counts(7, samples=30, seed=shifted(2) + 1)])
    assert not np.array_equal(other, whole)


@pytest.mark.parametrize(("only_old", "only_new"), [(0, 0), (1, 0), (3, 9), (12, 12), (2, 40)])
def test_mcnemar_is_the_exact_binomial_test(only_old, only_new):
    old = [True] * only_old + [False] * only_new + [True] * 5 + [False] * 2
    new = [False] * only_old + [True] * only_new + [True] * 5 + [False] * 2
    counts = mcnemar(old, new)
    assert [counts[n] for n in ("both", "only_old", "only_new", "neither")] == [
        5,
        only_old,
        only_new,
        2,
    ]
    n, fewer = only_old + only_new, min(only_old, only_new)
    tail = sum(Fraction(math.comb(n, k), 2**n) for k in range(fewer + 1))
    assert counts["p_value"] == pytest.approx(float(min(1, 2 * tail)), rel=1e-12)
    if n > 30:  # the chi-squared test with a correction is near it
        chi2 = (abs(only_old - only_new) - 1) ** 2 / n
        assert counts["p_value"] == pytest.approx(stats.chi2.sf(chi2, 1), rel=0.9, abs=1e-6)


def test_examples_that_one_model_leaves_out_are_left_out_for_both(tasks, tmp_path):
    table = TABLE.assign(body=TABLE["message"])
    table.loc[3, "body"] = None
    other = classifier(["eggs", "ham", "spam"], halved="eggs")
    other.columns = {"text": ["body"], "label": ["label"]}
    lines = []
    compared = kb.compare([tasks[1], other], table, report=lines.append)
    assert compared["examples"] == 23 and not any(compared["changed"].values())
    assert any("1 example that only" in line and "left out for both" in line for line in lines)


def test_what_cannot_be_compared_is_an_error(tasks, tmp_path):
    with raises_input_error("must be two models, the earlier one first. Received: 1."):
        kb.compare([tasks[0]], TABLE)
    tokenizer = make_tokenizer()
    tagger = kb.Tagger(make_encoder(tokenizer), tokenizer, labels=["X", "Y"])
    with raises_input_error("different tasks: classifier and tagger"):
        kb.compare([tasks[0], tagger], TABLE)
    with raises_input_error("cannot be standard input"):
        kb.compare(tasks, "-")
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    with raises_input_error("did not write"):
        kb.compare(tasks, TABLE, output=tmp_path / "mine.csv", force=True, report=[].append)


@pytest.mark.usefixtures("eager")
def test_the_command_writes_a_file_and_a_picture(tasks, tmp_path, capsys):
    folders = [str(tmp_path / name) for name in ("old", "new")]
    for task, folder in zip(tasks, folders, strict=True):
        task.save(folder)
    data, output, picture = (str(tmp_path / n) for n in ("test.csv", "changed.jsonl", "c.png"))
    TABLE.to_csv(data, index=False)
    command = ["compare", "--models", *folders, "--data", data, "--output", output]
    assert main([*command, "--picture", picture]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("examples") and "only_new" in out and f"Wrote {output}:" in out
    assert 'Only the newer model has "eggs".' in err and "Next: keras-bert export" in err
    assert "of the difference" in err
    with open(output, encoding="utf-8") as file:
        assert {"id", "message", "change", "expected", "old", "new"} <= json.loads(
            next(file)
        ).keys()
    assert main(command) == 2 and "--force" in capsys.readouterr().err
