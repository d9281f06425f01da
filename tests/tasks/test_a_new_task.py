"""A new task type is its own folder and one line of TASKS: all that a task is put through."""

import dataclasses
import json
from pathlib import Path
from unittest.mock import ANY

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from keras_bert import tasks
from keras_bert.checkpoints import load, load_task
from keras_bert.cli.main import main
from keras_bert.exports.saved_model import export
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.training.finetune import finetune
from tests.eagerly import eagerly
from tests.messages import raises_input_error
from tests.seeds import make_rng, shifted
from tests.small_model import make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied
from tests.tasks.toy_task import HoldsWord

TASK = tasks.TaskType("tests.tasks.toy_task:HoldsWord", "tests.tasks.toy_task:HoldsWordSettings")
WORDS = ["great", "film", "plot", "dull", "the", "fun"]


@pytest.fixture(scope="module", autouse=True)
def entered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tasks.TASKS, "holds-word", TASK)
        yield


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    rng = make_rng(4)
    for name, count in (("train", 64), ("dev", 24)):
        lines = []
        for _ in range(count):
            words = rng.choice(WORDS[1:], rng.integers(1, 6)).tolist()
            if rng.random() < 0.5:
                words.insert(rng.integers(0, len(words)), "great")
            label = "yes" if "great" in words else "no"
            lines.append(f"{label}\t{' '.join(words)}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    tokenizer = make_tokenizer(WORDS)
    tokenizer.vocabulary.save(folder / "vocab.txt")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 16, "initializer_range": 0.3}
    config = {"vocab_size": len(tokenizer), **sizes}
    (folder / "config.json").write_text(json.dumps(config))
    return {
        "task": "holds-word",
        "train": str(folder / "train.tsv"),
        "dev": str(folder / "dev.tsv"),
        "architecture": str(folder / "config.json"),
        "vocab": str(folder / "vocab.txt"),
        "column": 2,
        "threshold": 0.25,
        "batch_size": 8,
        "epochs": 5,
        "learning_rate": 0.03,  # with which six draws of six were learned
        "seed": shifted(3),
        "checkpoint_every": 4,
        "deterministic": True,
    }


@pytest.fixture(scope="module")
def run(given, tmp_path_factory):
    """(the folder of a run, its metrics); beside it lies `killed`, as it was after step 8."""
    output = tmp_path_factory.mktemp("toy_run") / "run"
    with copied(output, output.with_name("killed"), after_step=8):
        return output, finetune(**given, output=output)


def test_it_learns_and_keeps_the_epoch_of_its_own_official_metric(run, given):
    output, metrics = run
    by_epoch = [entry["eval"] for entry in metrics["history"] if "eval" in entry]
    best = max(by_epoch, key=lambda one: (one["f1"], -one["loss"]))
    assert metrics["kept"]["epoch"] == 1 + by_epoch.index(best)
    assert metrics["dev"] == {"f1": pytest.approx(best["f1"]), "examples": 24}
    lines = Path(given["dev"]).read_text(encoding="utf-8").splitlines()
    positive = sum(line.startswith("yes") for line in lines) / len(lines)
    assert metrics["dev"]["f1"] > 2 * positive / (1 + positive)  # more than of "yes" for all
    settings = json.loads((output / "run.json").read_text())["settings"]
    assert (settings["word"], settings["column"], settings["threshold"]) == ("great", 2, 0.25)


def test_a_run_that_is_gone_on_with_ends_bit_for_bit_like_an_uninterrupted_one(run, given):
    output, metrics = run
    killed = output.with_name("killed")
    resumed = finetune(**given, output=killed)
    assert (resumed["kept"], resumed["dev"]) == (metrics["kept"], metrics["dev"])
    assert_same_weights(killed, output)


def test_the_folder_says_what_it_holds_and_others_can_read_the_encoder(run, tmp_path):
    output, _ = run
    config = json.loads((output / "model" / "config.json").read_text())
    assert config["keras_bert"].items() >= {"task": "holds-word", "word": "great"}.items()
    task = load_task(output / "model")
    assert isinstance(task, HoldsWord)
    settings = task.settings
    assert (settings.word, settings.threshold, settings.max_length) == ("great", 0.25, 16)
    tensors = load_file(output / "model" / "model.safetensors")
    head_tensors = {name for name in tensors if name.startswith("keras_bert.")}
    assert len(head_tensors) == 4
    assert all(name.startswith("keras_bert.scorer.") for name in head_tensors)
    encoder, _ = load(output / "model")
    assert np.array_equal(
        encoder.token_embedding.embeddings, task.encoder.token_embedding.embeddings
    )
    task.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (
        output / "model" / "model.safetensors"
    ).read_bytes()
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    assert again.settings.word == "great" and again.settings.threshold == 0.25


def test_a_stored_setting_that_cannot_be_is_said(run, tmp_path):
    task = load_task(run[0] / "model")
    for setting, value, message in (
        ("threshold", 2, "under keras_bert: `threshold` must be below 1. Received: 2.0"),
        ("word", 7, "under keras_bert: `word` is 7. It should be a text"),
        ("max_length", 17, "`max_length` is 17. Expected at most the 16 positions"),
        ("task", "poetry", "Unknown task 'poetry'"),
        ("task", "classifier", "lacks the tensor pooler.dense.weight"),
    ):
        folder = tmp_path / f"{setting}-{value}"
        task.save(folder)
        config = json.loads((folder / "config.json").read_text())
        config["keras_bert"][setting] = value
        (folder / "config.json").write_text(json.dumps(config))
        with raises_input_error(message):
            load_task(folder)


@pytest.mark.usefixtures("eager")
def test_evaluate_and_predict_the_same_by_call_and_command(run, given, capsys):
    output, metrics = run
    measures = evaluate(model=output, data=given["dev"], column=2)
    assert measures == metrics["dev"]
    texts = ["a great film", "dull plot"]
    answers = list(predict(model=output, text=texts))
    assert [answer["text"] for answer in answers] == texts
    assert [answer["holds"] for answer in answers] == [True, False]
    model = ["--model", str(output)]
    assert main(["evaluate", "--json", *model, "--data", given["dev"], "--column", "2"]) == 0
    assert json.loads(capsys.readouterr().out) == measures
    assert main(["predict", *model, "--text", texts[0]]) == 0
    assert json.loads(capsys.readouterr().out) == answers[0]
    with pytest.raises(SystemExit):
        main(["predict", *model, "--label-column", "1", "--text", "x"])  # a classifier's
    assert (
        "Unknown arguments: --label-column 1. --label-column is a flag of --task"
        in capsys.readouterr().err
    )


@pytest.mark.usefixtures("eager")
def test_what_is_tuned_on_the_dev_texts_is_kept(run, given):
    answers = predict(model=run[0], data=given["dev"], column=2)
    p = np.array([answer["probability"] for answer in answers])
    rounding = np.mean(1e-6 / (p * (1 - p)))  # of a score whose probability has six digits
    usual = load_task(run[0] / "model").settings.usual
    assert usual == pytest.approx(np.mean(np.log(p / (1 - p))), abs=1e-5 + rounding)


@pytest.mark.usefixtures("eager")
def test_the_worst_errors_are_shown(run, tmp_path, capsys):
    file = tmp_path / "wrong.tsv"
    file.write_text("no\tgreat great great\nyes\tgreat\nyes\tdull dull\nno\tfun\n")
    answers = list(predict(model=run[0], data=file, column=2))
    wrong = [(answers[0]["probability"], 1, "great great great", "no", "yes")]
    wrong += [(1 - answers[2]["probability"], 3, "dull dull", "yes", "no")]
    names = ("score", "line", "text", "expected", "predicted")
    worst = [dict(zip(names, error, strict=True)) for error in sorted(wrong, reverse=True)]
    measures = evaluate(model=run[0], data=file, column=2, show_errors=5)
    assert measures.pop("errors") == [{**error, "score": ANY} for error in worst]
    command = ["evaluate", "--json", "--model", str(run[0]), "--data", str(file), "--column", "2"]
    assert main([*command, "--show-errors", "1"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == measures
    assert load_task(run[0] / "model").describe_error(worst[0]) in printed.err
    assert load_task(run[0] / "model").describe_error(worst[1]) not in printed.err


@pytest.mark.usefixtures("eager")
def test_the_command_has_the_flags_of_the_kind(given, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["finetune", "--task", "holds-word", "--help-all"])
    shown = capsys.readouterr().out
    assert "--word WORD" in shown and "--label-column" not in shown
    flags = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in given.items()
        if name != "deterministic"
    ]
    assert main(["finetune", *flags, "--epochs", "1", "--output", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "on the 24 dev examples: f1 " in printed and "keras-bert predict" in printed
    assert main(["finetune", *flags, "--threshold", "0", "--output", str(tmp_path / "new")]) == 2
    assert "keras-bert: --threshold must be above 0. Received: 0.0." in capsys.readouterr().err


@pytest.mark.usefixtures("eager")
def test_a_frozen_encoder_stays_and_its_head_learns(given, run, tmp_path):
    arguments = {name: v for name, v in given.items() if name not in ("architecture", "vocab")}
    metrics = finetune(
        **arguments, model=run[0], output=tmp_path / "frozen", freeze_encoder=True, layers="mix-all"
    )
    before, _ = load(run[0] / "model")
    after, _ = load(tmp_path / "frozen" / "model")
    for one, other in zip(before.weights, after.weights, strict=True):
        assert np.array_equal(one, other) or "seed_generator" in one.path
    assert metrics["trainable_parameters"] == (16 * 8 + 8) + (8 + 1) + 3
    assert metrics["dev"]["f1"] > 0.7
    assert len(metrics["scalar_mix"]["layer_weights"]) == 2


def test_the_exported_model_answers_as_predict_does(run, tmp_path):
    texts = ["a great film", "dull plot", ""]
    with eagerly():
        expected = [answer["probability"] for answer in predict(model=run[0], text=texts)]
    version = export(model=run[0], output=tmp_path / "served")
    served = tf.saved_model.load(str(version))
    answered = served.signatures["serving_default"](text=tf.constant(texts))["probability"]
    np.testing.assert_allclose(answered, expected, atol=1e-5)
    with raises_input_error("an export of the task holds-word, whose outputs are not predictions"):
        evaluate(model=version, data=[("yes", "a great film")])


def test_a_bad_example_is_named(run, tmp_path):
    file = tmp_path / "bad.tsv"
    file.write_text("yes\tgreat film\nperhaps\tfilm plot\nyes\tfilm\n")
    with raises_input_error('bad.tsv, line 2: the label is "perhaps". It should be'):
        evaluate(model=run[0], data=file, column=2)


def test_the_settings_in_the_table_are_those_of_the_class():
    for name in tasks.TASKS:
        cls = tasks.task_class(name)
        assert cls.TASK_TYPE == name
        if name in tasks.finetuned_task_types():
            assert cls.SETTINGS is tasks.settings_class(name)
            assert dataclasses.is_dataclass(cls.SETTINGS)
        else:
            assert not cls.reads_files()
