"""Keeps the model that was best on the dev data."""

import keras

from keras_bert.checkpoints import save_folder


class BestModel(keras.callbacks.Callback):
    """Writes the task as a model folder whenever an evaluation beats all before it.

    The first of equally good ones stays. Killed and resumed, a run comes to the same choice: an
    epoch that is trained again gets the same figure.

    Args:
        task: the task that is trained, or whose head is.
        folder: where the best model so far lies.
        curve: the `Curve` of the run; it stands before this callback in `fit`'s list.
        figure: the figure of the dev data that counts; more is better.
    """

    def __init__(self, task, folder, curve, *, figure):
        super().__init__()
        self.task = task
        self.folder = folder
        self.curve = curve
        self.figure = figure

    def on_epoch_end(self, epoch, logs=None):
        if best_row(self.curve.rows, self.figure) is self.curve.rows[-1]:
            save_folder(self.task, self.task.tokenizer, self.folder, overwrite=True)


def best_row(rows, figure):
    """The first of the rows of a `Curve` with the highest `figure` on the dev data, or None."""
    evaluated = [row for row in rows if "eval" in row]
    return max(evaluated, key=lambda row: row["eval"][figure], default=None)
