"""Keeps the model that was best on the dev data."""

import keras

from keras_bert.checkpoints import save_folder


class BestModel(keras.callbacks.Callback):
    """Writes the task as a model folder whenever an evaluation beats all before it.

    The first of equally good ones stays. Killed and resumed, a run comes to the same choice: steps
    that are done again get the same figure.

    Args:
        task: the task that is trained, or whose head is.
        folder: where the best model so far lies.
        curve: the `Curve` of the run; it stands before this callback in `fit`'s list.
    """

    def __init__(self, task, folder, curve):
        super().__init__()
        self.task = task
        self.folder = folder
        self.curve = curve

    def on_epoch_end(self, epoch, logs=None):
        if best_entry(self.curve.entries, self.task.FIGURE) is self.curve.entries[-1]:
            save_folder(self.task, self.task.tokenizer, self.folder, overwrite=True)


def best_entry(entries, figure):
    """The first of the entries of a `Curve` with the highest `figure` on held-out data, or None."""
    return max(_evaluated(entries), key=lambda entry: entry["eval"][figure], default=None)


def evaluations_since_best(entries, figure):
    """How many evaluations there were after that of `best_entry`; 0 before the first one."""
    evaluated = _evaluated(entries)
    return len(evaluated) - 1 - evaluated.index(best_entry(entries, figure)) if evaluated else 0


def _evaluated(entries):
    return [entry for entry in entries if "eval" in entry]
