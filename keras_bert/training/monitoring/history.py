"""The curve of a run: one entry of figures every few steps, from what Keras reports."""

import math
import time

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import new_file
from keras_bert.tasks.pretraining.metrics import FINITE_BATCHES, exact_losses
from keras_bert.training.optimizers.optimizer import GRADIENT_NORM


class NotFinite(InputError):
    """A loss, or weights, that are infinite or NaN.

    Attributes:
        step: the step (from 1) of whose batch that is, or None where it is not known.
    """

    def __init__(self, what, *, step=None):
        super().__init__(f"{what}; try a lower learning rate or a longer warm-up.")
        self.what = what
        self.step = step

    def with_batch(self, path):
        """The same, with the place where the batch lies."""
        return NotFinite(f"{self.what}, whose batch is in {path}", step=self.step)


def save_batch(path, batches):
    """Writes batches that `fit` takes, one after another, as arrays by name into an .npz file.

    What an output is compared with is `label/OUTPUT`, and what that counts `weight/OUTPUT`.
    """
    parts = [
        {
            **inputs,
            **{f"label/{name}": values for name, values in labels.items()},
            **{f"weight/{name}": values for name, values in weights.items()},
        }
        for inputs, labels, weights in batches
    ]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    with new_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


class History(keras.callbacks.Callback):
    """Collects the entries of a run in which each Keras epoch is the steps of an entry.

    `records` is a list of JSON-like dictionaries:

    - `step`: optimizer steps done
    - `tokens`: trained on so far, padding not counted; an average, None where it is not known
    - `seconds`: since the run began, evaluations and former sessions counted in
    - `train`: the figures over the steps since the entry before; a mean over nothing is left out
    - `eval`: the figures on held-out data, where it was evaluated after this step
    - `examples`: beside `eval`, what the feed's `examples` say, where there are any
    - `learning_rate`: of the next step
    - `gradient_norm`: of all gradients of a step together before they are cut, the mean over the
      steps since the entry before, where it is measured
    - `tokens_per_second`: of training alone; None where too little was timed (the first step of a
      session, and of a phase, compiles and is left out)
    - `input_wait`: the share of that time in which a step waited for its batch, where it is known
    - `mfu`: floating-point operations a second of the model's own formula as a share
      of `matrix_rate`, where both are known

    The first entry of a run may be one at step 0, with an evaluation alone.

    Args:
        plan: the `Plan` of the run.
        records: those of former sessions; the list is added to.
        loss_weights: what each output's loss counts in their sum, by the output's name; 1 where
            it is not said.
        matrix_rate: what the devices do in large matrix products, FLOP/s, or None.

    `feed` is to be set before `fit`: the `BatchSource` of the phase, for tokens, FLOPs and clock.

    Raises `NotFinite` at the end of an entry whose loss is not a finite number.
    """

    def __init__(self, plan, *, records, loss_weights=None, matrix_rate=None):
        super().__init__()
        self.plan = plan
        self.feed = None
        self.records = records
        self.loss_weights = loss_weights or {}
        self.matrix_rate = matrix_rate
        self._seconds_before = records[-1]["seconds"] if records else 0.0
        self._session_began = time.perf_counter()

    @property
    def feed(self):
        """The `BatchSource` of the phase."""
        return self._feed

    @feed.setter
    def feed(self, feed):
        self._feed, self._warm = feed, False  # the first step of a phase compiles

    @property
    def step(self):
        """Steps done at the end of the last entry."""
        return self.records[-1]["step"] if self.records else 0

    @property
    def seconds(self):
        """Seconds since the run began, former sessions counted in."""
        return self._seconds_before + time.perf_counter() - self._session_began

    def start(self, logs):
        """Adds the entry before the first step, with what an evaluation gave."""
        self.records.append(
            {
                "step": 0,
                "tokens": 0,
                "seconds": round(self.seconds, 3),
                "train": {},
                **self._held_out(logs),
                "learning_rate": float(self.model.optimizer.learning_rate),
                "tokens_per_second": None,
            }
        )

    def on_epoch_begin(self, epoch, logs=None):
        # Not what the plan says: an earlier version may have stopped inside of an entry.
        self._first_step = self.step
        self._steps = self.plan.step_of(epoch) - self._first_step
        self._timed_from = self._now(0) if self._warm else None

    def on_train_batch_end(self, batch, logs=None):
        done = batch + 1
        if done >= self._steps:
            # The one value that is fetched from the device: when it is there, the work is done.
            keras.ops.convert_to_numpy(self.model.optimizer.iterations)
        self._timed_until = self._now(done)
        if not self._warm:
            self._timed_from, self._warm = self._timed_until, True

    def on_epoch_end(self, epoch, logs=None):
        step = self.plan.step_of(epoch)
        train = self._metrics({k: v for k, v in logs.items() if not k.startswith("val_")})
        held_out = {k.removeprefix("val_"): v for k, v in logs.items() if k.startswith("val_")}
        if not math.isfinite(train["loss"]):
            raise self._not_finite(logs, step)
        record = {"step": step, "tokens": self._tokens(), "seconds": round(self.seconds, 3)}
        record["train"] = train
        if held_out:
            record |= self._held_out(held_out)
        record["learning_rate"] = float(self.model.optimizer.learning_rate)
        norm = float(logs.get(GRADIENT_NORM, math.nan))
        if math.isfinite(norm):
            record[GRADIENT_NORM] = float(f"{norm:.6g}")
        record |= self._speed()
        self.records.append(record)

    def _now(self, step):
        """(steps done in the entry, seconds on the clock, seconds waited for batches or None)."""
        return step, time.perf_counter(), self.feed.waited()

    def _speed(self):
        (first, begun, _), (last, ended, _) = self._timed_from, self._timed_until
        if last == first:
            return {"tokens_per_second": None}
        seconds, tokens = ended - begun, self.feed.tokens_a_step
        speed = None if tokens is None else round((last - first) * tokens / seconds, 1)
        found = {"tokens_per_second": speed}
        waited = [moment[2] for moment in (self._timed_from, self._timed_until)]
        if None not in waited:
            found["input_wait"] = round((waited[1] - waited[0]) / seconds, 4)
        if None not in (speed, self.feed.flops_a_token, self.matrix_rate):
            fraction = speed * self.feed.flops_a_token / self.matrix_rate
            found["mfu"] = round(fraction, 4)
        return found

    def _held_out(self, logs):
        """What an entry says of an evaluation."""
        examples = self.feed.examples()
        return {"eval": self._metrics(logs), **({"examples": examples} if examples else {})}

    def _tokens(self):
        """Tokens at the end of the entry."""
        before = self.records[-1].get("tokens") if self.records else 0
        if before is None or self.feed.tokens_a_step is None:
            return None
        return before + round(self._steps * self.feed.tokens_a_step)

    def _not_finite(self, logs, step):
        if FINITE_BATCHES not in logs:
            return NotFinite(
                "The loss is not a number any more, from a step between "
                f"{self._first_step} and {step} on"
            )
        # Where it was finite in every batch, it is not in their sum.
        batches = int(logs[FINITE_BATCHES]) // self.feed.batches_a_step
        first = min(self._first_step + batches + 1, step)
        return NotFinite(f"The loss is not a number any more from step {first} on", step=first)

    def _metrics(self, logs):
        penalties = sum(float(penalty) for penalty in self.model.losses)
        logs = {name: value for name, value in logs.items() if name != GRADIENT_NORM}
        return exact_losses(logs, weights=self.loss_weights, penalties=penalties)
