"""A run in TensorBoard: charts over steps and tokens, and predictions as text.

Keras's TensorBoard callback writes other things: its steps are epochs, it has one tag per metric
without groups, no tokens, and what a killed session wrote after its last checkpoint stays.
"""

import shutil
from pathlib import Path

import keras
import tensorflow as tf
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from keras_bert.base.formatting import percent
from keras_bert.text.vocabulary import MASK
from keras_bert.training.optimizers.gradients import GRADIENT_NORM

# Metrics of a record that are of the run, not of the task.
_RUN_METRICS = ("learning_rate", GRADIENT_NORM, "tokens_per_second", "input_wait", "mfu")


class TensorBoardHistory(keras.callbacks.Callback):
    """Writes the records of a `History` under `folder`, in runs that share their charts.

    `folder/train` and `folder/eval` have each metric under the same tag (`masked_lm/loss`), so that
    both are lines of one chart; `constants` maps the name of a further run to {tag: value}, drawn
    as horizontal lines (`{"unigram_entropy": {"masked_lm/loss": 6.8}}`). Every metric is there over
    the steps and, in charts of its own (`over_tokens/masked_lm/loss`), over the tokens, where these
    are known. `folder/eval` also has the `examples` of the records as text.

    The runs depend on the records alone: a session first writes them again from the records so far,
    so that steps that a killed session did and this one repeats are there once. `history` must come
    before this callback in `fit`'s list. `outputs` are the names of the model's outputs, by which
    metrics are grouped.
    """

    def __init__(self, folder, history, constants, *, outputs):
        super().__init__()
        self.folder = Path(folder)
        self.history = history
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
        for record in self.history.records[self._written :]:
            scalars = {
                run: by_tag(record.get(run, {}), outputs=self.outputs) for run in ("train", "eval")
            }
            for name in _RUN_METRICS:
                if record.get(name) is not None:
                    scalars["train"][f"run/{name}"] = record[name]
            for run, tagged in {**scalars, **self.constants}.items():
                with self._writers[run].as_default():
                    _write_scalars(tagged, step=record["step"])
                    if record.get("tokens") is not None:
                        over_tokens = {f"over_tokens/{tag}": v for tag, v in tagged.items()}
                        _write_scalars(over_tokens, step=record["tokens"])
            if "examples" in record:
                with self._writers["eval"].as_default(step=record["step"]):
                    tf.summary.text("masked tokens", as_table(record["examples"]))
        self._written = len(self.history.records)
        for writer in self._writers.values():
            writer.flush()


def _write_scalars(tagged, *, step):
    """Writes metrics by tag in one event; `tf.summary.scalar` takes several operations for each."""
    scalars = [scalar_pb(tag, value).value[0] for tag, value in tagged.items()]
    if scalars:
        summary = summary_pb2.Summary(value=scalars)
        tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=step)


def by_tag(metrics, *, outputs):
    """`masked_lm_loss` -> `masked_lm/loss`, which groups charts by output.

    Metrics of no output are in the group `total`.
    """
    tagged = {}
    for name, value in metrics.items():
        output = next((output for output in outputs if name.startswith(f"{output}_")), None)
        metric = name if output is None else name.removeprefix(f"{output}_")
        tagged[f"{output or 'total'}/{metric}"] = value
    return tagged


def as_table(examples):
    """The `examples` of a record as a Markdown table; the correct token is bold."""

    def marked(token, expected):
        return f"**{_plain(token)}**" if token == expected else _plain(token)

    lines = ["| text | predictions |", "|---|---|"]
    for example in examples:
        expected = example["expected"]
        guesses = " · ".join(
            f"{marked(token, expected)} {percent(probability)}"
            for token, probability in example["candidates"]
        )
        if all(token != expected for token, _ in example["candidates"]):
            guesses += f"; correct: {marked(expected, expected)}"
        lines.append(
            f"| {_plain(example['before'])} **{_plain(MASK)}** {_plain(example['after'])} "
            f"| {guesses} |"
        )
    return "\n".join(lines)


def _plain(text):
    """The text with everything escaped that could be Markdown."""
    return "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in text)
