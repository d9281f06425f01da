"""The rules of notebooks: what they may not hold, and what is kept of their outputs."""

from pathlib import Path

import nbformat
import pytest

from notebooks.outputs import as_shown, tidy
from notebooks.rules import MAX_BYTES, problem_of_size, problems, problems_of_outputs

NOTEBOOKS = sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb"))


def notebook(*cells):
    v4 = nbformat.v4
    return v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])


@pytest.mark.parametrize(
    "source, said",
    [
        ("!ls", "'!ls' is not Python"),
        ("%matplotlib inline", "is not Python"),
        ("import subprocess", "subprocess starts programs"),
        ("import os\nos.system('ls')", "system starts a program"),
        ("kb.load('a')._private", "_private is a private name"),
        ("from keras_bert.samples import _HERE", "_HERE is a private name"),
        ("from keras._src import x", "private module"),
        ("from keras_bert.checkpoints import load_task", "is not public"),
        ("from data_gen.vocabulary import learn_vocabulary", "is not public"),
        ("x = 1\n" * 30, "30 lines are too many"),
    ],
)
def test_what_a_cell_may_not_do(source, said):
    (sentence,) = problems(notebook("import keras_bert as kb", source))
    assert sentence.startswith("cell 2: ") and said in sentence


def test_what_a_cell_may_do():
    imports = "import keras_bert as kb\nfrom keras_bert.samples import NAMES"
    assert problems(notebook(imports, "x.__doc__\nkb.load('hf://a/b')")) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_keeps_to_the_rules(path):
    saved_notebook = nbformat.read(path, as_version=4)
    nbformat.validate(saved_notebook)
    assert problems(saved_notebook) == problems_of_outputs(saved_notebook) == []
    assert problem_of_size(path, path.stat().st_size) == []
    assert any(cell.get("outputs") for cell in saved_notebook.cells), "run `make notebooks`"


def test_a_notebook_that_is_too_large_is_told():
    (said,) = problem_of_size(Path("a/01.ipynb"), MAX_BYTES + 1)
    assert said.startswith("01.ipynb has 200,001 bytes")


def test_a_line_is_kept_as_a_terminal_shows_it_in_the_end():
    assert as_shown("\x1b[1m 10%\x1b[0m\r 20%\n1/9\b\b\b2/9\b\b\b9/9 done\n") == " 20%\n9/9 done\n"


def test_outputs_are_kept_without_what_belongs_to_one_run():
    v4, ran = nbformat.v4, notebook("x")
    (cell,) = ran.cells
    cell.metadata = {"tags": ["check"], "collapsed": True}
    cell.execution_count = 7
    stream = {"output_type": "stream", "name": "stdout"}
    cell.outputs = [
        v4.new_output("stream", name="stdout", text="in /tmp/x1/here/run "),
        v4.new_output("stream", name="stdout", text="at 0x7f0123456789\n"),
        v4.new_output("stream", name="stderr", text="a bar"),
        v4.new_output("display_data", {"text/html": "<iframe src='http://localhost:1'></iframe>"}),
        v4.new_output("execute_result", {"text/plain": "PosixPath('/tmp/x1/here')"}),
    ]
    tidy(ran, folders=[Path("/tmp/x1/here")])
    assert cell.execution_count is None and cell.metadata == {"tags": ["check"]}
    assert "widgets" not in ran.metadata
    assert cell.outputs[0] == {**stream, "text": "in run at 0x…\n"}
    assert [out.output_type for out in cell.outputs] == ["stream", "execute_result"]
    assert cell.outputs[1].data["text/plain"] == "PosixPath('.')"
    assert problems_of_outputs(ran) == []
    cell.outputs[0].text = "see /home/somebody/x"
    assert problems_of_outputs(ran) == ["cell 1: the output names /home/somebody/x."]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_begins_and_ends_alike(path):
    cells = nbformat.read(path, as_version=4).cells
    assert all(f"**{word}" in cells[0].source for word in ("You will learn", "Takes", "Model"))
    headings = [
        cell.source for cell in cells if cell.source.rpartition("## ")[2].startswith("Use your own")
    ]
    assert headings, "a section on one's own data"
    checks = [cell for cell in cells if "check" in cell.metadata.get("tags", ())]
    assert checks and all(cell.metadata["jupyter"]["source_hidden"] for cell in checks)
