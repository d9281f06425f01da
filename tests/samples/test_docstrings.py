"""Docstrings as documents: prose stays, each paragraph once, and nothing is imported."""

import sys

import pytest

from keras_bert.base.errors import InputError
from keras_bert.samples.texts import write_docstrings

ONE = '''"""The module that walks through the park and never comes back to it.

    >>> walk()

It has been tested on several parks, most of which had a gate.
"""

raise RuntimeError("imported")


def walk(steps):
    """Walks.

    Every step is as long as the one before it, unless there is a bench.
    """


class Walk:
    async def __call__(self):
        """Every step is as long as the one before it, unless there is a bench."""
'''
TWO = '''"""It has been tested on several parks, most of which had a gate.

Nothing else is known about those who have walked there.
"""
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "walking_about"
    (root / "deep").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "a.py").write_text(ONE)
    (root / "deep" / "b.py").write_text(TWO)
    (root / "broken.py").write_text("def")
    for name in ("tests/c.py", "deep/b_test.py"):
        (root / name).write_text('"""Nobody should read what the tests of a package say."""')
    monkeypatch.syspath_prepend(str(tmp_path))
    return root.name


def test_the_prose_of_docstrings_stands_once_and_nothing_is_imported(tmp_path, package):
    paths = write_docstrings(tmp_path / "out", [package])
    assert [path.name for path in paths] == [f"{package}.a.txt", f"{package}.deep.b.txt"]
    assert paths[0].read_text() == (
        "The module that walks through the park and never comes back to it.\n\n"
        "It has been tested on several parks, most of which had a gate.\n\n"
        "Every step is as long as the one before it, unless there is a bench.\n"
    )
    assert paths[1].read_text() == "Nothing else is known about those who have walked there.\n"
    assert not [name for name in sys.modules if name.startswith(package)]


def test_a_package_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="The package nowhere_to_be_found is not installed"):
        write_docstrings(tmp_path / "out", ["nowhere_to_be_found"])
