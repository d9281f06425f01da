"""The curve of a run as TensorBoard shows it."""

import shutil
from pathlib import Path

import keras
import tensorflow as tf
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from keras_bert.base.formatting import percent
from keras_bert.text.vocabulary import MASK
from keras_bert.training.optimizers.gradient_norm import GRADIENT_NORM

# Figures of an entry that are the run's, not the task's.
_OF_THE_RUN = (
    "learning_rate",
    GRADIENT_NORM,
    "tokens_per_second",
    "input_wait",
    "flops_utilisation",
)


class TensorBoardCurve(keras.callbacks.Callback):
    """Writes a `Curve`'s entries under `folder`, in runs that TensorBoard lays over one another.

    `folder/train` and `folder/eval` hold each figure under the same tag (`masked_lm/loss`), so that
    both are lines of one chart; `constants` maps the name of a further run to one {tag: value},
    drawn as a level line (`{"unigram_entropy": {"masked_lm/loss": 6.8}}`). Every figure stands
    there twice, over the steps and, in a group of charts of its own, over the tokens
    (`over_tokens/masked_lm/loss`), where these are known. `folder/eval` also has the
    entries' examples as text.

    What lies there is a function of the entries: at the start of a session the runs are written
    anew from those so far, so that steps that a killed session did and this one does again stand
    there once. `curve` must stand before this callback in `fit`'s list. `outputs` are the names of
    the model's outputs, whose figures are grouped.
    """

    def __init__(self, folder, curve, constants, *, outputs):
        super().__init__()
        self.folder = Path(folder)
        self.curve = curve
        self.constants = constants
        self.outputs = outputs
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
        for entry in self.curve.entries[self._written :]:
            scalars = {
                run: by_tag(entry.get(run, {}), outputs=self.outputs) for run in ("train", "eval")
            }
            for name in _OF_THE_RUN:
                if entry.get(name) is not None:
                    scalars["train"][f"run/{name}"] = entry[name]
            for run, tagged in {**scalars, **self.constants}.items():
                with self._writers[run].as_default():
                    _write_scalars(tagged, step=entry["step"])
                    if entry.get("tokens") is not None:
                        over_tokens = {f"over_tokens/{tag}": v for tag, v in tagged.items()}
                        _write_scalars(over_tokens, step=entry["tokens"])
            if "examples" in entry:
                with self._writers["eval"].as_default(step=entry["step"]):
                    tf.summary.text("masked tokens", as_table(entry["examples"]))
        self._written = len(self.curve.entries)
        for writer in self._writers.values():
            writer.flush()


def _write_scalars(tagged, *, step):
    """Writes figures by tag in one event: `tf.summary.scalar` takes several operations for each."""
    values = [scalar_pb(tag, value).value[0] for tag, value in tagged.items()]
    if values:
        summary = summary_pb2.Summary(value=values)
        tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=step)


def by_tag(figures, *, outputs):
    """`masked_lm_loss` -> `masked_lm/loss`, so that charts stand in a group for each output.

    What is not one output's stands in the group `total`.
    """
    tagged = {}
    for name, value in figures.items():
        output = next((output for output in outputs if name.startswith(f"{output}_")), None)
        figure = name if output is None else name.removeprefix(f"{output}_")
        tagged[f"{output or 'total'}/{figure}"] = value
    return tagged


def as_table(examples):
    """The `examples` of an entry as a table in Markdown; the piece that is right stands in bold."""

    def marked(piece, expected):
        return f"**{_plain(piece)}**" if piece == expected else _plain(piece)

    lines = ["| text | in its place |", "|---|---|"]
    for example in examples:
        expected = example["expected"]
        guesses = " · ".join(
            f"{marked(piece, expected)} {percent(probability)}"
            for piece, probability in example["candidates"]
        )
        if all(piece != expected for piece, _ in example["candidates"]):
            guesses += f"; it was {marked(expected, expected)}"
        lines.append(
            f"| {_plain(example['before'])} **{_plain(MASK)}** {_plain(example['after'])} "
            f"| {guesses} |"
        )
    return "\n".join(lines)


def _plain(text):
    """Text in which nothing is Markdown."""
    return "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in text)
