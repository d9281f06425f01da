"""What a person sees while a run trains."""

import math
import sys

import keras
from tqdm import tqdm

from keras_bert.base.formatting import percent
from keras_bert.base.terminal import drawn_on, escaped, shows_bars

_SECONDS_BETWEEN_LINES = 10


class Progress(keras.callbacks.Callback):
    """A bar on standard error with step, losses, accuracies, tokens/s and the time left.

    So it does in a notebook. Where standard error is neither (a log file, CI), it writes a plain
    line every few seconds instead, and one for each evaluation. `history` must stand before this
    callback in `fit`'s list.

    Args:
        history: the `Curve`.
        first_step: steps done in former sessions.
        names: {figure: what a person calls it}, in the order in which they are shown.
    """

    def __init__(self, history, *, first_step, names):
        super().__init__()
        self.history = history
        self.first_step = first_step
        self.names = names
        self._bar = None
        self._first_record = None
        self._said_at = -math.inf

    def on_train_begin(self, logs=None):
        if shows_bars():
            self._bar = tqdm(
                total=self.history.plan.steps,
                initial=self.first_step,
                desc="training",
                unit=" steps",
                dynamic_ncols=True,
                file=drawn_on(sys.stderr),
            )

    def on_epoch_begin(self, epoch, logs=None):
        self._done = 0

    def on_train_batch_end(self, batch, logs=None):
        if self._bar is not None:
            self._bar.update(batch + 1 - self._done)
        self._done = batch + 1

    def on_epoch_end(self, epoch, logs=None):
        record = self.history.records[-1]
        # Not from the start: the first step compiles, and would make the rest look long.
        self._first_record = self._first_record or record
        if self._bar is None:
            due = record["seconds"] - self._said_at >= _SECONDS_BETWEEN_LINES
            if due or "eval" in record or record["step"] == self.history.plan.steps:
                self._said_at = record["seconds"]
                self.say(self._line(record))
            return
        shown = f"{describe(record['train'], self.names)}{_speed(record)}"
        self._bar.set_postfix_str(shown, refresh=False)
        if "eval" in record:
            self.say(f"{_at(record, self.history.plan.steps)} eval: {self._eval(record)}")

    def on_train_end(self, logs=None):
        self.close()

    def say(self, line):
        """Writes a line that stays."""
        if self._bar is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._bar.write(escaped(line), file=drawn_on(sys.stderr))

    def close(self):
        """Ends the bar's line; also to be called where `fit` raises, which tells no callback."""
        if self._bar is not None:
            self._bar.close()

    def _line(self, record):
        line = f"{_at(record, self.history.plan.steps)} {describe(record['train'], self.names)}"
        line += _speed(record)
        timed, left = (
            record["step"] - self._first_record["step"],
            self.history.plan.steps - record["step"],
        )
        if timed and left:
            seconds = (record["seconds"] - self._first_record["seconds"]) / timed * left
            line += f", {_duration(seconds)} left"
        if "eval" in record:
            line += f"; eval: {self._eval(record)}"
        return line

    def _eval(self, record):
        return describe(record["eval"], self.names)


def describe(metrics, names):
    """`{"loss": 1.5, "accuracy": 0.25}` as "loss 1.500, accuracy 25.0 %", in the order of `names`.

    Figures whose name ends in "accuracy" are shares.
    """
    return ", ".join(
        f"{shown} {percent(metrics[name])}"
        if name.endswith("accuracy")
        else f"{shown} {metrics[name]:.3f}"
        for name, shown in names.items()
        if name in metrics
    )


def _speed(record):
    """ ", 8,412 tokens/s, input wait 0.4 %", as far as it is known."""
    said = ""
    if record["tokens_per_second"]:
        said += f", {record['tokens_per_second']:,.0f} tokens/s"
    if record.get("input_wait") is not None:
        said += f", input wait {percent(record['input_wait'])}"
    return said


def _at(record, last_step):
    return f"step {record['step']}/{last_step}:"


def _duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
