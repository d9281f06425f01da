"""What the program of a training step holds on a GPU, lowered on a machine without one."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.layers.kernels.program import for_gpu
from tests.step_program import (
    VOCABULARY,
    batches,
    check_float16,
    float32_products,
    lowered_step,
    make_task,
    scatters,
)

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_jitted_step_of_tensorflow_has_nothing_slow(is_causal):
    text = lowered_step(make_task(dropout=0.1, is_causal=is_causal))
    assert scatters(text) == ()
    assert float32_products(text, VOCABULARY) == []


def test_a_float16_step_scales_its_loss():
    check_float16(jit_compile=False)


@pytest.mark.slow
def test_a_jitted_step_has_the_losses_of_the_plain_form_whatever_it_knows_of_shapes():
    """Without the sizes, as of batches of several shapes, the loss is not computed by blocks."""

    def loss(shape):
        task = make_task("float32", dropout=0.1, layers=1)
        batch = batches(task)
        signature = tf.nest.map_structure(lambda a: tf.TensorSpec(shape or a.shape, a.dtype), batch)
        dataset = tf.data.Dataset.from_generator(lambda: [batch] * 3, output_signature=signature)
        return task.fit(dataset, verbose=0).history["loss"]

    plain = loss(shape=None)
    with for_gpu():
        np.testing.assert_allclose(loss(shape=None), plain, atol=1e-5)
        np.testing.assert_allclose(loss(shape=(None, None)), plain, atol=1e-5)


@pytest.mark.parametrize("chosen", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="NOT TESTED on the JAX backend: jax is not installed",
)
def test_a_step_on_jax_has_nothing_slow_and_the_same_losses(chosen):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen]
    run = subprocess.run(
        [*command, "-p", "tests.no_tensorflow", "tests/lowering_on_jax.py"],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_backend_optimization_level=0",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "passed" in run.stdout and "skipped" not in run.stdout, run.stdout[-2000:]
