"""How a command uses the processor: oneDNN, memory cleared once, few garbage collections."""

import gc
import os
import platform
import subprocess
import sys

import pytest

from keras_bert.cli.cpu import import_large

loads_tensorflow = pytest.mark.slow  # once or twice, in processes of its own

_IN_A_COMMAND = """
import contextlib, sys

from keras_bert.__main__ import run

sys.argv = ["keras-bert", "--version"]
with contextlib.suppress(SystemExit):
    run()

import tensorflow as tf
"""
_PAGES_OF_A_STEP = """
import resource

@tf.function
def step(x):
    return tf.reduce_sum(tf.fill((30_000, 400), x))  # 46 MB

for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step(tf.constant(2.0)).numpy()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
_RESOLVED = ("TF_ENABLE_ONEDNN_OPTS", "TF_CPU_ALLOCATOR_USE_BFC")  # for the tests' process, too
_PAGES = 30_000 * 400 * 4 // os.sysconf("SC_PAGE_SIZE")
_USES_ONEDNN = """
from tensorflow.python.util import _pywrap_util_port

print(_pywrap_util_port.IsMklEnabled())
"""


def printed(program, **environment):
    """The lines that a command prints, and then a program in the same process."""
    ours = {name: value for name, value in os.environ.items() if name not in _RESOLVED}
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_COMMAND + program],
        env={**ours, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def without_onednn(**environment):
    """(whether a command uses oneDNN, the pages that the system clears for a step in its process).

    The user has chosen to go without it: with oneDNN TensorFlow always keeps memory. Of the pages
    those count that are cleared once others have gone by.
    """
    program = _USES_ONEDNN + _PAGES_OF_A_STEP
    *_, is_used, pages = printed(program, TF_ENABLE_ONEDNN_OPTS="0", **environment)
    return is_used, int(pages)


@pytest.fixture(scope="module")
def chosen():
    return without_onednn()


@loads_tensorflow
def test_what_a_step_has_freed_is_kept(chosen):
    assert chosen[1] < 0.01 * _PAGES


@loads_tensorflow
def test_an_allocator_that_the_user_has_chosen_stays_so():
    assert without_onednn(TF_CPU_ALLOCATOR_USE_BFC="false")[1] > 0.9 * _PAGES


@loads_tensorflow
def test_products_are_those_of_onednn_unless_the_user_has_chosen_others(chosen):
    """On x86; elsewhere it is TensorFlow's choice."""
    expected = platform.machine() in ("x86_64", "AMD64")
    assert printed(_USES_ONEDNN)[-1] == str(expected)
    assert chosen[0] == "False"


def test_what_a_library_is_made_of_is_no_garbage(tmp_path, monkeypatch):
    (tmp_path / "large_one.py").write_text("import gc\nwas_on = gc.isenabled()\nparts = [[], []]\n")
    (tmp_path / "broken_one.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    was_on = gc.isenabled()
    gc.enable()
    try:
        import_large("large_one")
        parts = sys.modules["large_one"].parts
        assert not sys.modules["large_one"].was_on
        assert gc.isenabled()
        assert not any(object is parts for object in gc.get_objects())
        with pytest.raises(ImportError):
            import_large("broken_one")
        assert gc.isenabled()
        frozen = gc.get_freeze_count()
        import_large("large_one")
        assert gc.get_freeze_count() <= frozen
    finally:
        if not was_on:
            gc.disable()
