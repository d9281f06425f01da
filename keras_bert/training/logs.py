"""Logs of a run: a record of metrics every few steps, TensorBoard, and a bar."""

import math
import shutil
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from keras_bert.base.errors import InputError
from keras_bert.base.files import new_file
from keras_bert.base.formatting import percent
from keras_bert.base.progress import ProgressBar
from keras_bert.optimizers.optimizer import GRADIENT_NORM
from keras_bert.programs import has_accelerator, wait_for
from keras_bert.tasks.pretraining.metrics import FINITE_BATCHES, exact_losses
from keras_bert.text.vocabulary import MASK


class NotFinite(InputError):
    """A loss, or weights, that are infinite or NaN.

    Attributes:
        step: the step (from 1) of the batch, or None if it is not known.
    """

    def __init__(self, problem, *, step=None):
        super().__init__(f"{problem}. Try a lower learning rate or a longer warm-up.")
        self.problem = problem
        self.step = step

    def with_batch(self, path):
        """The same error, with the path of the batch."""
        return NotFinite(f"{self.problem}. The batch is saved in {path}", step=self.step)


def save_batch(path, batches):
    """Writes batches that `fit` takes as arrays by name into an .npz file, concatenated.

    Labels are `label/OUTPUT`, and their weights `weight/OUTPUT`.
    """
    parts = [
        {
            **inputs,
            **{f"label/{name}": label for name, label in labels.items()},
            **{f"weight/{name}": weight for name, weight in weights.items()},
        }
        for inputs, labels, weights in batches
    ]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    with new_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


class History(keras.callbacks.Callback):
    """Collects the records of a run in which each Keras epoch is a log step.

    `records` is a list of JSON-like dictionaries:

    - `step`: optimizer steps done
    - `tokens`: trained on so far without padding; an average, None if it is not known
    - `seconds`: since the run began, including evaluations and former sessions
    - `train`: the metrics over the steps since the last record; a mean over nothing is left out
    - `eval`: the metrics on held-out data, if there was an evaluation after this step
    - `examples`: with `eval`, the source's `examples`, if there are any
    - `learning_rate`: of the next step
    - `gradient_norm`: of all gradients of a step before clipping, the mean over the steps since the
      last record, if it is measured
    - `tokens_per_second`: of training alone; None if too little was timed (the first step of a
      session, and of a phase, compiles and is left out)
    - `input_wait`: the fraction of that time in which a step waited for its batch, if known
    - `mfu`: model FLOPs utilization, the FLOP/s of the model's formula as a fraction of
      `matrix_rate`, if both are known

    The first record of a run may be of step 0, with an evaluation alone.

    Args:
        plan: the `Plan` of the run.
        records: those of former sessions; the list is extended.
        loss_weights: the weight of each output's loss in their sum, by the output's name; 1 by
            default.
        matrix_rate: FLOP/s of the devices in large matrix products, or None.

    `source` is to be set before `fit`: the `BatchSource` of the phase.

    Raises `NotFinite` at the end of a log step whose loss is infinite or NaN.
    """

    def __init__(self, plan, *, records, loss_weights=None, matrix_rate=None):
        super().__init__()
        self.plan = plan
        self.source = None
        self.records = records
        self.loss_weights = loss_weights or {}
        self.matrix_rate = matrix_rate
        self._seconds_before = records[-1]["seconds"] if records else 0.0
        self._session_began = time.perf_counter()

    @property
    def source(self):
        """The `BatchSource` of the phase."""
        return self._source

    @source.setter
    def source(self, source):
        self._source, self._warm = source, False  # the first step of a phase compiles

    @property
    def step(self):
        """Steps done at the end of the last log step."""
        return self.records[-1]["step"] if self.records else 0

    @property
    def seconds(self):
        """Seconds since the run began, including former sessions."""
        return self._seconds_before + time.perf_counter() - self._session_began

    def start(self, logs):
        """Adds the record of step 0, with the logs of an evaluation."""
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
        # Not that of the plan: an earlier version may have stopped within a log step.
        self._first_step = self.step
        self._steps = self.plan.step_of(epoch) - self._first_step
        self._timed_from = self._now(0) if self._warm else None

    def on_train_batch_end(self, batch, logs=None):
        done = batch + 1
        if done >= self._steps:
            wait_for(self.model)
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
        """(steps done in the log step, time, seconds waited for batches or None)."""
        return step, time.perf_counter(), self.source.waited()

    def _speed(self):
        (first, begun, _), (last, ended, _) = self._timed_from, self._timed_until
        if last == first:
            return {"tokens_per_second": None}
        seconds, tokens = ended - begun, self.source.tokens_per_step
        speed = None if tokens is None else round((last - first) * tokens / seconds, 1)
        measured = {"tokens_per_second": speed}
        waited = [moment[2] for moment in (self._timed_from, self._timed_until)]
        if None not in waited:
            measured["input_wait"] = round((waited[1] - waited[0]) / seconds, 4)
        if None not in (speed, self.source.flops_per_token, self.matrix_rate):
            fraction = speed * self.source.flops_per_token / self.matrix_rate
            measured["mfu"] = round(fraction, 4)
        return measured

    def _held_out(self, logs):
        """The part of a record on an evaluation."""
        examples = self.source.examples()
        return {"eval": self._metrics(logs), **({"examples": examples} if examples else {})}

    def _tokens(self):
        """Tokens at the end of the log step."""
        before = self.records[-1].get("tokens") if self.records else 0
        if before is None or self.source.tokens_per_step is None:
            return None
        return before + round(self._steps * self.source.tokens_per_step)

    def _not_finite(self, logs, step):
        if FINITE_BATCHES not in logs:
            return NotFinite(
                f"The loss became infinite or NaN between step {self._first_step} and {step}"
            )
        # If every batch is finite, their sum is not.
        batches = int(logs[FINITE_BATCHES]) // self.source.batches_per_step
        first = min(self._first_step + batches + 1, step)
        return NotFinite(f"The loss became infinite or NaN in step {first}", step=first)

    def _metrics(self, logs):
        # Not `model.losses`, where a loss that a layer adds in a graph is a symbol.
        penalties = sum(
            float(v.regularizer(v)) for v in self.model.trainable_variables if v.regularizer
        )
        logs = {name: value for name, value in logs.items() if name != GRADIENT_NORM}
        return exact_losses(logs, weights=self.loss_weights, penalties=penalties)


# Metrics of a record that are of the run, not of the task.
_RUN_METRICS = ("learning_rate", GRADIENT_NORM, "tokens_per_second", "input_wait", "mfu")


class TensorBoardHistory(keras.callbacks.Callback):
    """Writes the records of a `History` under `folder`, in runs that share their charts.

    `folder/train` and `folder/eval` have each metric under the same tag (`masked_lm/loss`), so that
    both are lines of one chart; `constants` maps the name of a further run to {tag: value}, drawn
    as horizontal lines (`{"unigram_entropy": {"masked_lm/loss": 6.8}}`). Every metric is there over
    the steps and, in charts of its own (`over_tokens/masked_lm/loss`), over the tokens, if these
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


_SECONDS_BETWEEN_LINES = 10


class Progress(keras.callbacks.Callback):
    """A bar on standard error with step, losses, accuracies, tokens/s and the remaining time.

    If standard error is neither a terminal nor a notebook (a log file, CI), it writes a plain
    line every few seconds instead, and one for each evaluation. `history` must come before this
    callback in `fit`'s list.

    Args:
        history: the `History`.
        first_step: steps done in former sessions.
        names: {metric: its display name}, in the order in which they are shown.
        may_stop: whether the run may end before its last epoch.
    """

    def __init__(self, history, *, first_step, names, may_stop=False):
        super().__init__()
        self.may_stop = may_stop
        self._is_announced = history.plan.epochs is None
        self.history = history
        self.first_step = first_step
        self.names = names
        self._bar = None
        self._first_record = None
        self._line_at = -math.inf

    def on_train_begin(self, logs=None):
        self._bar = ProgressBar(
            "training",
            unit="steps",
            total=self.history.plan.steps,
            completed=self.first_step,
        )

    def on_epoch_begin(self, epoch, logs=None):
        self._first_step = self.history.step

    def on_train_batch_end(self, batch, logs=None):
        if self._bar.is_drawn:
            self._bar.update(self._first_step + batch + 1)

    def on_epoch_end(self, epoch, logs=None):
        record, last_step = self.history.records[-1], self.history.plan.steps
        # Not from the start: the first step compiles, and would make the remaining time too long.
        self._first_record = self._first_record or record
        if self._is_to_announce(record):
            self._is_announced = True
            self.write(self._announcement(record))
        train = f"{describe(record['train'], self.names)}{_speed(record)}"
        line = f"{self.history.plan.described(record['step'])}:"
        evaluated = f"eval: {describe(record['eval'], self.names)}" if "eval" in record else ""
        if self._bar.is_drawn:
            self._bar.update(record["step"], note=train)
            if evaluated:
                self.write(f"{line} {evaluated}")
            return
        is_due = record["seconds"] - self._line_at >= _SECONDS_BETWEEN_LINES
        if is_due or evaluated or record["step"] == last_step:
            self._line_at = record["seconds"]
            left = self._remaining(record)
            self.write(f"{line} {train}{left}{evaluated and f'; {evaluated}'}")

    def on_train_end(self, logs=None):
        self.close()

    def write(self, line):
        """Writes a line that stays."""
        self._bar.write(line)

    def close(self):
        """Ends the bar; also to be called when `fit` raises an error, which calls no callback."""
        if self._bar is not None:
            self._bar.close()

    def _is_to_announce(self, record):
        """Whether enough is timed to say how long an epoch takes: a quarter, or an evaluation."""
        if self._is_announced or record is self._first_record:
            return False
        timed = record["step"] - self._first_record["step"]
        return 4 * timed >= self.history.plan.evaluate_every or "eval" in record

    def _announcement(self, record):
        """`Up to 23 epochs of about 7 s each.`, from the records of this session."""
        plan, before = self.history.plan, self._first_record
        steps, seconds = (record[name] - before[name] for name in ("step", "seconds"))
        seconds *= plan.evaluate_every / steps
        duration = f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds / 60:.1f} minutes"
        done = self.first_step // plan.evaluate_every
        epochs, more = plan.epochs - done, " more" if done else ""
        if epochs == 1:
            return f"1{more} epoch of about {duration}."
        up_to = "Up to " if self.may_stop else ""
        return f"{up_to}{epochs}{more} epochs of about {duration} each."

    def _remaining(self, record):
        """`, 1:02:03 left`, as far as it is known."""
        timed = record["step"] - self._first_record["step"]
        left = self.history.plan.steps - record["step"]
        if not timed or not left:
            return ""
        seconds = round((record["seconds"] - self._first_record["seconds"]) / timed * left)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        duration = f"{hours}:{minutes:02d}" if hours else minutes
        return f", {duration}:{seconds:02d} left"


def describe(metrics, names):
    """`{"loss": 1.5, "accuracy": 0.25}` as "loss 1.500, accuracy 25.0 %", in the order of `names`.

    Metrics whose name ends in "accuracy" are percentages.
    """
    return ", ".join(
        f"{shown} {percent(metrics[name])}"
        if name.endswith("accuracy")
        else f"{shown} {metrics[name]:.3f}"
        for name, shown in names.items()
        if name in metrics
    )


def _speed(record):
    """`, 8,412 tokens/s (MFU 31.0 %), input wait 0.4 %`, as far as it is known.

    The MFU of a CPU is left out: what else the machine does changes its rate.
    """
    text = ""
    if record["tokens_per_second"]:
        text += f", {record['tokens_per_second']:,.0f} tokens/s"
        is_known = "mfu" in record and has_accelerator()
        text += f" (MFU {percent(record['mfu'])})" if is_known else ""
    if record.get("input_wait") is not None:
        text += f", input wait {percent(record['input_wait'])}"
    return text
