"""Runs that are killed in the middle: what they leave, and what must come of it."""

import contextlib
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert.training.checkpoint import Checkpoint


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
    tensors = load_file(output / "model" / "model.safetensors")
    other_tensors = load_file(other / "model" / "model.safetensors")
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, other_tensors[name], err_msg=name)
