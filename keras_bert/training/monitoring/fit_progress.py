"""What Keras's own progress bar shows of a task beside its losses and metrics."""

import time

import keras

from keras_bert.tasks.task import dataset_info


class FitProgress(keras.callbacks.Callback):
    """Adds tokens/s to the figures of every step, and the task's own figure to those of an epoch.

    The own figure (`Task.METRIC`) is added as `val_FIGURE` where Keras does not compute it: such
    figures need the task's `decode` and `official_metrics`, and one more pass over the dev rows.

    Args:
        task: the `Task`.
        tokens_a_step: tokens in a batch on average, or None: then there are no tokens/s.
        dev_examples: the `TokenizedExamples` that is evaluated on, or None.
    """

    def __init__(self, task, *, tokens_a_step, dev_examples):
        super().__init__()
        self.task = task
        self.tokens_a_step = tokens_a_step
        self._rate = None
        self.dev_examples = dev_examples
        self._inference = None

    def on_epoch_begin(self, epoch, logs=None):
        self._began = None

    def on_train_batch_end(self, batch, logs=None):
        if self.tokens_a_step is None or logs is None:
            return
        if self._began is None:  # the first step of all compiles, and is left out
            self._began = batch, time.perf_counter()
            return
        first, when = self._began
        steps_a_second = (batch - first) / (time.perf_counter() - when)
        logs["tokens/s"] = self._rate = round(steps_a_second * self.tokens_a_step)

    def on_epoch_end(self, epoch, logs=None):
        if self._rate is not None:
            logs["tokens/s"] = self._rate
        metric = self.task.METRIC
        if self.dev_examples is None or metric is None or f"val_{metric}" in logs:
            return
        metrics = self.task.official_metrics(self._answers(), self.dev_examples.examples)
        if metric in metrics:
            logs[f"val_{metric}"] = metrics[metric]

    def _answers(self):
        from keras_bert.inference.answers import Inference  # needs TensorFlow, which `fit` does not

        if self._inference is None:
            self._inference = Inference(self.task, batch_size=32)
        return self._inference.of_sequences(self.dev_examples)


def with_progress(task, x, options):
    """The options of `fit` with a `FitProgress` among the callbacks, where a bar is shown.

    A list of callbacks that somebody has made into one keeps its own. Keras is told not to shuffle
    what `dataset` has shuffled: it would not, but warn that it does not.
    """
    callbacks = options.get("callbacks")
    trained, dev = dataset_info(x), dataset_info(options.get("validation_data"))
    if trained is not None:
        options = {"shuffle": False, **options}
    if options.get("verbose", "auto") == 0 or isinstance(callbacks, keras.callbacks.CallbackList):
        return options
    if trained is None and dev is None:
        return options
    progress = FitProgress(
        task,
        tokens_a_step=trained and trained.tokens_per_step,
        dev_examples=dev and dev.sequences,
    )
    given = [] if callbacks is None else callbacks
    given = list(given) if isinstance(given, list | tuple) else [given]
    # First, so that whoever stops early or keeps the best by the task's own figure finds it.
    return {**options, "callbacks": [progress, *given]}
