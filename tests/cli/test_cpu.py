"""How a command uses the processor: by oneDNN, and with memory that the system clears once."""

import os
import platform
import subprocess
import sys

_IN_A_COMMAND = """
import contextlib, sys

from keras_bert.cli.console import run

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
_SETTLED = ("TF_ENABLE_ONEDNN_OPTS", "TF_CPU_ALLOCATOR_USE_BFC")  # for the tests' process, too
_PAGES = 30_000 * 400 * 4 // os.sysconf("SC_PAGE_SIZE")
_USES_ONEDNN = """
from tensorflow.python.util import _pywrap_util_port

print(_pywrap_util_port.IsMklEnabled())
"""


def printed(program, **environment):
    """The last line that a program prints after a command in the same process."""
    ours = {name: value for name, value in os.environ.items() if name not in _SETTLED}
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_COMMAND + program],
        env={**ours, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def cleared(**environment):
    """Pages that the system clears for a step in a command's process, once others have gone by.

    Without oneDNN, with which TensorFlow always keeps memory.
    """
    return int(printed(_PAGES_OF_A_STEP, TF_ENABLE_ONEDNN_OPTS="0", **environment))


def test_what_a_step_has_freed_is_kept():
    assert cleared() < 0.01 * _PAGES


def test_an_allocator_that_the_user_has_chosen_stays_so():
    assert cleared(TF_CPU_ALLOCATOR_USE_BFC="false") > 0.9 * _PAGES


def test_products_are_those_of_onednn_unless_the_user_has_chosen_others():
    """On x86; elsewhere it is TensorFlow's choice."""
    expected = platform.machine() in ("x86_64", "AMD64")
    assert printed(_USES_ONEDNN) == str(expected)
    assert printed(_USES_ONEDNN, TF_ENABLE_ONEDNN_OPTS="0") == "False"
