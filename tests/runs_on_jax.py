"""Runs of the commands on Keras's JAX backend, on one device and on several.

`test_jax.py` runs this file in a process that has eight CPU devices; by itself:

    KERAS_BACKEND=jax XLA_FLAGS=--xla_force_host_platform_device_count=8 \
        python -m pytest tests/runs_on_jax.py
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from jax._src.cudnn import fused_attention_stablehlo as cudnn
from safetensors.numpy import load_file

from keras_bert.base.signals import Terminated
from keras_bert.checkpoints import load, save_folder
from keras_bert.exports.saved_model import export
from keras_bert.inference.predict import predict
from keras_bert.layers.kernels.program import for_gpu, for_tpu
from keras_bert.programs import wait_for
from keras_bert.programs.jax_steps import Steps
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.training.finetune import finetune
from keras_bert.training.loop import EndOfRecord
from keras_bert.training.pretrain import pretrain
from tests import step_program
from tests.backends_agree import NO_DROPOUT
from tests.encoders.every_kind import write_examples
from tests.messages import raises_input_error
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.training.on_several_devices import CONFIG, assert_same_histories, held_ports

REPOSITORY = Path(__file__).resolve().parent.parent

WORDS = [f"w{k}" for k in range(9)]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """The arguments of runs with dropout, on 21 examples: batches of 8, 7 and 6."""
    return arguments(tmp_path_factory.mktemp("given"))


@pytest.fixture(scope="module")
def without_dropout(tmp_path_factory):
    return arguments(tmp_path_factory.mktemp("without"), **NO_DROPOUT)


def arguments(folder, **config):
    tokenizer, rng = make_tokenizer(WORDS), make_rng(0)
    save_folder(make_encoder(tokenizer, **config), tokenizer, folder / "start")
    texts = [" ".join(rng.choice(WORDS, rng.integers(4, 12))) for _ in range(21)]
    return {
        "model": folder / "start",
        "train": write_examples(folder / "train.tsv", "classifier", texts),
        "dev": write_examples(folder / "dev.tsv", "classifier", texts[:9]),
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 1e-3,
        "deterministic": True,
    }


def stop_in(step, patch):
    """Has a run be stopped in a step."""
    original = EndOfRecord.on_train_batch_end

    def end(self, batch, logs=None):
        if self.first_step + batch + 1 == step:
            signal.raise_signal(signal.SIGTERM)
        original(self, batch, logs)

    patch.setattr(EndOfRecord, "on_train_batch_end", end)


def weights(output):
    return load_file(output / "model" / "model.safetensors")


def assert_same(output, other):
    tensors, other_tensors = weights(output), weights(other)
    assert tensors.keys() == other_tensors.keys()
    for name, value in other_tensors.items():
        np.testing.assert_array_equal(tensors[name], value, err_msg=name)


def test_a_stopped_run_of_fine_tuning_resumes_bit_for_bit_and_names_its_backend(given, tmp_path):
    finetune(**given, output=tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Terminated):
        stop_in(4, patch)
        finetune(**given, output=tmp_path / "stopped")
    run = tmp_path / "stopped" / "run.json"
    begun = json.loads(run.read_text())
    assert begun["backend"] == "jax" and "jax" in begun["versions"]
    run.write_text(json.dumps({**begun, "backend": "tensorflow"}))
    with raises_input_error("begun on the Keras backend tensorflow, ... Set KERAS_BACKEND=tens"):
        finetune(**given, output=tmp_path / "stopped")
    run.write_text(json.dumps(begun))
    finetune(**given, output=tmp_path / "stopped")
    assert_same(tmp_path / "stopped", tmp_path / "whole")


def test_a_run_on_several_devices_has_the_losses_of_one_and_resumes_on_another_number(
    without_dropout, tmp_path, monkeypatch
):
    one = finetune(**without_dropout, output=tmp_path / "one")
    shapes, reports = [], []
    assert len(keras.distribution.list_devices()) == 8
    original = keras.distribution.DataParallel.get_data_layout
    monkeypatch.setattr(
        keras.distribution.DataParallel,
        "get_data_layout",
        lambda self, shape: shapes.append(shape[0]) or original(self, shape),
    )
    parallel = {**without_dropout, "strategy": "mirrored"}
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Terminated):
        stop_in(4, patch)
        finetune(**parallel, output=tmp_path / "several", report=reports.append)
    assert "Training on 8 devices." in reports and set(shapes) == {8}
    # A process cannot lose devices: this stands for another one, on a machine with two.
    devices = keras.distribution.list_devices()[:2]
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: devices)
    several = finetune(**parallel, output=tmp_path / "several", report=reports.append)
    assert "Training on 2 devices." in reports
    for found, expected in zip(several["history"], one["history"], strict=True):
        assert found["train"]["loss"] == pytest.approx(expected["train"]["loss"], abs=1e-5)
        evaluated = pytest.approx(expected.get("eval", {}), abs=1e-5)
        assert found.get("eval", {}) == evaluated
    expected = weights(tmp_path / "one")
    for name, value in weights(tmp_path / "several").items():
        np.testing.assert_allclose(value, expected[name], atol=2e-5, err_msg=name)


def test_negatives_of_the_whole_batch_count_on_several_devices(without_dropout, tmp_path):
    """Batches of 8, 7 and 6 pairs on eight devices, of which rows that fill up are no negatives."""
    rng = make_rng(3)
    texts = [" ".join(rng.choice(WORDS, rng.integers(4, 12))) for _ in range(21)]
    pairs = write_examples(tmp_path / "pairs.tsv", "text-embedding", texts)
    given = {**without_dropout, "task": "text-embedding", "train": pairs, "dev": pairs}
    given["loss"] = "in-batch-negatives"
    one, several = (
        finetune(**given, output=tmp_path / strategy, strategy=strategy)
        for strategy in ("none", "mirrored")
    )
    assert_same_histories(several, one, to=1e-4)
    losses = [record["train"]["loss"] for record in one["history"]]
    assert losses[-1] < losses[0]


class Lowered(Exception):
    """The programs of the first step of a run, by platform, in place of the run."""


@pytest.mark.parametrize("strategy, devices", [("none", 1), ("mirrored", 8)])
def test_the_step_of_the_command_for_a_gpu_and_a_tpu_has_nothing_slow(
    tmp_path, monkeypatch, strategy, devices
):
    def lower(self, state, iterator):
        arguments = state, [v.value for v in self._constants], next(iterator)
        texts = []
        for pretended, platform in ((for_gpu, "cuda"), (for_tpu, "tpu")):
            step = Steps(self._model, Steps.train)._jit(state)  # traced anew
            with pretended():
                texts.append(step_program.lowered_by_jax(step, *arguments, platform=platform))
        raise Lowered(*texts)

    monkeypatch.setattr(Steps, "__call__", lower)
    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 91300)
    monkeypatch.setattr(cudnn, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(cudnn, "is_cuda_compute_capability_equal", lambda capability: False)
    rows = make_data_folder(tmp_path / "rows", rows=44, eval_examples=0, masking="dynamic")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    given = {"data": rows, "architecture": tmp_path / "config.json", "steps": 2}
    with pytest.raises(Lowered) as lowered:
        pretrain(**given, output=tmp_path / "run", strategy=strategy, dtype="mixed_bfloat16")
    for text in lowered.value.args:
        assert f"num_partitions = {devices} " in text
        assert step_program.scatters(text) == ()
        assert step_program.float32_products(text, len(VOCABULARY)) == []
    on_gpu, _ = lowered.value.args
    fused = "__cudnn$fmhaSoftmax" if devices == 1 else "CustomSPMDPartitioning"
    assert on_gpu.count(f"@{fused}") == 2  # forward and backward


WORKER = """
import json, sys
from tests.training.on_several_devices import work
sys.exit(work(*json.loads(sys.argv[1]), **json.loads(sys.argv[2])))
"""


def two_workers(output, command, given, *, dies_after=(None, None), dtype=None):
    """-> the exit statuses of two processes, of which one may be killed, and what they said.

    Their devices are faster in `dtype`, if it is not None.
    """
    given = {name: str(value) for name, value in given.items()}
    # A device each, of which a process has eight here.
    environment = {**os.environ, "XLA_FLAGS": os.environ["XLA_FLAGS"].replace("count=8", "count=1")}
    with held_ports(2) as addresses:
        processes = []
        for number in range(2):
            arguments = addresses, number, command, {**given, "output": f"{output}{number}"}
            options = {"dies_after": dies_after[number], "dtype": dtype}
            program = [sys.executable, "-c", WORKER, json.dumps(arguments), json.dumps(options)]
            pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
            processes.append(subprocess.Popen(program, env=environment, cwd=REPOSITORY, **pipes))
        said = [process.communicate()[1] for process in processes]
    return [process.returncode for process in processes], said


def test_two_processes_pre_train_as_one_does_and_resume_if_one_is_killed(tmp_path):
    make_data_folder(tmp_path / "rows", rows=44, eval_examples=11, masking="dynamic")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    given = {"data": tmp_path / "rows", "architecture": tmp_path / "config.json", "steps": 6}
    given |= {"batch_size": 7, "checkpoint_every": 2, "learning_rate": 3e-3}
    alone = pretrain(**given, output=tmp_path / "alone")
    output = tmp_path / "of"
    statuses, said = two_workers(output, "pretrain", given, dies_after=(None, 3))
    assert statuses == [2, -signal.SIGKILL], said
    assert said[0].endswith(
        "keras-bert: Another worker has ended. Interrupted. Checkpoint saved "
        f"at step 2 in {output}0. Run the same command again to resume.\n"
    )
    statuses, said = two_workers(output, "pretrain", given, dtype="mixed_bfloat16")
    assert statuses == [0, 0], said  # a run keeps its own
    assert "Resumed at step 2." in said[1] and not Path(f"{output}1").exists()
    found = json.loads(Path(f"{output}0", "metrics.json").read_text())
    assert_same_histories(found, alone, to=1e-5)


def test_two_processes_fine_tune_as_one_does(without_dropout, tmp_path):
    given = {name: value for name, value in without_dropout.items() if name != "deterministic"}
    alone = finetune(**given, output=tmp_path / "alone")
    statuses, said = two_workers(tmp_path / "of", "finetune", given)
    assert statuses == [0, 0], said
    found = json.loads((tmp_path / "of0" / "metrics.json").read_text())
    assert_same_histories(found, alone, to=1e-5)
    assert found["dev"]["accuracy"] == alone["dev"]["accuracy"]
    expected = weights(tmp_path / "alone")
    for name, value in weights(tmp_path / "of0").items():
        np.testing.assert_allclose(value, expected[name], atol=2e-5, err_msg=name)


def test_a_log_step_waits_for_the_device():
    """Without it the tokens per second are those of asking for steps."""
    waited = []

    class Value:
        def block_until_ready(self):
            waited.append(self)
            return self

    model = keras.Sequential()
    wait_for(model)
    values = [Value() for _ in range(3)]
    model._jax_state = {"trainable_variables": values[:2], "optimizer_variables": values[2:]}
    wait_for(model)
    assert waited == values


@pytest.mark.parametrize(
    "strategy, said",
    [("multiworker", "TF_CONFIG has no workers"), ("tpu", "a TPU. ... found: cpu")],
)
def test_devices_that_are_not_there_are_told_in_a_sentence(given, tmp_path, strategy, said):
    with raises_input_error(said):
        finetune(**given, output=tmp_path / "run", strategy=strategy)


def test_steps_that_are_not_compiled_are_refused(given):
    task = Classifier(*load(given["model"]), labels=["a", "b"])
    with raises_input_error("`jit_compile` is False. JAX would then compile each operation"):
        task.compile(jit_compile=False)


def test_a_step_in_parts_is_that_of_the_whole_batch(tmp_path):
    make_data_folder(tmp_path / "rows", rows=24, eval_examples=8, objective="mlm")
    config = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config |= {"model_type": "bert", "intermediate_size": 8, "vocab_size": len(VOCABULARY)}
    config |= {"max_position_embeddings": 16, **NO_DROPOUT}
    (tmp_path / "config.json").write_text(json.dumps(config))
    given = {"data": tmp_path / "rows", "architecture": tmp_path / "config.json", "steps": 4}
    given |= {"batch_size": 8, "checkpoint_every": 2, "learning_rate": 0.01}
    whole = pretrain(**given, output=tmp_path / "whole")
    parts = pretrain(**given, output=tmp_path / "parts", gradient_accumulation=2)
    for found, expected in zip(parts["history"][1:], whole["history"][1:], strict=True):
        for name in ("gradient_norm", "learning_rate"):
            assert found[name] == pytest.approx(expected[name], rel=1e-4)
        evaluated = pytest.approx(expected.get("eval", {}), abs=1e-4)
        assert found.get("eval", {}) == evaluated


def test_a_model_of_jax_is_exported_by_a_process_with_tensorflow(given, tmp_path):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    run, texts = tmp_path / "run", ["w1 w2 w3", "w4"]
    finetune(**given, output=run)
    version = export(model=run, output=tmp_path / "saved")
    answers = tf.saved_model.load(str(version)).signatures["serving_default"](tf.constant(texts))
    expected = [answer["score"] for answer in predict(model=run, data=[{"text": t} for t in texts])]
    np.testing.assert_allclose(answers["score"].numpy(), expected, atol=1e-5)
    with raises_input_error("`max_length`"):
        export(model=run, output=tmp_path / "other", max_length=1000)
