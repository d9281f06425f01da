"""Fine-tuning: it learns, resumes exactly, keeps the model it says, and refuses bad input."""

import json

import numpy as np
import pytest

from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.inference.evaluate import evaluate
from keras_bert.training.finetune import finetune
from tests.messages import raises_input_error
from tests.tasks.classification.killed_runs import assert_same_weights, copied

# A run of few steps that change nothing.
SHORT = {"epochs": 1, "batch_size": 32, "checkpoint_every": 1, "learning_rate": 1e-9}


@pytest.fixture(scope="module")
def run(arguments, tmp_path_factory):
    """A finished run; beside it lies `killed`, as it was after step 15."""
    output = tmp_path_factory.mktemp("runs") / "unbroken"
    told = []
    with copied(output, output.with_name("killed"), after_step=15):
        metrics = finetune(**arguments, output=output, report=told.append)
    return output, metrics, told


@pytest.mark.usefixtures("eager")
def test_it_learns_and_measures_what_it_kept(run, files):
    output, metrics, _ = run
    assert metrics["dev"]["accuracy"] > 0.9
    assert metrics["labels"] == ["bad", "good"]
    assert metrics == json.loads((output / "metrics.json").read_text())
    measures = evaluate(model=output, data=files / "dev.tsv")
    assert measures["confusion"] == metrics["dev"]["confusion"]
    assert measures["cross_entropy"] == pytest.approx(metrics["dev"]["cross_entropy"], rel=1e-4)


def test_the_best_epoch_is_kept_and_said(run):
    _, metrics, told = run
    evaluations = [row["eval"] for row in metrics["history"] if "eval" in row]
    by_epoch = [(evaluation["accuracy"], -evaluation["loss"]) for evaluation in evaluations]
    assert len(by_epoch) == 6
    assert metrics["kept"]["epoch"] == 1 + by_epoch.index(max(by_epoch))
    assert metrics["dev"]["accuracy"] == pytest.approx(max(by_epoch)[0], abs=1e-6)
    assert any(f"epoch {metrics['kept']['epoch']} of 6" in line for line in told)
    assert any('"bad": 48, "good": 48' in line for line in told)


def test_the_folder_holds_what_the_design_says(run):
    output, _, _ = run
    assert sorted(entry.name for entry in output.iterdir()) == [
        "logs",
        "metrics.json",
        "model",
        "run.json",
    ]
    task = load_task(output / "model")
    assert (task.labels, task.settings.max_length) == (("bad", "good"), 16)


def test_a_finished_run_is_not_repeated_and_another_is_rejected(run, arguments, files):
    output, metrics, _ = run
    before = (output / "model" / "model.safetensors").stat().st_mtime_ns
    assert finetune(**arguments, output=output) == metrics
    assert (output / "model" / "model.safetensors").stat().st_mtime_ns == before
    with raises_input_error("epochs 6, now 5"):
        finetune(**{**arguments, "epochs": 5}, output=output)
    original = (files / "dev.tsv").read_text()
    (files / "dev.tsv").write_text(original + "good\tgood\n")
    with raises_input_error("other content of dev"):
        finetune(**arguments, output=output)
    (files / "dev.tsv").write_text(original)


def test_a_finished_run_without_its_model_is_rejected(run, arguments, tmp_path):
    output, metrics, _ = run
    (output / "model").rename(tmp_path / "model")
    try:
        with raises_input_error("is finished, but the model ... is missing"):
            finetune(**arguments, output=output)
    finally:
        (tmp_path / "model").rename(output / "model")
    assert finetune(**arguments, output=output) == metrics


def test_a_killed_run_ends_with_the_same_weights(run, arguments):
    """Processes that are really killed are in tests/training/test_pretrain.py."""
    output, metrics, _ = run
    killed = output.with_name("killed")
    resumed = finetune(**arguments, output=killed)
    assert resumed["kept"] == metrics["kept"]
    assert resumed["dev"] == metrics["dev"]
    assert_same_weights(killed, output)


@pytest.mark.usefixtures("eager")
def test_it_starts_from_the_weights_of_a_model_folder(arguments, tokenizer, config, tmp_path):
    encoder = BertEncoder(config)
    save_folder(encoder, tokenizer, tmp_path / "pretrained" / "model")
    given = {**arguments, **SHORT, "keep": "last"}
    for name in ("architecture", "vocab"):
        given.pop(name)
    metrics = finetune(**given, model=tmp_path / "pretrained", output=tmp_path / "run", dropout=0.0)
    assert metrics["kept"] == {"which": "last", "epoch": 1, "step": metrics["steps"]}
    tuned, _ = load(tmp_path / "run" / "model")
    for before, after in zip(encoder.weights, tuned.weights, strict=True):
        np.testing.assert_allclose(before, after, atol=1e-5)


@pytest.mark.parametrize(
    "pooling, pooled, said",
    [
        (None, False, ["The model has no pooler; the head reads the mean of all tokens."]),
        ("mean", False, []),
        (
            "cls",
            True,
            ["The model has no pooler; the head reads the first token through a new one."],
        ),
    ],
)
@pytest.mark.usefixtures("eager")
def test_what_a_masked_language_model_never_trained_is_not_read_by_itself(
    pooling, pooled, said, arguments, tokenizer, config, tmp_path
):
    encoder = BertEncoder(config)
    save_folder(encoder, tokenizer, tmp_path / "model")
    given = {**arguments, **SHORT}
    for name in ("architecture", "vocab"):
        given.pop(name)
    told, run = [], tmp_path / "run"
    finetune(**given, model=tmp_path, output=run, pooling=pooling, report=told.append)
    assert [line for line in told if "pooler" in line] == said
    task = load_task(run / "model")
    assert task.settings.pooling == (pooling or "mean")
    assert (task.encoder.pooler is not None) == pooled
    for before, after in zip(encoder.weights, task.encoder.weights, strict=False):
        np.testing.assert_allclose(before, after, atol=1e-5)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"train": "none.tsv"}, "none.tsv does not exist"),
        ({"max_length": 65}, "`max_length` must be at most 64...Received: 65"),
        ({"model": "somewhere"}, "Give either a model folder"),
        ({"architecture": None}, "Give either a model folder"),
        ({"architecture": "huge"}, "Unknown architecture 'huge'"),
        ({"vocab": None}, "An architecture needs a vocabulary"),
        ({"architecture": None, "vocab": None, "model": "nowhere"}, "no model folder nowhere"),
        (
            {"task": "poetry"},
            "task 'poetry' cannot be trained on labelled files. Choose from: classifier",
        ),
        ({"train_layers": 99, "train": "none.tsv"}, "`train_layers` is 99, but the head reads"),
        ({"keep": "worst"}, "`keep` is 'worst'. It should be best or last"),
        ({"epochs": 0}, "`epochs` must be at least 1. Received: 0"),
        ({"dropout": 1.0}, "`dropout` must be below 1. Received: 1.0"),
        ({"learning_rate": -1.0}, "`learning_rate` must be above 0. Received: -1.0"),
        (
            {"steps_per_execution": 100, "checkpoint_every": 100},
            "would have 100 steps, a multiple of `steps_per_execution`, for 96 examples. Use a",
        ),
    ],
)
def test_bad_arguments(arguments, tmp_path, changes, message):
    with raises_input_error(message):
        finetune(**{**arguments, **changes}, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_bad_labels_and_outputs(arguments, files, tmp_path):
    dev = tmp_path / "dev.tsv"
    dev.write_text("text\tlabel\ngood film\tgood\n\nodd film\todd\n")
    with raises_input_error('dev.tsv, line 4: unknown label "odd"'):
        finetune(**{**arguments, "dev": dev}, unknown_labels="error", output=tmp_path / "run")
    one = tmp_path / "one.tsv"
    one.write_text("text\tlabel\ngood film\tgood\nnice film\tgood\n")
    with raises_input_error('one.tsv has one label only ("good")'):
        finetune(**{**arguments, "train": one}, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with raises_input_error("contains something else"):
        finetune(**{**arguments, "train": "none.tsv"}, output=tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["dev.tsv", "one.tsv"]


class Told(Exception):
    """Ends a run when it has said what the test is about."""


def test_texts_that_the_vocabulary_does_not_know_are_told_before_training(run, arguments, tmp_path):
    foreign = tmp_path / "train.tsv"
    foreign.write_text(
        "text\tlabel\n" + "the film was жжж\tgood\n" * 9 + "жжж the plot ж\tbad\n" * 9
    )

    def report(line):
        if "[UNK]" in line:
            raise Told(line)

    with pytest.raises(Told, match=r"37.5 % of the training tokens are \[UNK\]"):
        finetune(**{**arguments, "train": foreign}, output=tmp_path / "run", report=report)
    assert not any("[UNK]" in line for line in run[2])


def test_dev_examples_that_are_the_training_examples_are_told(run, arguments, tmp_path):
    def report(line):
        if "the dev examples are the training examples" in line:
            raise Told(line)

    same = {**arguments, "dev": arguments["train"]}
    with pytest.raises(Told, match="^Note: .* do not show how the model does on new text"):
        finetune(**same, output=tmp_path / "run", report=report)
    assert not any("dev examples are" in line for line in run[2])
