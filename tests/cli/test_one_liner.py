"""Lines that a user can paste."""

import shlex

import pytest

from keras_bert.cli.command import one_liner


@pytest.mark.parametrize("path", ["runs/mine", "it's mine", 'a "b"', "$HOME", "back\\slash", "ü"])
def test_a_pasted_line_names_the_very_path(path):
    python, flag, program = shlex.split(one_liner("len({}), {}", path, path))

    assert (python, flag) == ("python", "-c")
    assert eval(program) == (len(path), path)


def test_a_plain_path_needs_no_escapes():
    assert one_liner("print({})", "runs/mine") == """python -c 'print("runs/mine")'"""
