"""What a step of a command has freed the next one uses; the system does not clear it anew."""

import os
import subprocess
import sys

_PAGES_OF_A_STEP = """
import contextlib, resource, sys

from keras_bert.cli.console import run

sys.argv = ["keras-bert", "--version"]
with contextlib.suppress(SystemExit):
    run()

import tensorflow as tf

@tf.function
def step(x):
    return tf.reduce_sum(tf.fill((30_000, 400), x))  # 46 MB

for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step(tf.constant(2.0)).numpy()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
_PAGES = 30_000 * 400 * 4 // os.sysconf("SC_PAGE_SIZE")


def cleared(**environment):
    """Pages that the system clears for a step in a command's process, once others have gone by.

    Without oneDNN, with which TensorFlow always keeps memory.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PAGES_OF_A_STEP],
        env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.splitlines()[-1])


def test_what_a_step_has_freed_is_kept():
    assert cleared() < 0.01 * _PAGES


def test_an_allocator_that_the_user_has_chosen_stays_so():
    assert cleared(TF_CPU_ALLOCATOR_USE_BFC="false") > 0.9 * _PAGES
