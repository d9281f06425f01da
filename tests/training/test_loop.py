"""The loop of all runs: what it fetches, how many steps an execution has, how it ends."""

import dataclasses
import json
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert.base.ownership import lock_folder
from keras_bert.base.signals import Terminated
from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import main
from keras_bert.encoders.roberta import RobertaConfig
from keras_bert.encoders.roberta.encoder import RobertaEncoder
from keras_bert.inference.evaluate import evaluate
from keras_bert.programs import Devices
from keras_bert.records import DataFolder
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.pretraining.features import (
    WindowBatches,
    evaluation_dataset,
    training_dataset,
)
from keras_bert.training import loop
from keras_bert.training.checkpoint import latest_checkpoint
from keras_bert.training.finetune import finetune
from keras_bert.training.plan import plan_steps
from keras_bert.training.pretrain import pretrain
from keras_bert.training.settings import PretrainSettings
from tests.instant_training import make_evaluation_instant, make_fit_instant
from tests.messages import raises_input_error
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import shifted
from tests.small_model import make_encoder, make_tokenizer

SIZES = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loop")
    data = make_data_folder(folder / "data", rows=44, eval_examples=11)
    (folder / "config.json").write_text(json.dumps(SIZES))
    return {
        "data": str(data),
        "vocab": str(data / "vocab.txt"),
        "architecture": str(folder / "config.json"),
        "steps": 12,
        "batch_size": 8,
        "eval_every": 6,
        "checkpoint_every": 6,
    }


@pytest.fixture
def instant_fit(monkeypatch):
    make_fit_instant(monkeypatch)


@pytest.fixture
def instant(monkeypatch, instant_fit):
    make_evaluation_instant(monkeypatch)


def counted_run(given, output, **options):
    """-> (the metrics of a run, what its callbacks were told at the end of each execution)."""
    told = []
    original = loop.EndOfRecord.on_train_batch_end

    def count(self, batch, logs=None):
        told.append(logs)
        original(self, batch, logs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.EndOfRecord, "on_train_batch_end", count)
        return pretrain(**given, output=output, **options), told


@pytest.fixture(scope="module")
def plain(given, tmp_path_factory):
    """(the folder of a run with a step an execution, its metrics, what was told)."""
    output = tmp_path_factory.mktemp("plain") / "run"
    return output, *counted_run(given, output, steps_per_execution=1)


@pytest.mark.slow
def test_several_steps_an_execution_are_the_same_steps(given, plain, tmp_path, monkeypatch):
    folder, one, told = plain
    assert len(told) == 12
    make_evaluation_instant(monkeypatch)
    three, told = counted_run(given, tmp_path / "three", steps_per_execution=3)
    assert len(told) == 4
    assert all(not logs for logs in told)  # no figure is fetched for a step
    last = [metrics["history"][-1] for metrics in (one, three)]
    assert last[0]["step"] == last[1]["step"] == 12
    assert last[0]["learning_rate"] == last[1]["learning_rate"] == 0
    tensors, expected = (
        load_file(run / "model" / "model.safetensors") for run in (tmp_path / "three", folder)
    )
    assert tensors.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(tensors[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_evaluations_and_checkpoints_at_any_steps_are_the_same_steps(given, tmp_path, interrupts):
    """Entries of 3 steps and shorter ones before evaluations and checkpoints; one is resumed."""
    given = {**given, "steps": 60, "deterministic": True}
    plain, output = tmp_path / "plain", tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        make_evaluation_instant(patch)
        pretrain(**{**given, "eval_every": 60, "checkpoint_every": 60}, output=plain)
    odd = {**given, "eval_every": 10, "checkpoint_every": 7}
    original = loop.EndOfRecord.on_train_batch_end

    def interrupt_in_step_30(self, batch, logs=None):
        if self.first_step + batch + 1 == 30:
            signal.raise_signal(signal.SIGTERM)
        original(self, batch, logs)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Terminated):
        patch.setattr(loop.EndOfRecord, "on_train_batch_end", interrupt_in_step_30)
        pretrain(**odd, output=output)
    assert latest_checkpoint(output / "checkpoints").name == "step-000000030.safetensors"
    metrics = pretrain(**odd, output=output)
    steps = [record["step"] for record in metrics["history"]]
    assert steps[:8] == [0, 3, 6, 7, 10, 13, 14, 17] and steps == sorted(set(steps))
    evaluated = [record["step"] for record in metrics["history"] if "eval" in record]
    assert evaluated == [0, 10, 20, 30, 40, 50, 60]
    tensors, expected = (load_file(run / "model" / "model.safetensors") for run in (output, plain))
    for name, value in expected.items():
        np.testing.assert_array_equal(tensors[name], value, err_msg=name)


def test_a_run_that_an_earlier_version_stopped_inside_of_an_record_resumes(
    given, instant, tmp_path, monkeypatch, interrupts
):
    settings = {**given, "steps": 60, "eval_every": 10, "checkpoint_every": 7}
    with monkeypatch.context() as patch:
        stepwise_plan = dataclasses.replace(
            plan_steps(60, evaluate_every=10, checkpoint_every=7), record=1
        )
        patch.setattr(
            "keras_bert.training.pretrain.plan_steps", lambda *a, **options: stepwise_plan
        )
        original = loop.EndOfRecord.on_train_batch_end

        def interrupt_in_step_12(self, batch, logs=None):
            if self.first_step + batch + 1 == 12:
                signal.raise_signal(signal.SIGTERM)
            original(self, batch, logs)

        patch.setattr(loop.EndOfRecord, "on_train_batch_end", interrupt_in_step_12)
        with pytest.raises(Terminated):
            pretrain(**settings, output=tmp_path / "run")
    metrics = pretrain(**settings, output=tmp_path / "run")
    steps = [record["step"] for record in metrics["history"]]
    assert steps[:17] == [*range(13), 13, 14, 17, 20] and steps[-1] == 60


def test_batches_of_tokens_are_counted_for_a_run_that_resumes(
    given, instant, tmp_path, monkeypatch, interrupts
):
    settings = {**given, "steps": 40, "batch_tokens": 64}
    del settings["batch_size"]
    original = loop.EndOfRecord.on_train_batch_end

    def interrupt_in_step_21(self, batch, logs=None):
        if self.first_step + batch + 1 == 21:
            signal.raise_signal(signal.SIGTERM)
        original(self, batch, logs)

    with monkeypatch.context() as patch, pytest.raises(Terminated):
        patch.setattr(loop.EndOfRecord, "on_train_batch_end", interrupt_in_step_21)
        pretrain(**settings, output=tmp_path / "run")
    resolved = json.loads((tmp_path / "run" / "run.json").read_text())["resolved"]
    [[in_an_epoch]] = resolved["window_batches"]
    assert 8 <= in_an_epoch < 20
    begun = []
    position_of = WindowBatches.position_of
    monkeypatch.setattr(
        WindowBatches,
        "position_of",
        lambda self, step: begun.append((step, position_of(self, step))) or begun[-1][1],
    )
    pretrain(**settings, output=tmp_path / "run")
    (step, (epoch, window, skipped)), *_ = begun
    assert step >= 21 and (epoch, window) == (step // in_an_epoch, 0) and skipped < in_an_epoch


def test_steps_that_are_no_whole_executions_are_rejected(given):
    settings = {**given, "output": "o", "steps_per_execution": 4}
    with raises_input_error("`checkpoint_every` must be a multiple of"):
        PretrainSettings.of(settings)
    with raises_input_error("`steps` must be ... 5. Received: 12"):
        PretrainSettings.of(
            {**settings, "steps_per_execution": 5, "checkpoint_every": 5, "eval_every": 5}
        )


def test_a_second_run_in_the_same_folder_is_rejected(given, tmp_path, capsys):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    with lock_folder(tmp_path / "run"):
        assert main(["pretrain", *flags, "--output", str(tmp_path / "run")]) == 2
    assert "is in use by process" in capsys.readouterr().err


@pytest.mark.parametrize("times", [1, 2])
def test_a_first_interrupt_waits_for_the_end_of_the_record_and_a_second_does_not(
    given, instant, tmp_path, monkeypatch, capfd, interrupts, times
):
    original = loop.EndOfRecord.on_train_batch_end

    def interrupt_in_step_3(self, batch, logs=None):
        if self.first_step + batch + 1 == 3:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        original(self, batch, logs)

    monkeypatch.setattr(loop.EndOfRecord, "on_train_batch_end", interrupt_in_step_3)
    flags = {**given, "steps": 40, "eval_every": 20, "checkpoint_every": 20, "output": tmp_path}
    command = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    assert main(["pretrain", *command]) == 130
    said = capfd.readouterr().err
    assert "Traceback" not in said
    if times == 1:
        assert "Stopping after step 4. Press Ctrl-C again to stop at once.\n" in said
        last = f"Interrupted. Checkpoint saved at step 4 in {tmp_path}. Run the same command"
    else:
        last = f"Interrupted. No checkpoint yet in {tmp_path}. Run the same command"
    assert said.endswith(f"keras-bert: {last} again to resume.\n")


def test_a_wish_after_workers_agreed_to_go_on_waits_for_the_next_record(
    given, instant, tmp_path, monkeypatch, interrupts
):
    """In a run of phases it left the others, which went on, alone."""
    agree = Devices.any

    def agree_and_interrupt(self, wish):
        said = agree(self, wish)
        if len(agreed) == 5:  # at the end of the first phase
            signal.raise_signal(signal.SIGTERM)
        agreed.append(said)
        return said

    agreed = []
    monkeypatch.setattr(Devices, "any", agree_and_interrupt)
    two = {"data": [given["data"]] * 2, "steps": [6, 6]}
    with pytest.raises(Terminated):
        pretrain(**{**given, **two}, output=tmp_path / "run")
    assert agreed == [False] * 6 + [True]
    latest = latest_checkpoint(tmp_path / "run" / "checkpoints")
    assert latest.name == "step-000000007.safetensors"


@pytest.mark.parametrize("split, shard", [("train", 1), ("eval", 0)])
def test_a_flipped_byte_stops_the_run_with_file_and_record(
    given, tmp_path, monkeypatch, capfd, split, shard
):
    if split == "train":
        make_evaluation_instant(monkeypatch)
    data = tmp_path / "data"
    shutil.copytree(given["data"], data)
    path = Path(DataFolder.open(data).shards(split)[shard])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    settings = {**given, "data": data, "output": tmp_path / "run"}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    assert main(["pretrain", *flags]) == 2
    *_, said = capfd.readouterr().err.splitlines()
    assert re.fullmatch(
        rf"keras-bert: {re.escape(str(path))}, record \d+ cannot be read: the file is "
        r"damaged or cut there\. Make the data again with keras-bert pretraining-data --force\.",
        said,
    )


def test_going_on_from_a_model_folder(given, plain, instant_fit, tmp_path, monkeypatch):
    folder, first, _ = plain
    further = {name: value for name, value in given.items() if name != "architecture"}
    again = pretrain(**further, model=folder, output=tmp_path / "again")
    assert again["eval_at_start"] == pytest.approx(first["eval"], rel=1e-4)
    # Rows of another objective take the heads that they have a use for.
    make_evaluation_instant(monkeypatch)
    alone = make_data_folder(tmp_path / "mlm", rows=20, eval_examples=11, objective="mlm")
    settings = {**further, "data": str(alone), "steps": 2}
    pretrain(**settings, model=folder / "model", output=tmp_path / "other")
    stored = tmp_path / "other" / "model"
    assert json.loads((stored / "config.json").read_text())["keras_bert"]["task"] == "fill-mask"
    assert "cls.seq_relationship.weight" not in load_file(stored / "model.safetensors")
    with raises_input_error("Give either `model`, ... or `architecture`"):
        pretrain(**given, model=folder, output=tmp_path / "both")


@pytest.mark.filterwarnings("ignore:.*has no tokenizer")
def test_a_model_without_a_tokenizer_is_rejected(given, tmp_path):
    """Its ids are of another vocabulary than those of any rows."""
    save_folder(RobertaEncoder(RobertaConfig(**SIZES)), None, tmp_path / "model")
    further = {name: value for name, value in given.items() if name != "architecture"}
    with raises_input_error("has no tokenizer, so no data can be made for it"):
        pretrain(**further, model=tmp_path / "model", output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_segment_type_and_rows_of_pairs_are_rejected(given, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**SIZES, "type_vocab_size": 1}))
    settings = {**given, "architecture": str(tmp_path / "config.json")}
    with raises_input_error("two segments, but ... has one (type_vocab_size 1). Make"):
        pretrain(**settings, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "dtype", [pytest.param("mixed_bfloat16", marks=pytest.mark.slow), "mixed_float16"]
)
def test_mixed_precision_keeps_float32_weights_and_a_float32_folder(given, dtype, tmp_path):
    metrics = pretrain(**given, output=tmp_path / "run", dtype=dtype)
    assert np.isfinite(metrics["eval"]["loss"])
    assert metrics["eval"]["masked_lm_loss"] < metrics["eval_at_start"]["masked_lm_loss"]
    float32 = evaluate(model=tmp_path / "run", data=given["data"], batch_size=8)
    assert float32["masked_lm_loss"] == pytest.approx(metrics["eval"]["masked_lm_loss"], rel=0.02)
    stored = load_file(tmp_path / "run" / "model" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {np.dtype("float32")}


def test_a_model_of_few_positions_is_fine_tuned_at_its_own_length(instant, tmp_path):
    tokenizer = make_tokenizer(["good", "bad"])
    task = Classifier(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, labels=["a", "b"])
    task.save(tmp_path / "model")
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "good\ta\nbad\tb\n" * 4)
    files = {name: str(tmp_path / "train.tsv") for name in ("train", "dev")}
    finetune(**files, model=str(tmp_path / "model"), output=tmp_path / "run", epochs=1)
    stored = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert stored["keras_bert"]["max_length"] == stored["max_position_embeddings"] == 40


def test_no_dataset_of_ours_waits_for_the_autotuner(given):
    """Its thread wakes at doubling intervals, and the end of an iterator waits for it."""
    tokenizer = make_tokenizer(["good", "bad"])
    task = Classifier(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, labels=["a", "b"])
    examples = [("good", "a"), ("bad", "b")] * 8
    rows = task.features(list(task.read(examples)), labelled=True)
    folder = DataFolder.open(given["data"])
    options = {"vocabulary": VOCABULARY, "batch_size": 4}
    for dataset in (
        task.dataset(examples, batch_size=4),
        rows.evaluation_batches(batch_size=4),
        training_dataset(folder, **options, seed=shifted(0)),
        evaluation_dataset(folder, **options),
    ):
        assert dataset.options().autotune.enabled is False
        assert dataset.options().deterministic is True
