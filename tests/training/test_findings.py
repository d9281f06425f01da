"""What a run says about its examples and its results, with the flag that helps."""

import json

import numpy as np

from keras_bert.readers.texts import LabelledText
from keras_bert.training.findings import example_findings, loss_finding, result_findings
from keras_bert.training.finetune import finetune


class Source:
    name = "train.csv"


def examples(*pairs):
    return [LabelledText(n, text, label, source=Source) for n, (text, label) in enumerate(pairs, 1)]


def test_texts_in_both_files_and_repeated_texts_with_other_labels():
    train = examples(("a b", "x"), ("c", "y"), ("a b", "y"))
    shared, contradiction = example_findings(train, examples(("d", "x"), ("c", "y")))
    assert shared.startswith("train.csv, line 2: 1 dev example of 2 with a text")
    assert "(--dev)" in shared
    assert "1 example with the text of an earlier one (line 1) and another label" in contradiction
    assert "(--multi-label)" in contradiction
    assert [*example_findings(train[:2], examples(("d", "x")))] == []
    assert [*example_findings(train[:2], None)] == []


def of(confusion, names):
    return {"confusion": confusion, "labels": dict.fromkeys(names)}


def test_labels_that_are_never_predicted():
    metrics = of([[5, 1, 0], [0, 4, 0], [1, 1, 0]], "abc")
    (finding,) = result_findings(metrics, has_class_weights=True)
    assert finding.startswith('"c" is never predicted on the dev data.')
    assert all(flag in finding for flag in ("--learning-rate", "--epochs", "--class-weights"))
    (finding,) = result_findings(metrics, has_class_weights=False)
    assert "--class-weights" not in finding
    (finding,) = result_findings(of([[0, 3], [0, 4]], "ab"), has_class_weights=True)
    assert finding.startswith('The model predicts "b" for everything in the dev data.')
    several = of([[[4, 0], [2, 0]], [[3, 0], [0, 3]]], "ab")
    (finding,) = result_findings(several, has_class_weights=True)
    assert finding.startswith('"a" is never predicted')
    for fine in (of([[3, 0], [1, 2]], "ab"), of([[3, 0], [0, 0]], "ab"), {"pearson": 0.1}):
        assert [*result_findings(fine, has_class_weights=True)] == []


def records(*losses):
    return [{"step": n, "train": {"loss": loss}} for n, loss in enumerate(losses, 1)]


def test_a_loss_that_did_not_fall():
    (finding,) = loss_finding(records(0.7, 0.6, 0.7, 0.7), 2)
    assert finding.startswith("The training loss did not fall: 0.650 at the beginning, 0.700 at")
    assert "--learning-rate" in finding and "--show-errors" in finding
    assert [*loss_finding(records(0.7, 0.6, 0.7, 0.5), 2)] == []
    assert [*loss_finding(records(0.7, 0.8), 2)] != []  # within one epoch
    assert [*loss_finding(records(0.7), 1)] == []


def test_a_run_says_them_and_records_them(tmp_path):
    from keras_bert.checkpoints import save_folder
    from tests.small_model import make_encoder, make_tokenizer

    tokenizer = make_tokenizer(["good", "bad", "film", "plot"])
    save_folder(make_encoder(tokenizer), tokenizer, tmp_path / "model")
    rng = np.random.default_rng(0)
    rows = [("film plot", label) for label in rng.choice(["good", "bad"], 12, p=[0.8, 0.2])]
    told = []
    metrics = finetune(
        model=str(tmp_path / "model"),
        train=[*rows, ("plot", "bad")],
        dev=[("film plot", "good"), ("plot good", "bad")],
        freeze_encoder=True,
        epochs=1,
        learning_rate=1e-9,
        output=tmp_path / "run",
        report=told.append,
    )
    assert (
        metrics["warnings"]
        == json.loads((tmp_path / "run" / "metrics.json").read_text())["warnings"]
    )
    assert [line for line in told if line.startswith("Warning: ")] == [
        f"Warning: {finding}" for finding in metrics["warnings"]
    ]
    parts = ("1 dev example of 2", "with the text of an earlier one", "The model predicts")
    assert all(part in line for part, line in zip(parts, metrics["warnings"], strict=False))
