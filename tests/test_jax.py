"""The model code on Keras's JAX backend, in processes in which TensorFlow cannot be imported."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
# What holds no TensorFlow but in tests that are marked.
TESTS = ["tests/layers", "tests/heads", "tests/encoders/test_encoder.py", "tests/tasks_on_jax.py"]
OPTIMIZER = "tests/optimizers/test_optimizer.py"
OPTIMIZER_TESTS = [
    f"{OPTIMIZER}::test_lamb_is_the_algorithm_of_the_paper",
    f"{OPTIMIZER}::test_lamb_adapts_query_key_and_value_each_by_itself",
    f"{OPTIMIZER}::test_a_step_of_several_batches_is_that_of_their_mean_gradient[lamb]",
]
# Counts are no backend's business.
CHOSEN = ["-k", "not parameter_counts", "-m", "not only_tensorflow and not peers"]

# The newer emitters of fusions take two to three times as long to compile such small programs.
OLDER_EMITTERS = "--xla_cpu_use_fusion_emitters=false"

SEVERAL_DEVICES = "tests/several_devices_on_jax.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None,
        reason="NOT TESTED on the JAX backend: jax is not installed",
    ),
]


def test_the_model_code_runs_and_trains_on_jax_without_tensorflow(request):
    run_on_jax(request, *CHOSEN, *TESTS, *OPTIMIZER_TESTS, flags=OLDER_EMITTERS)


def test_several_devices_train_as_one_does_on_jax_without_tensorflow(request):
    run_on_jax(request, SEVERAL_DEVICES, flags="--xla_force_host_platform_device_count=4")


def run_on_jax(request, *tests, flags=""):
    """Runs tests in a process of their own; `flags` are XLA's."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, "-p", "tests.no_tensorflow", *tests],
        cwd=REPOSITORY,
        # Most of the time goes into compiling, each operation for each shape.
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "XLA_FLAGS": f"--xla_backend_optimization_level=0 {flags}",
            # What did not change since the last run of the tests is not compiled again.
            "JAX_COMPILATION_CACHE_DIR": str(request.config.cache.mkdir("jax")),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.02",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "passed" in run.stdout and "skipped" not in run.stdout, run.stdout[-2000:]
