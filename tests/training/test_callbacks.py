"""Callbacks of a user's own: named on the command line, given in Python, and what they are told."""

import json

import keras
import numpy as np
import pytest

from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import main
from keras_bert.training.finetune import finetune
from keras_bert.training.parts.minutes import Minutes
from keras_bert.training.pretrain import pretrain
from keras_bert.training.settings import PretrainSettings
from tests.eagerly import eagerly
from tests.messages import raises_input_error
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.small_model import make_encoder, make_tokenizer

# As docs/training.md has it, with a file in place of MLflow's server.
TRACKING = """
import json, keras

class Tracker(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.lines = [{"epochs": self.params["epochs"]}]

    def on_epoch_end(self, epoch, logs=None):
        self.lines.append(logs)

    def on_train_end(self, logs=None):
        with open("tracked.json", "a") as file:
            file.write(json.dumps(self.lines) + "\\n")

class NotOne:
    pass
"""


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("callbacks")
    tokenizer = make_tokenizer(["good", "bad", "film"])
    save_folder(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, folder / "model")
    for name, count in (("train", 8), ("dev", 5)):
        lines = [f"{label} film\t{label}\n" for label in ["good", "bad"] * count]
        (folder / f"{name}.tsv").write_text("".join(["text\tlabel\n", *lines]))
    files = {name: str(folder / f"{name}.tsv") for name in ("train", "dev")}
    return {"model": str(folder / "model"), **files, "batch_size": 4, "freeze_encoder": True}


@pytest.fixture
def working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tracking_by_us.py").write_text(TRACKING)
    return tmp_path


def test_a_callback_that_is_named_gets_the_records_of_each_run(working_directory, given):
    flags = [f"--{name.replace('_', '-')}={given[name]}" for name in ("model", "train", "dev")]
    flags += ["--freeze-encoder", "--batch-size=4", "--epochs=2", "--num-seeds=2", "--output=run"]
    with eagerly():
        assert main(["finetune", *flags, "--callback", "tracking_by_us:Tracker"]) == 0
    runs = (working_directory / "tracked.json").read_text().splitlines()
    folders = [working_directory / "run" / "runs" / f"seed-{seed}" for seed in (0, 1)]
    for line, folder in zip(runs, folders, strict=True):
        begin, *logs = json.loads(line)
        history = json.loads((folder / "metrics.json").read_text())["history"]
        assert begin == {"epochs": len(history)} and len(logs) == len(history)
        for log, record in zip(logs, history, strict=True):
            assert log["step"] == record["step"] and log["loss"] == record["train"]["loss"]
            held_out = {name: x for name, x in log.items() if name.startswith("val_")}
            assert held_out == {f"val_{name}": x for name, x in record.get("eval", {}).items()}
    run = json.loads((working_directory / "run" / "run.json").read_text())
    assert run["settings"]["callbacks"] == ["tracking_by_us:Tracker"]


class StopAfterFirstEvaluation(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = "val_loss" in logs


def test_a_callback_of_python_may_stop_a_run(given, tmp_path):
    lines = []
    callbacks = [StopAfterFirstEvaluation(), keras.callbacks.TerminateOnNaN()]
    with eagerly():
        metrics = finetune(
            **given, epochs=3, callbacks=callbacks, output=tmp_path / "run", report=lines.append
        )
    assert metrics["steps"] == 4 and metrics["kept"]["epoch"] == 1
    assert "Stopped early by a callback, after step 4." in lines
    recorded = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["callbacks"]
    assert recorded[0] == f"{__name__}:StopAfterFirstEvaluation" and len(recorded) == 2
    again = finetune(**given, epochs=3, callbacks=callbacks, output=tmp_path / "run")
    assert again == metrics
    with raises_input_error("different settings: callbacks ['"):
        finetune(**given, epochs=3, output=tmp_path / "run")


class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


def test_a_run_that_is_stopped_before_an_evaluation_has_no_best_model(given, tmp_path):
    with (
        eagerly(),
        raises_input_error("A callback stopped the run after step 2, before the first evaluation"),
    ):
        finetune(**{**given, "batch_size": 1}, callbacks=[Stop()], output=tmp_path / "run")


def files_of_pretraining(tmp_path):
    """The arguments of `pretrain` that are files, for a small model."""
    make_data_folder(tmp_path / "rows", rows=16, eval_examples=4)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = {**sizes, "vocab_size": len(VOCABULARY), "intermediate_size": 8}
    (tmp_path / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 24}))
    files = {"data": tmp_path / "rows", "vocab": tmp_path / "rows" / "vocab.txt"}
    files |= {"architecture": tmp_path / "config.json", "output": tmp_path / "run"}
    return files


def test_a_callback_may_stop_pre_training_where_its_steps_are_planned_again(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.training.pretrain.steps_in", lambda *_, **options: [4])

    def new_steps(minutes, records):
        return [6] if records and minutes.steps == [4] else None

    monkeypatch.setattr(Minutes, "new_steps", new_steps)
    lines, files = [], files_of_pretraining(tmp_path)
    with eagerly():
        metrics = pretrain(
            **files,
            minutes=1,
            batch_size=4,
            checkpoint_every=2,
            callbacks=[Stop()],
            report=lines.append,
        )
    assert metrics["steps"] == 1
    assert "Stopped early by a callback, after step 1." in lines
    assert not any("Planned again" in line for line in lines)


def test_a_callback_gets_the_exact_losses_of_pre_training(tmp_path):
    class Noting(keras.callbacks.Callback):
        logs = []

        def on_epoch_end(self, epoch, logs=None):
            self.logs.append(logs)

    files = files_of_pretraining(tmp_path)
    with eagerly():
        metrics = pretrain(**files, steps=3, batch_size=4, callbacks=[Noting()])
    records = [record for record in metrics["history"] if record["step"]]
    losses = [record["train"]["masked_lm_loss"] for record in records]
    np.testing.assert_allclose([logs["masked_lm_loss"] for logs in Noting.logs], losses)
    assert Noting.logs[-1]["val_loss"] == metrics["eval"]["loss"]


@pytest.mark.parametrize(
    "name, message",
    [
        ("tracking", "--callback is 'tracking'. Expected MODULE:CLASS, such as tracking:Metrics"),
        ("no_such:Tracker", "The callback no_such:Tracker cannot be imported: No module named 'no"),
        (
            "tracking_by_us:Wrong",
            "tracking_by_us:Wrong cannot be imported: module",
        ),
        ("tracking_by_us:NotOne", "NotOne is not a class of `keras.callbacks.Callback`."),
    ],
)
def test_a_callback_that_cannot_be_used_is_one_sentence(
    name, message, working_directory, given, capsys
):
    flags = [f"--{key}={given[key]}" for key in ("model", "train", "dev")]
    assert main(["finetune", *flags, "--output=run", "--callback", name]) == 2
    error = capsys.readouterr().err
    assert message in " ".join(error.split()) and "Traceback" not in error
    assert not (working_directory / "run").exists()


def test_other_objects_are_rejected(given, tmp_path):
    with raises_input_error(
        "`callbacks` must be names, MODULE:CLASS, or objects of `keras.callbacks.Callback`"
    ):
        finetune(**given, callbacks=[print], output=tmp_path / "run")


def test_the_names_are_recorded_and_read_back():
    files = {"data": "d", "vocab": "v", "output": "o", "steps": 5}
    settings = PretrainSettings.of({**files, "callbacks": ["a:B", keras.callbacks.CSVLogger("x")]})
    names = settings.recorded()["callbacks"]
    assert names[0] == "a:B" and names[1].endswith(":CSVLogger")
    assert PretrainSettings.of({**files, "callbacks": names}).recorded()["callbacks"] == names
