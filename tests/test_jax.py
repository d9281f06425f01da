"""The model code on Keras's JAX backend: the same tests, in a process of their own."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
# What holds no TensorFlow but in tests that are marked; and of it not the counts, which are no
# backend's business.
TESTS = ["tests/layers", "tests/heads", "tests/test_encoder.py"]
NOT_THESE = "not parameter_counts"


@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="NOT TESTED on the JAX backend: jax is not installed",
)
def test_layers_heads_and_encoder_pass_on_jax():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    run = subprocess.run(
        [*command, "-k", NOT_THESE, "-m", "not only_tensorflow"],
        cwd=REPOSITORY,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "passed" in run.stdout and "skipped" not in run.stdout, run.stdout[-2000:]


def test_the_model_code_needs_no_tensorflow():
    """Under JAX nothing of ours brings TensorFlow in."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("NOT TESTED on the JAX backend: jax is not installed")
    code = (
        "import sys, keras_bert.encoder, keras_bert.heads.masked_lm, keras_bert.tasks.pretrainer,"
        "keras_bert.tasks.tagger, keras_bert.tasks.question_answerer;"
        "import keras; assert keras.backend.backend() == 'jax';"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'tensorflow', 'keras_nlp'}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"
