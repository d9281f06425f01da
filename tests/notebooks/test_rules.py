"""What a notebook may not hold, and what is kept of its outputs."""

from pathlib import Path

import nbformat
import pytest

from notebooks.outputs import as_shown, tidy
from notebooks.rules import MOST_BYTES, offence_of_size, offences, offences_of_outputs

NOTEBOOKS = sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb"))


def notebook(*cells, text=()):
    v4 = nbformat.v4
    made = [v4.new_code_cell(cell) for cell in cells] + [v4.new_markdown_cell(x) for x in text]
    return v4.new_notebook(cells=made)


@pytest.mark.parametrize(
    "source, said",
    [
        ("!ls", "'!ls' is no Python"),
        ("%matplotlib inline", "is no Python"),
        ("import subprocess", "subprocess starts programs"),
        ("import os\nos.system('ls')", "system starts a program"),
        ("kb.load('a')._private", "_private is a private name"),
        ("from keras_bert.samples import _HERE", "_HERE is a private name"),
        ("from keras._src import x", "private module"),
        ("from keras_bert.checkpoints import load_task", "none of the public names"),
        ("x = 1\n" * 30, "30 lines are many"),
    ],
)
def test_what_a_cell_may_not_do(source, said):
    (sentence,) = offences(notebook("import keras_bert as kb", source))
    assert sentence.startswith("cell 2: ") and said in sentence


def test_what_a_cell_may_do():
    imports = (
        "from data_gen.vocabulary import learn_vocabulary\nfrom keras_bert.samples import NAMES"
    )
    assert offences(notebook(imports, "x.__doc__\nkb.load('hf://a/b')")) == []


def test_a_figure_without_a_run_behind_it_is_rejected():
    assert "93 %" in offences(notebook(text=["It gets 93 % right."]))[0]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_keeps_to_the_rules(path):
    kept = nbformat.read(path, as_version=4)
    nbformat.validate(kept)
    assert offences(kept) == offences_of_outputs(kept) == []
    assert offence_of_size(path, path.stat().st_size) == []
    assert any(cell.get("outputs") for cell in kept.cells), "run `make notebooks`"


def test_a_notebook_that_is_too_large_is_told():
    (said,) = offence_of_size(Path("a/01.ipynb"), MOST_BYTES + 1)
    assert said.startswith("01.ipynb has 200,001 bytes")


def test_a_line_is_kept_as_a_terminal_shows_it_in_the_end():
    assert as_shown("\x1b[1m 10%\x1b[0m\r 20%\n1/9\b\b\b2/9\b\b\b9/9 done\n") == " 20%\n9/9 done\n"


def test_outputs_are_kept_without_what_belongs_to_one_run():
    v4, ran = nbformat.v4, notebook("x")
    (cell,) = ran.cells
    cell.execution_count = 7
    stream = {"output_type": "stream", "name": "stdout"}
    cell.outputs = [
        v4.new_output("stream", name="stdout", text="in /tmp/x1/here/run "),
        v4.new_output("stream", name="stdout", text="at 0x7f0123456789\n"),
        v4.new_output("stream", name="stderr", text="a bar"),
        v4.new_output("display_data", {"text/html": "<iframe src='http://localhost:1'></iframe>"}),
        v4.new_output("execute_result", {"text/plain": "PosixPath('/tmp/x1/here')"}),
    ]
    tidy(ran, places=[Path("/tmp/x1/here")])
    assert cell.execution_count is None and "widgets" not in ran.metadata
    assert cell.outputs[0] == {**stream, "text": "in run at 0x…\n"}
    assert [out.output_type for out in cell.outputs] == ["stream", "execute_result"]
    assert cell.outputs[1].data["text/plain"] == "PosixPath('.')"
    assert offences_of_outputs(ran) == []
    cell.outputs[0].text = "see /home/somebody/x"
    assert offences_of_outputs(ran) == ["cell 1: the output names /home/somebody/x."]
