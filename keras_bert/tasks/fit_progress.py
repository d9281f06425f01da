"""Additions of `fit` to Keras's logs: tokens/s, and the task's own metrics of validation data."""

import time

import keras

from keras_bert.tasks import imported


class FitProgress(keras.callbacks.Callback):
    """Adds tokens/s to the logs of every step, and the task's own metrics to those of an epoch.

    The `official_metrics` that are numbers are added as `val_…` if Keras does not compute them:
    they take the task's `decode`, and another pass over the dev examples.

    Args:
        task: the `Task`.
        tokens_per_step: tokens in a batch on average; None adds no tokens/s.
        dev_examples: the `TokenizedExamples` that are evaluated on, or None.

    Attributes:
        official_metrics: those of the last epoch, or None.
    """

    official_metrics = None

    def __init__(self, task, *, tokens_per_step, dev_examples):
        super().__init__()
        self.task = task
        self.tokens_per_step = tokens_per_step
        self._rate = None
        self.dev_examples = dev_examples
        self._inference = None

    @property
    def async_safe(self):
        """True: on JAX Keras calls it in other threads, and no step waits for an earlier one."""
        return True

    def on_epoch_begin(self, epoch, logs=None):
        self._began = None

    def on_train_batch_end(self, batch, logs=None):
        if self.tokens_per_step is None or logs is None:
            return
        if self._began is None:  # the first step compiles, and is left out
            self._began = batch, time.perf_counter()
            return
        first, when = self._began
        if batch <= first:  # called after a later one
            return
        steps_per_second = (batch - first) / (time.perf_counter() - when)
        logs["tokens/s"] = self._rate = round(steps_per_second * self.tokens_per_step)

    def on_epoch_end(self, epoch, logs=None):
        if self._rate is not None:
            logs["tokens/s"] = self._rate
        if self.dev_examples is None or "val_loss" not in logs:
            return
        if self._inference is None:
            self._inference = imported(self.task.INFERENCE)(self.task, batch_size=32)
        predictions = self._inference.predict_sequences(self.dev_examples)
        examples = self.dev_examples.examples
        self.official_metrics = self.task.official_metrics(predictions, examples)
        for name, metric in self.official_metrics.items():
            if isinstance(metric, float):  # not a number of examples
                logs.setdefault(f"val_{name}", metric)


def with_progress(task, options, *, train, dev):
    """-> (the options of `fit` with a `FitProgress` among the callbacks, that or None).

    `train` and `dev` are the `DatasetInfo` of the batches, or None for others.

    A `CallbackList` stays as it is. Keras must not shuffle what `dataset` has shuffled: it would
    not, but warn about it.
    """
    callbacks = options.get("callbacks")
    if train is not None:
        options = {"shuffle": False, **options}
    shows_bar = options.get("verbose", "auto") != 0
    if isinstance(callbacks, keras.callbacks.CallbackList) or (
        dev is None and not (train and shows_bar)
    ):
        return options, None
    progress = FitProgress(
        task,
        tokens_per_step=train.tokens_per_step if train and shows_bar else None,
        dev_examples=dev and dev.sequences,
    )
    callbacks = [] if callbacks is None else callbacks
    callbacks = list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
    # First, so that early stopping and best weights by the task's own metrics find them.
    return {**options, "callbacks": [progress, *callbacks]}, progress
