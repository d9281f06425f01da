"""Several tasks as one: the mean of their probabilities."""

import keras
from keras import ops

from keras_bert.base.errors import InputError

# Where a probability is 0 in float32, its logarithm is that of this.
_LEAST = 1e-30


def mean_outputs(outputs, losses):
    """The outputs of a task with the mean probabilities of several.

    Where an output is trained by a cross-entropy, that is the logarithm of the mean softmax over
    the last axis, or the log-odds of the mean sigmoid: their softmax, or sigmoid, is that mean.
    Where it is trained by the squared error, it is the mean.

    Args:
        outputs: the tasks' outputs by name, a list of dictionaries.
        losses: the loss of each output (`Task.default_losses`).
    """
    return {
        name: _mean([ops.cast(one[name], "float32") for one in outputs], losses[name])
        for name in losses
    }


def check_can_average(losses):
    """Raises `InputError` for a task with an output that `mean_outputs` has no mean of."""
    for loss in losses.values():
        if not isinstance(loss, (*_OF_SOFTMAX, *_OF_SIGMOID, *_OF_NUMBERS)):
            raise InputError.naming(
                "{ensemble} averages the probabilities of each output, and a CRF gives them for "
                "whole sequences only. Leave {crf} or {ensemble} out."
            )


_OF_SOFTMAX = (keras.losses.SparseCategoricalCrossentropy,)
_OF_SIGMOID = (keras.losses.BinaryCrossentropy,)
_OF_NUMBERS = (keras.losses.MeanSquaredError,)


def _mean(outputs, loss):
    """Float32 tensors of one shape -> one."""
    if isinstance(loss, _OF_NUMBERS):
        return sum(outputs[1:], outputs[0]) / len(outputs)
    if isinstance(loss, _OF_SOFTMAX):
        return _log(_mean_of(ops.softmax, outputs))
    yes = _mean_of(ops.sigmoid, outputs)
    no = _mean_of(lambda logits: ops.sigmoid(-logits), outputs)  # exact near 0
    return _log(yes) - _log(no)


def _mean_of(function, outputs):
    return sum(function(value) for value in outputs) / len(outputs)


def _log(probabilities):
    return ops.log(ops.maximum(probabilities, _LEAST))
