"""Every draw of the tests moves with `--shift-seeds`, but for values that are stored for a seed."""

import ast
import random

import numpy as np
import pytest

from tests import seeds
from tests.conftest import REPOSITORY

# What takes a seed.
GENERATORS = {"default_rng", "set_random_seed", "Random", "RandomState", "manual_seed", "set_seed"}
# The values that these draw are stored: they write the files of tests/reference.
STORED = ("make_earlier_folders.py", "make_peer_figures.py", "make_squad_reference.py")


def unshifted(source: str) -> list[int]:
    """Returns the lines of calls that give a literal seed to a generator."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        name = isinstance(node, ast.Call) and getattr(
            node.func, "attr", getattr(node.func, "id", 0)
        )
        if name in GENERATORS and all(isinstance(seed, ast.Constant) for seed in node.args):
            lines.append(node.lineno)
    return lines


def test_a_literal_seed_is_found():
    source = "a = np.random.default_rng(3)\nb = random.Random(shifted(3))\nc = Random()\n"
    assert unshifted(source) == [1, 3]


def test_every_draw_moves_with_the_shift():
    for path in sorted((REPOSITORY / "tests").rglob("*.py")):
        if path.name not in STORED:
            assert not unshifted(path.read_text(encoding="utf-8")), path


def test_a_shift_moves_all_generators(monkeypatch):
    drawn = set()
    for shift in ("0", "1"):
        monkeypatch.setenv(seeds.VARIABLE, shift)
        seeds.seed_generators()
        drawn |= {random.random(), np.random.random(), seeds.make_rng(3).random()}
    assert len(drawn) == 6


@pytest.mark.parametrize("turn", [1, 2])
def test_no_test_begins_with_what_another_left(turn):
    assert random.random() == random.Random(seeds.shifted(0)).random()
    np.random.seed(turn)
