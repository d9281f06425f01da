"""The model code on Keras's JAX backend, in processes in which TensorFlow cannot be imported."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
# What holds no TensorFlow but in tests that are marked.
TESTS = ["tests/layers", "tests/heads", "tests/encoders/test_encoder.py", "tests/tasks_on_jax.py"]
WITHOUT_TENSORFLOW = ["-p", "tests.no_tensorflow"]
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

# Tests of whole runs, which hold on JAX as on TensorFlow: what is killed, stopped and resumed ends
# bit for bit like an uninterrupted run.
RUNS = [
    "tests/training/test_loop.py::test_several_steps_an_execution_are_the_same_steps",
    "tests/training/test_loop.py::test_evaluations_and_checkpoints_at_any_steps_are_the_same_steps",
    "tests/training/test_loop.py::test_batches_of_tokens_are_counted_for_a_run_that_resumes",
    "tests/training/test_killed_runs.py",
    "tests/runs_on_jax.py",
    "tests/training/test_training_sizes.py::test_the_savedmodel_gives_the_mean_of_the_probabilities",
]
# Tests of commands that use a model, and of those that run others.
COMMANDS = [
    "tests/inference/test_zero_shot.py",
    "tests/inference/test_senses.py",
    "tests/inference/test_nearest.py",
    "tests/training/test_glue.py::test_all_nine_tasks_to_the_zip",
    "tests/test_quickstart.py::test_everything_is_left_in_the_output_folder",
    "tests/test_quickstart.py::test_the_results_are_those_of_the_single_steps",
    "tests/test_quickstart.py::test_the_saved_model_answers_without_keras_bert",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None,
        reason="NOT TESTED on the JAX backend: jax is not installed",
    ),
]


def test_the_model_code_runs_and_trains_on_jax_without_tensorflow(request):
    tests = [*CHOSEN, *TESTS, *OPTIMIZER_TESTS]
    run_on_jax(request, *WITHOUT_TENSORFLOW, *tests, flags=OLDER_EMITTERS)


def test_several_devices_train_as_one_does_on_jax_without_tensorflow(request):
    flags = "--xla_force_host_platform_device_count=4"
    run_on_jax(request, *WITHOUT_TENSORFLOW, SEVERAL_DEVICES, flags=flags)


def test_runs_are_stopped_and_resume_on_jax_as_on_tensorflow(request):
    flags = f"{OLDER_EMITTERS} --xla_force_host_platform_device_count=8"
    run_on_jax(request, *RUNS, flags=flags)


def test_commands_run_on_jax_as_on_tensorflow(request):
    run_on_jax(request, "-m", "not peers", *COMMANDS, flags=OLDER_EMITTERS)


def test_a_folder_has_the_same_metrics_on_both_backends(request, tmp_path):
    """Also if JAX goes on from what TensorFlow has trained."""
    from tests.backends_agree import figures, make_folders
    from tests.encoders.test_families import FAMILIES

    families = [(name, family.config) for name, family in FAMILIES.items() if name != "bert"]
    make_folders(tmp_path, families=families)
    command = [sys.executable, "-m", "tests.backends_agree", tmp_path]
    environment = environment_of_jax(request, OLDER_EMITTERS)
    run = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    on_jax, here = json.loads(run.stdout.splitlines()[-1]), figures(tmp_path)
    assert on_jax.keys() == here.keys() and len(here) >= len(FAMILIES)
    for case, expected in here.items():
        assert on_jax[case] == approx(expected), case


def approx(figures):
    """Equal up to rounding, which the steps of a run multiply."""
    if isinstance(figures, dict):
        return {name: approx(value) for name, value in figures.items()}
    return pytest.approx(figures, rel=2e-3, abs=2e-4)


def environment_of_jax(request, flags):
    return {
        **os.environ,
        "KERAS_BACKEND": "jax",
        # Most of the time goes into compiling, each operation for each shape.
        "XLA_FLAGS": f"--xla_backend_optimization_level=0 {flags}",
        # What did not change since the last run of the tests is not compiled again.
        "JAX_COMPILATION_CACHE_DIR": str(request.config.cache.mkdir("jax")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.02",
    }


def run_on_jax(request, *tests, flags=""):
    """Runs tests in a process of their own; `flags` are XLA's."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, *tests],
        cwd=REPOSITORY,
        env=environment_of_jax(request, flags),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "passed" in run.stdout and "skipped" not in run.stdout, run.stdout[-2000:]
