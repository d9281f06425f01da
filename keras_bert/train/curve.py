"""The curve of a run: one row of figures every few steps, from what Keras reports."""

import math
import time

import keras

from keras_bert.errors import InputError


class Curve(keras.callbacks.Callback):
    """Collects the rows of a run in which each Keras epoch is the steps between two rows.

    `rows` is a list of JSON-like dictionaries, one a row:

    - `step`: optimizer steps done
    - `seconds`: since the run began, evaluations and former sessions counted in
    - `train`: the figures over the steps since the row before
    - `eval`: the figures on the eval split, where it was evaluated after this step
    - `learning_rate`: of the next step
    - `tokens_per_second`: of training alone; None where too little was timed (a session's first
      step, which compiles, is left out)

    Args:
        steps_between: steps of a Keras epoch.
        last_step: where the run ends (the last epoch may be shorter).
        tokens_a_step: tokens in a batch, padding not counted (an average will do), or None.
        rows: the rows of former sessions; the list is added to.

    Raises `InputError` at the end of an epoch whose loss is not a finite number.
    """

    def __init__(self, *, steps_between, last_step, tokens_a_step, rows):
        super().__init__()
        self.steps_between = steps_between
        self.last_step = last_step
        self.tokens_a_step = tokens_a_step
        self.rows = rows
        self._seconds_before = rows[-1]["seconds"] if rows else 0.0
        self._session_began = time.perf_counter()
        self._warm = False

    @property
    def seconds(self):
        """Seconds since the run began, former sessions counted in."""
        return self._seconds_before + time.perf_counter() - self._session_began

    def start(self, logs):
        """Adds the row before the first step, with what an evaluation gave (names `val_…`)."""
        _, evaluated = split_figures(logs)
        self.rows.append(
            {
                "step": 0,
                "seconds": round(self.seconds, 3),
                "train": {},
                "eval": evaluated,
                "learning_rate": float(self.model.optimizer.learning_rate),
                "tokens_per_second": None,
            }
        )

    def on_epoch_begin(self, epoch, logs=None):
        self._timed_from = time.perf_counter() if self._warm else None
        self._timed_steps = 0

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self._timed_from is None:
            self._timed_from = now
            self._warm = True
        else:
            self._timed_steps += 1
            self._timed_until = now

    def on_epoch_end(self, epoch, logs=None):
        step = min((epoch + 1) * self.steps_between, self.last_step)
        train, evaluated = split_figures(logs)
        if not all(math.isfinite(value) for value in train.values()):
            raise InputError(
                f"The loss is not a number any more, from a step between "
                f"{step - self.steps_between} and {step} on; try a lower learning rate or a "
                "longer warm-up."
            )
        row = {"step": step, "seconds": round(self.seconds, 3), "train": train}
        if evaluated:
            row["eval"] = evaluated
        row["learning_rate"] = float(self.model.optimizer.learning_rate)
        row["tokens_per_second"] = self._tokens_per_second()
        self.rows.append(row)

    def _tokens_per_second(self):
        if not self._timed_steps or self.tokens_a_step is None:
            return None
        seconds = self._timed_until - self._timed_from
        return round(self._timed_steps * self.tokens_a_step / seconds, 1)


def split_figures(logs):
    """Sorts Keras's logs into those of training and those of evaluation.

    Where a task measures an output's `cross_entropy`, exact over all predictions, it takes the
    place of the output's `loss`, which Keras averages over batches; `loss` is then their sum.
    """
    train, evaluated = {}, {}
    for name, value in logs.items():
        into = evaluated if name.startswith("val_") else train
        into[name.removeprefix("val_")] = round(value, 6)
    return _with_exact_losses(train), _with_exact_losses(evaluated)


def _with_exact_losses(figures):
    exact = {
        name.replace("cross_entropy", "loss"): value
        for name, value in figures.items()
        if name.endswith("_cross_entropy")
    }
    if not exact:
        return figures
    kept = {n: v for n, v in figures.items() if not n.endswith("_cross_entropy")}
    return {**kept, **exact, "loss": round(sum(exact.values()), 6)}
