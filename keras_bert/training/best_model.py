"""Keeps the weights that were best on the dev data."""

import math

import keras

from keras_bert.training.checkpoint import read_variables, write_variables


class BestModel(keras.callbacks.Callback):
    """Writes the task's weights whenever an evaluation beats all before it.

    The first of equally good ones stays. Killed and resumed, a run comes to the same choice: steps
    that are done again get the same figure.

    Args:
        task: the task that is trained, or whose head is.
        path: the file of the best weights so far (see `keras_bert.training.checkpoint`).
        curve: the `Curve` of the run; it stands before this callback in `fit`'s list.
    """

    def __init__(self, task, path, curve):
        super().__init__()
        self.task = task
        self.path = path
        self.curve = curve

    def on_epoch_end(self, epoch, logs=None):
        if best_entry(self.curve.entries, self.task.FIGURE) is self.curve.entries[-1]:
            write_variables(self.path, _named(self.task))


def restore_best(task, path):
    """Puts the weights that `BestModel` wrote back into the task."""
    read_variables(path, _named(task))


def _named(task):
    return {weight.path: weight for weight in task.weights}


def best_entry(entries, figure):
    """The first of the entries of a `Curve` with the highest `figure` on held-out data, or None.

    One without a number for it is best only where none has one.
    """
    return max(_evaluated(entries), key=lambda entry: rank(value_of(entry, figure)), default=None)


def value_of(entry, figure):
    """The `figure` on held-out data that an entry has; None where it was NaN."""
    value = entry["eval"].get(figure)  # metrics.json has None
    return None if value is None or math.isnan(value) else value


def rank(value):
    """What values of `value_of` are compared by: nothing compares with NaN, so it never wins."""
    return -math.inf if value is None else value


def evaluations_since_best(entries, figure):
    """How many evaluations there were after that of `best_entry`; 0 before the first one."""
    evaluated = _evaluated(entries)
    return len(evaluated) - 1 - evaluated.index(best_entry(entries, figure)) if evaluated else 0


def _evaluated(entries):
    return [entry for entry in entries if "eval" in entry]
