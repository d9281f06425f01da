"""Runs that are killed in the middle, and what must come of them."""

import contextlib
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert.train.checkpoint import Checkpoint

# Kills itself, as a power cut would, after the checkpoint of the step that it is given.
_KILLED = """
import json, os, signal, sys
from keras_bert.train import checkpoint
save = checkpoint.Checkpoint.save
def save_and_die(self, step, state):
    save(self, step, state)
    if step >= int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.Checkpoint.save = save_and_die
from keras_bert.train.finetune import finetune
finetune(**json.loads(sys.argv[1]))
"""


def finetune_and_kill(arguments, output, *, after_step):
    """Runs `finetune` in a process that is killed once the checkpoint of a step is written."""
    given = {name: str(v) if hasattr(v, "parts") else v for name, v in arguments.items()}
    given["output"] = str(output)
    died = subprocess.run(
        [sys.executable, "-c", _KILLED, json.dumps(given), str(after_step)], capture_output=True
    )
    assert died.returncode == -9, died.stderr.decode()[-2000:]
    assert not (output / "metrics.json").exists()


@contextlib.contextmanager
def copied(output, to, *, after_step):
    """While a run writes `output`, has `to` be what a kill after a step's checkpoint would leave.

    So one run gives both what is gone on with and what must come of it.
    """
    save = Checkpoint.save

    def save_and_copy(self, step, state):
        save(self, step, state)
        if step >= after_step and not to.exists():
            shutil.copytree(output, to)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_copy)
        yield
    assert (to / "checkpoints").is_dir() and not (to / "metrics.json").exists()


def assert_same_weights(output, other):
    """The models of two runs are the same, bit for bit."""
    ours = load_file(output / "model" / "model.safetensors")
    theirs = load_file(other / "model" / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        np.testing.assert_array_equal(tensor, theirs[name], err_msg=name)
