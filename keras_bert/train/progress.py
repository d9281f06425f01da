"""What a person sees while a run trains."""

import math
import sys

import keras
from tqdm import tqdm

_SECONDS_BETWEEN_LINES = 10


class Progress(keras.callbacks.Callback):
    """A bar on standard error with step, losses, accuracies, tokens/s and the time left.

    Where standard error is not a terminal (a log file, a notebook, CI), it writes a plain line
    every few seconds instead, and one for each evaluation. `curve` must stand before this callback
    in `fit`'s list.

    Args:
        curve: the `Curve`.
        first_step: steps done in former sessions.
        names: {figure: what a person calls it}, in the order in which they are shown.
    """

    def __init__(self, curve, *, first_step, names):
        super().__init__()
        self.curve = curve
        self.first_step = first_step
        self.names = names
        self._bar = None
        self._first_row = None
        self._said_at = -math.inf

    def on_train_begin(self, logs=None):
        if sys.stderr.isatty():
            self._bar = tqdm(
                total=self.curve.last_step,
                initial=self.first_step,
                desc="training",
                unit=" steps",
                dynamic_ncols=True,
                file=sys.stderr,
            )

    def on_train_batch_end(self, batch, logs=None):
        if self._bar is not None:
            self._bar.update(1)

    def on_epoch_end(self, epoch, logs=None):
        row = self.curve.rows[-1]
        # Not from the start: the first step compiles, and would make the rest look long.
        self._first_row = self._first_row or row
        if self._bar is None:
            due = row["seconds"] - self._said_at >= _SECONDS_BETWEEN_LINES
            if due or "eval" in row or row["step"] == self.curve.last_step:
                self._said_at = row["seconds"]
                print(self._line(row), file=sys.stderr, flush=True)
            return
        shown = describe(row["train"], self.names)
        if row["tokens_per_second"]:
            shown += f", {row['tokens_per_second']:,.0f} tokens/s"
        self._bar.set_postfix_str(shown, refresh=False)
        if "eval" in row:
            # A line of its own, which stays when the bar moves on.
            line = f"{_at(row, self.curve.last_step)} eval: {self._eval(row)}"
            self._bar.write(line, file=sys.stderr)

    def on_train_end(self, logs=None):
        self.close()

    def close(self):
        """Ends the bar's line; also to be called where `fit` raises, which tells no callback."""
        if self._bar is not None:
            self._bar.close()

    def _line(self, row):
        line = f"{_at(row, self.curve.last_step)} {describe(row['train'], self.names)}"
        if row["tokens_per_second"]:
            line += f", {row['tokens_per_second']:,.0f} tokens/s"
        timed, left = row["step"] - self._first_row["step"], self.curve.last_step - row["step"]
        if timed and left:
            seconds = (row["seconds"] - self._first_row["seconds"]) / timed * left
            line += f", {_duration(seconds)} left"
        if "eval" in row:
            line += f"; eval: {self._eval(row)}"
        return line

    def _eval(self, row):
        return describe(row["eval"], self.names)


def describe(figures, names):
    """`{"loss": 1.5, "accuracy": 0.25}` as "loss 1.500, accuracy 25.0 %", in the order of `names`.

    Figures whose name ends in "accuracy" are shares.
    """
    return ", ".join(
        f"{shown} {100 * figures[name]:.1f} %"
        if name.endswith("accuracy")
        else f"{shown} {figures[name]:.3f}"
        for name, shown in names.items()
        if name in figures
    )


def _at(row, last_step):
    return f"step {row['step']}/{last_step}:"


def _duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
