"""What a person sees while a model trains: of a run, and of a task's own `fit`."""

import math
import time

import keras

from keras_bert.base.formatting import percent
from keras_bert.base.progress import ProgressBar
from keras_bert.tasks.fitting import dataset_info

_SECONDS_BETWEEN_LINES = 10


class Progress(keras.callbacks.Callback):
    """A bar on standard error with step, losses, accuracies, tokens/s and the remaining time.

    Where standard error is neither a terminal nor a notebook (a log file, CI), it writes a plain
    line every few seconds instead, and one for each evaluation. `history` must come before this
    callback in `fit`'s list.

    Args:
        history: the `History`.
        first_step: steps done in former sessions.
        names: {metric: its display name}, in the order in which they are shown.
    """

    def __init__(self, history, *, first_step, names):
        super().__init__()
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
        train = f"{describe(record['train'], self.names)}{_speed(record)}"
        line = f"step {record['step']}/{last_step}:"
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
        """Ends the bar; also to be called where `fit` raises an error, which calls no callback."""
        if self._bar is not None:
            self._bar.close()

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
    """`, 8,412 tokens/s, input wait 0.4 %`, as far as it is known."""
    text = ""
    if record["tokens_per_second"]:
        text += f", {record['tokens_per_second']:,.0f} tokens/s"
    if record.get("input_wait") is not None:
        text += f", input wait {percent(record['input_wait'])}"
    return text


class FitProgress(keras.callbacks.Callback):
    """Adds tokens/s to the logs of every step, and the task's own metric to those of an epoch.

    The task's metric (`Task.METRIC`) is added as `val_METRIC` where Keras does not compute it: it
    takes the task's `decode` and `official_metrics`, and another pass over the dev examples.

    Args:
        task: the `Task`.
        tokens_per_step: tokens in a batch on average; None adds no tokens/s.
        dev_examples: the `TokenizedExamples` that are evaluated on, or None.
    """

    def __init__(self, task, *, tokens_per_step, dev_examples):
        super().__init__()
        self.task = task
        self.tokens_per_step = tokens_per_step
        self._rate = None
        self.dev_examples = dev_examples
        self._inference = None

    def on_epoch_begin(self, epoch, logs=None):
        self._began = None

    def on_train_batch_end(self, batch, logs=None):
        if self.tokens_per_step is None or logs is None:
            return
        if self._began is None:  # the first step compiles, and is left out
            self._began = batch, time.perf_counter()
            return
        first, when = self._began
        steps_per_second = (batch - first) / (time.perf_counter() - when)
        logs["tokens/s"] = self._rate = round(steps_per_second * self.tokens_per_step)

    def on_epoch_end(self, epoch, logs=None):
        if self._rate is not None:
            logs["tokens/s"] = self._rate
        metric = self.task.METRIC
        if self.dev_examples is None or metric is None or f"val_{metric}" in logs:
            return
        from keras_bert.inference.predict import Inference  # needs TensorFlow, which `fit` does not

        if self._inference is None:
            self._inference = Inference(self.task, batch_size=32)
        predictions = self._inference.of_sequences(self.dev_examples)
        metrics = self.task.official_metrics(predictions, self.dev_examples.examples)
        if metric in metrics:
            logs[f"val_{metric}"] = metrics[metric]


def with_progress(task, x, options):
    """The options of `fit` with a `FitProgress` among the callbacks, where a bar is shown.

    A `CallbackList` stays as it is. Keras must not shuffle what `dataset` has shuffled: it would
    not, but warn about it.
    """
    callbacks = options.get("callbacks")
    train, dev = dataset_info(x), dataset_info(options.get("validation_data"))
    if train is not None:
        options = {"shuffle": False, **options}
    if options.get("verbose", "auto") == 0 or isinstance(callbacks, keras.callbacks.CallbackList):
        return options
    if train is None and dev is None:
        return options
    progress = FitProgress(
        task,
        tokens_per_step=train and train.tokens_per_step,
        dev_examples=dev and dev.sequences,
    )
    callbacks = [] if callbacks is None else callbacks
    callbacks = list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
    # First, so that early stopping and best weights by the task's own metric find it.
    return {**options, "callbacks": [progress, *callbacks]}
