"""Strategies: what is refused, what a TPU needs of a step, and a process with several devices."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.programs import Devices, scope_of
from keras_bert.programs.workers import workers_named
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.features import training_dataset
from keras_bert.tasks.pretraining.pretrainer import FillMask
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.training.settings import PretrainSettings
from keras_bert.training.workers import _common, _followed, _led
from tests.messages import raises_input_error
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import shifted

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_several_devices_and_several_processes_train_as_one_device_does():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, "-p", "tests.four_devices", "tests/training/on_several_devices.py"],
        cwd=REPOSITORY,
        env={name: value for name, value in os.environ.items() if name != "TF_CONFIG"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "passed" in run.stdout and "skipped" not in run.stdout, run.stdout[-2000:]


JOINED = '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}}'


@pytest.mark.parametrize(
    "strategy, environment, said",
    [
        ("multiworker", {}, "TF_CONFIG has no workers. For `strategy` multiworker, give each"),
        ("auto", {"TF_CONFIG": "{cluster"}, "TF_CONFIG does not describe a cluster. docs/"),
        ("auto", {"TF_CONFIG": '{"cluster": 3}'}, 'has an example. Received: {"cluster": 3}'),
        (
            "auto",  # this process has begun without it
            {"TF_CONFIG": JOINED},
            "multiworker must be the first use of TensorFlow in a process",
        ),
        ("tpu", {}, "Could not connect to the TPU 'local': "),
    ],
)
def test_devices_that_are_not_there_are_told_in_a_sentence(
    monkeypatch, strategy, environment, said
):
    keras.ops.ones(())
    for name in ("TF_CONFIG", "TPU_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with raises_input_error(said), scope_of(strategy):
        pass


@pytest.mark.parametrize(
    "task, index", [('"chief", "index": 0', 0), ('"worker", "index": 1', 2), (None, None)]
)
def test_the_chief_is_the_first_of_the_workers(monkeypatch, task, index):
    cluster = '"cluster": {"worker": ["b:2", "c:3"], "chief": ["a:1"]}'
    task = "" if task is None else f', "task": {{"type": {task}}}'
    monkeypatch.setenv("TF_CONFIG", f"{{{cluster}{task}}}")
    assert workers_named() == (["a:1", "b:2", "c:3"], index)
    monkeypatch.delenv("TF_CONFIG")
    assert workers_named() == ([], None)


def test_one_device_needs_no_strategy(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    for strategy in ("auto", "none", "mirrored"):
        with scope_of(strategy, report=pytest.fail):
            assert not tf.distribute.has_strategy()


def test_batches_without_a_row_for_each_device_are_rejected(monkeypatch):
    devices = Devices()
    monkeypatch.setattr(devices, "replicas", 4)
    devices.check_batch_size(4)
    with raises_input_error("smallest batch has 3 examples, too few for 4 devices"):
        devices.check_batch_size(3)
    with raises_input_error("Use a larger `batch_tokens`"):
        devices.check_batch_size(3, setting="batch_tokens")
    devices.check_batch_size(6)
    monkeypatch.setattr(devices, "_strategy", object.__new__(tf.distribute.TPUStrategy))
    devices.check_batch_size(8)
    with raises_input_error("have 6 examples, ... a `batch_size` that is a multiple"):
        devices.check_batch_size(6)


class Told:
    """The messages to a worker that is not the chief."""

    is_chief = False

    def __init__(self, *said):
        self.said = list(said)

    def broadcast(self):
        return self.said.pop(0)

    def tally(self, flags):
        self.differing = sum(flags)
        return [int(flag) for flag in flags]

    def barrier(self):
        """The chief has ended."""


class Chief:
    """The messages of the other workers to the chief."""

    is_chief = True

    def __init__(self, differing):
        self.differing = differing

    def broadcast(self, value):
        self.names = list(value["common"])

    def tally(self, flags):
        return [int(name == self.differing) for name in self.names]

    def barrier(self):
        """All have heard it."""


def test_workers_that_were_given_something_else_are_told():
    settings = PretrainSettings(data="/there/rows", vocab="v", output="here", steps=3, seed=1)
    inputs = {"data": "9c"}
    given = {**settings.recorded(), "data (content)": "9c"}
    elsewhere = {name: given[name] for name in given if name not in ("data", "vocab", "model")}

    def follow(**said):
        workers = Told(said, {"steps": 3})
        with _followed(workers, _common(settings, inputs)) as run:
            return run.finished, run.finish()

    assert follow(common=elsewhere, metrics=None) == (False, {"steps": 3})
    with raises_input_error("need the same seed. Received: 1 here, and 2 on"):
        follow(common={**elsewhere, "seed": 2}, metrics=None)
    with raises_input_error("same data (content). Received: '9c' here, and '7f'"):
        follow(common={**elsewhere, "data (content)": "7f"}, metrics=None)
    with raises_input_error("it holds mine.txt"):
        follow(rejected="it holds mine.txt")


def test_the_chief_says_what_differs_on_another_worker():
    run = SimpleNamespace(finished=True, read_metrics=lambda: {})
    common = {"seed": 2, "steps": 3}
    with raises_input_error(
        "need the same steps. Received: 3 here, on the chief, and something else on another"
    ):
        with _led(Chief("steps"), contextlib.nullcontext(run), common):
            pass
    with _led(Chief(None), contextlib.nullcontext(run), common) as led:
        assert led is run


def test_a_tpu_could_run_the_step_of_pre_training(tmp_path):
    """XLA compiles it, every shape is known, and no string is in it."""
    path = make_data_folder(tmp_path / "rows", rows=16, eval_examples=0, objective="mlm")
    folder = DataFolder.open(path)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
    )
    task = FillMask(BertEncoder(config), Tokenizer.from_vocab(VOCABULARY, lowercase=True))
    dataset = training_dataset(
        folder, vocabulary=VOCABULARY, batch_size=4, seed=shifted(0), task=task
    )
    for part in tf.nest.flatten(dataset.element_spec):
        assert part.shape.is_fully_defined()
    optimizer = make_optimizer(task, learning_rate=1e-3, warmup=0.0, weight_decay=0.1, steps=9)
    task.compile_defaults(optimizer, jit_compile=True)
    step = tf.function(task.train_step, [dataset.element_spec], jit_compile=True, autograph=False)
    graph = step.get_concrete_function().graph.as_graph_def()
    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    assert len(nodes) > 500
    for node in nodes:
        types = {value.type for value in node.attr.values()}
        assert tf.string.as_datatype_enum not in types, node.name
        assert node.op not in ("Where", "Unique", "PyFunc", "EagerPyFunc"), node.name
    before = np.array(task.encoder.weights[0])
    metrics = step(next(iter(dataset)))
    assert np.isfinite(float(metrics["loss"]))
    assert not np.array_equal(before, task.encoder.weights[0])
