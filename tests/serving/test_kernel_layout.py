"""oneDNN keeps what it has laid out in a process that serves bfloat16 alone."""

import os

import pytest
import tensorflow as tf

from keras_bert.cli.main import main
from keras_bert.serving.model_version import lay_kernels_out_once

FROZEN = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setenv(FROZEN, "")  # so that it is taken back at the end
    monkeypatch.delenv(FROZEN)

    def write(name, version, dtype):
        module = tf.Module()
        module.kernel = tf.Variable(tf.ones((2, 2), dtype))
        module.count = tf.Variable(0)
        tf.saved_model.save(module, str(tmp_path / name / str(version)))

    return write


def test_with_bfloat16_only(write, tmp_path):
    write("a", 9, tf.float32)
    write("a", 10, tf.bfloat16)  # the one that answers
    write("b", 1, tf.bfloat16)
    lay_kernels_out_once([tmp_path])
    assert os.environ[FROZEN] == "true"


@pytest.mark.parametrize("other", [tf.float32, tf.float16])
def test_not_with_other_types(write, tmp_path, other):
    write("a", 1, tf.bfloat16)
    write("b", 1, other)
    lay_kernels_out_once([tmp_path])
    assert FROZEN not in os.environ


def test_the_environment_of_the_user_has_priority(write, tmp_path, monkeypatch):
    monkeypatch.setenv(FROZEN, "false")
    write("a", 1, tf.bfloat16)
    lay_kernels_out_once([tmp_path / "a"])
    assert os.environ[FROZEN] == "false"


def test_the_command_does_so_before_it_serves(write, tmp_path, monkeypatch):
    write("a", 1, tf.bfloat16)
    seen = []
    monkeypatch.setattr(
        "keras_bert.serving.serve.serve", lambda **settings: seen.append(os.environ.get(FROZEN))
    )
    assert main(["serve", "--models", str(tmp_path)]) == 0
    assert seen == ["true"]


def test_invalid_models_are_ignored(write, tmp_path):
    lay_kernels_out_once([tmp_path])
    (tmp_path / "a" / "1").mkdir(parents=True)
    lay_kernels_out_once([tmp_path])
    assert FROZEN not in os.environ
