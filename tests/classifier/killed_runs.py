"""Runs that are killed in the middle, and what must come of them."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert.train.checkpoint import Checkpoint
from keras_bert.train.finetune import finetune

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


def finetune_and_stop(arguments, output, *, after_step):
    """The same without a process of its own: an exception that nobody expects ends the run."""

    class Stopped(BaseException):
        pass

    save = Checkpoint.save

    def save_and_stop(self, step, state):
        save(self, step, state)
        if step >= after_step:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Checkpoint, "save", save_and_stop)
        finetune(**arguments, output=output)
    assert not (output / "metrics.json").exists()


def assert_same_weights(output, other):
    """The models of two runs are the same, bit for bit."""
    ours = load_file(output / "model" / "model.safetensors")
    theirs = load_file(other / "model" / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        np.testing.assert_array_equal(tensor, theirs[name], err_msg=name)
