"""Runs of each command that trains, killed at ten moments: resumed, they end as if never killed.

`tests/test_jax.py` runs them on JAX, too.
"""

import json
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert.base.files import is_temporary
from keras_bert.checkpoints import save_folder
from keras_bert.tasks.classification.classifier import Classifier
from tests.conftest import REPOSITORY
from tests.encoders.every_kind import write_examples
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.training.killed_run import COMMANDS

pytestmark = pytest.mark.slow

WORDS = [f"w{number}" for number in range(9)]
TIMED = ("seconds", "tokens_per_second", "input_wait", "mfu")  # of a record, by a clock


@pytest.fixture(scope="module")
def pretraining(tmp_path_factory):
    """13 steps of two phases, of other rows in batches of another size, with dropout."""
    root = tmp_path_factory.mktemp("pretraining")
    first = make_data_folder(root / "rows", rows=44, eval_examples=11)
    sizes = {"rows": 20, "eval_examples": 7, "max_length": 24}
    second = make_data_folder(root / "longer", **sizes, seed=1, unigram_entropy=math.log(30))
    settings = {"data": [first, second], "steps": [6, 7], "batch_size": [8, 4], "eval_every": 10}
    return {**settings, "architecture": config(root), "keep_last_checkpoint": True}


@pytest.fixture(scope="module")
def replaced_tokens(tmp_path_factory):
    """12 steps of two models, of which the generator is a folder within the other's."""
    root = tmp_path_factory.mktemp("replaced-tokens")
    sizes = {"rows": 44, "eval_examples": 30}
    rows = make_data_folder(root / "rows", objective="mlm", masking="dynamic", **sizes)
    settings = {"data": rows, "steps": 12, "batch_size": 8, "eval_every": 6}
    settings |= {"objective": "rtd", "generator_size": 0.5}
    return {**settings, "architecture": config(root, model_type="electra", embedding_size=8)}


def config(folder, **changes):
    """The path of a very small model's config.json."""
    sizes = {"vocab_size": len(VOCABULARY), "hidden_size": 16, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 24}
    path = folder / "config.json"
    path.write_text(json.dumps({**sizes, **changes}))
    return path


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """The settings of 2 epochs of 6 steps, the folder of a classifier and that of its encoder."""
    root, tokenizer, rng = tmp_path_factory.mktemp("labelled"), make_tokenizer(WORDS), make_rng(0)
    encoder = make_encoder(tokenizer)
    save_folder(encoder, tokenizer, root / "start")
    Classifier(encoder, tokenizer, labels=["a", "b"]).save(root / "teacher")
    texts = [" ".join(rng.choice(WORDS, rng.integers(4, 12))) for _ in range(46)]
    files = {
        "train": write_examples(root / "train.tsv", "classifier", texts),
        "dev": write_examples(root / "dev.tsv", "classifier", texts[:9]),
    }
    settings = {**files, "epochs": 2, "batch_size": 8, "learning_rate": 1e-2}
    return settings, root / "start", root / "teacher"


@pytest.fixture(scope="module")
def fine_tuning(labelled):
    settings, start, _ = labelled
    return {**settings, "model": start}


@pytest.fixture(scope="module")
def lora(fine_tuning):
    return {**fine_tuning, "lora_rank": 2}


@pytest.fixture(scope="module")
def distillation(labelled):
    settings, start, teacher = labelled
    data = {name: value for name, value in settings.items() if name != "train"}
    return {**data, "data": settings["train"], "teacher": teacher, "student": start}


# The fixture with the settings -> the command, the steps of its checkpoints.
RUNS = {
    "pretraining": ("pretrain", [5, 6, 11, 13]),
    "replaced_tokens": ("pretrain", [5, 10, 12]),
    "fine_tuning": ("finetune", [5, 6, 10, 12]),
    "lora": ("finetune", [5, 6, 10, 12]),
    "distillation": ("distill", [5, 6, 10, 12]),
}


def moments_of_kills(rng, checkpoints):
    """Ten moments of a run, in their order.

    Three are in the writing of a checkpoint, at any byte of it. The others are some ends of steps,
    written metrics and calls on files after the end of a step (0 is the begin of the run).
    """
    written = rng.choice(checkpoints, 3, replace=False)
    steps = rng.integers(0, checkpoints[-1] + 1, 7)
    moments = [(int(step), "writing", float(rng.random())) for step in written]
    moments += [(int(step), "events", int(rng.integers(6))) for step in steps]
    return sorted(moments, key=lambda moment: (moment[0], moment[1] != "writing"))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_is_killed_at_ten_moments_ends_bit_for_bit_like_an_uninterrupted_one(
    name, request, tmp_path
):
    command, checkpoints = RUNS[name]
    settings = {"checkpoint_every": 5, "seed": shifted(4), "deterministic": True}
    settings |= request.getfixturevalue(name)
    output, temporary = tmp_path / "killed" / "run", tmp_path / "temporary"
    temporary.mkdir()
    arguments = {**settings, "output": output}
    moments = moments_of_kills(make_rng(8), checkpoints)
    killed = subprocess.run(
        [sys.executable, "-m", "tests.training.killed_run", command]
        + [json.dumps(given, default=str) for given in (arguments, moments)],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
    )
    assert killed.returncode == 0, killed.stderr[-3000:]
    lives = json.loads(killed.stdout)
    assert [life["status"] for life in lives] == [-signal.SIGKILL] * 10, killed.stderr[-3000:]
    for (_, kind, _), life in zip(moments, lives, strict=True):
        half_written = [*filter(is_temporary, life["left"])]
        assert kind == "events" or half_written, lives
    assert not list(temporary.iterdir())
    reports = []
    resumed = COMMANDS[command](**arguments, report=reports.append)
    assert any(line.startswith("Resumed at step") for line in reports)
    expected = tmp_path / "whole" / "run"  # the model card names the last folder
    whole = COMMANDS[command](**{**arguments, "output": expected})
    assert without_clock(resumed) == without_clock(whole)
    assert_same_files(output, expected)


def without_clock(metrics):
    """Results without what a clock says."""
    history = [{k: v for k, v in row.items() if k not in TIMED} for row in metrics["history"]]
    timed = ("seconds", "tokens_per_second", "history", "health")
    findings = metrics.get("health", {}).get("findings", [])
    findings = [finding for finding in findings if not finding.startswith("input wait")]
    rest = {k: v for k, v in metrics.items() if k not in timed}
    return {**rest, "history": history, "findings": findings}


def assert_same_files(output, expected):
    """Two runs have left the same files, of the same bytes but for what a clock says."""
    assert not any(is_temporary(path.name) for path in output.rglob("*"))
    names = {path.relative_to(expected) for path in expected.rglob("*") if path.is_file()}
    logs = {name for name in names if name.parts[0] == "logs"}  # whose names have the time
    found = {path.relative_to(output) for path in output.rglob("*") if path.is_file()}
    assert {name for name in found if name.parts[0] != "logs"} == names - logs
    assert logs and any("model.safetensors" in name.parts for name in names)
    for name in names:
        if name.parts[0] == "checkpoints":
            tensors, wanted = load_file(output / name), load_file(expected / name)
            assert tensors.keys() == wanted.keys()
            for tensor in wanted.keys() - {"state"}:  # the history
                np.testing.assert_array_equal(tensors[tensor], wanted[tensor], err_msg=tensor)
        elif name.parts[0] == "model":
            assert (output / name).read_bytes() == (expected / name).read_bytes(), name
