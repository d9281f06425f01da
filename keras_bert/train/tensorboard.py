"""The curve of a run as TensorBoard shows it."""

import shutil
from pathlib import Path

import keras
import tensorflow as tf


class TensorBoardCurve(keras.callbacks.Callback):
    """Writes a `Curve`'s rows under `folder`, in runs that TensorBoard lays over one another.

    `folder/train` and `folder/eval` hold each figure under the same tag (`masked_lm/loss`), so that
    both are lines of one chart; `constants` maps the name of a further run to one {tag: value},
    drawn as a level line (`{"unigram_entropy": {"masked_lm/loss": 6.8}}`).

    What lies there is a function of the rows: at the start of a session the runs are written anew
    from the rows so far, so that steps that a killed session did and this one does again stand
    there once. `curve` must stand before this callback in `fit`'s list.
    """

    def __init__(self, folder, curve, constants):
        super().__init__()
        self.folder = Path(folder)
        self.curve = curve
        self.constants = constants
        self._writers = {}
        self._written = 0

    def on_train_begin(self, logs=None):
        for run in ("train", "eval", *self.constants):
            if (self.folder / run).exists():
                shutil.rmtree(self.folder / run)
            self._writers[run] = tf.summary.create_file_writer(str(self.folder / run))
        self._write()

    def on_epoch_end(self, epoch, logs=None):
        self._write()

    def on_train_end(self, logs=None):
        for writer in self._writers.values():
            writer.close()

    def _write(self):
        for row in self.curve.rows[self._written :]:
            scalars = {run: _by_tag(row.get(run, {})) for run in ("train", "eval")}
            for name in ("learning_rate", "tokens_per_second"):
                if row.get(name) is not None:
                    scalars["train"][f"run/{name}"] = row[name]
            for run, tagged in {**scalars, **self.constants}.items():
                with self._writers[run].as_default(step=row["step"]):
                    for tag, value in tagged.items():
                        tf.summary.scalar(tag, value)
        self._written = len(self.curve.rows)
        for writer in self._writers.values():
            writer.flush()


def _by_tag(figures):
    """`masked_lm_loss` -> `masked_lm/loss`, so that charts stand in a group for each output."""
    tagged = {}
    for name, value in figures.items():
        output, _, figure = name.rpartition("_")
        tagged[f"{output or 'total'}/{figure}"] = value
    return tagged
