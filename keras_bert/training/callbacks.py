"""The callbacks of every run: what happens at the end of the log steps, and a user's own."""

import importlib
import math
import os
import sys

import keras

from keras_bert.base.errors import InputError


class EvaluatedRecords(list):
    """The numbers, from 1, of the log steps that end with an evaluation: a list for Keras."""

    def __init__(self, plan):
        super().__init__()
        self._plan = plan

    def __contains__(self, number):
        return self._plan.evaluates(self._plan.step_of(number - 1))


class StepCallbacks(keras.callbacks.CallbackList):
    """Callbacks that are called per step of a run, without logs.

    Keras fetches the logs from the device for every step, which then waits for it. It also calls
    per batch, of which `batches_per_step` make a step, and at the begin and end of every `fit`, of
    which a run has one per phase; `end` is to be called after the last.
    """

    def __init__(self, callbacks, *, model, batches_per_step, **params):
        super().__init__(callbacks, add_history=True, model=model, **params)
        self._batches_per_step = batches_per_step
        self._has_begun = False

    def on_train_begin(self, logs=None):
        if not self._has_begun:
            super().on_train_begin(logs)
        self._has_begun = True

    def on_train_end(self, logs=None):
        pass

    def end(self):
        super().on_train_end()

    def on_train_batch_end(self, batch, logs=None):
        steps, rest = divmod(batch + 1, self._batches_per_step)
        if not rest:
            super().on_train_batch_end(steps - 1)

    def on_test_batch_end(self, batch, logs=None):
        super().on_test_batch_end(batch)


class HeldOutMetrics(keras.callbacks.Callback):
    """Adds the `held_out_metrics` of the source to Keras's logs of an evaluation.

    Not if the loss is NaN, for which `History` raises an error.
    """

    def __init__(self, source, plan):
        super().__init__()
        self.source = source
        self.plan = plan

    def on_epoch_end(self, epoch, logs=None):
        step = self.plan.step_of(epoch)
        if self.plan.evaluates(step) and math.isfinite(logs["loss"]):
            metrics = self.source.held_out_metrics(step)
            logs.update({f"val_{name}": value for name, value in metrics.items()})


class EndIfOver(keras.callbacks.Callback):
    """Ends the run when a part says so, as a resumed run finds in its checkpoint."""

    def __init__(self, parts, history):
        super().__init__()
        self.parts = parts
        self.history = history

    def on_epoch_end(self, epoch, logs=None):
        if any(part.is_over(self.history.records) for part in self.parts):
            self.model.stop_training = True


class Checkpoints(keras.callbacks.Callback):
    """Writes the checkpoints of the plan, and one when the run is to stop.

    A run can stop at the end of any log step: the variables, the step and the records are
    everything that the next step depends on. Within one it would also be the metrics so far.

    `is_stopping`: the run stops here, as all workers have agreed at the end of the log step. A
    request that a worker receives after that waits for the next one.
    """

    def __init__(self, checkpoint, history, plan, stop_request, devices):
        super().__init__()
        self.is_stopping = False
        self.checkpoint = checkpoint
        self.history = history
        self.plan = plan
        self.stop_request = stop_request
        self.devices = devices

    def on_epoch_end(self, epoch, logs=None):
        step = self.plan.step_of(epoch)
        self.is_stopping = self.devices.any(bool(self.stop_request))
        if self.devices.is_chief and (self.plan.checkpoints(step) or self.is_stopping):
            self.checkpoint.save(step, self.history.records)
        if self.is_stopping:
            self.stop_request.request()
            self.model.stop_training = True


class EndOfRecord(keras.callbacks.Callback):
    """Ends a log step after its last step: it may be shorter than Keras's epoch.

    When the run is to stop, it reports at which step.
    """

    def __init__(self, plan, history, progress, stop_request):
        super().__init__()
        self.plan = plan
        self.history = history
        self.progress = progress
        self.stop_request = stop_request
        self._has_reported = False

    def on_epoch_begin(self, epoch, logs=None):
        self.first_step = self.history.step
        self.last_step = self.plan.step_of(epoch)

    def on_train_batch_end(self, batch, logs=None):
        step = self.first_step + batch + 1
        if step == self.last_step and step - self.first_step < self.plan.record:
            self.model.stop_training = True  # Keras has no other way to end an epoch
        if self.stop_request and not self._has_reported and step < self.last_step:
            self._has_reported = True
            self.progress.write(
                f"Stopping after step {self.last_step}. Press Ctrl-C again to stop at once."
            )

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = False


def check_callbacks(callbacks):
    """Raises `InputError` for callbacks that `make_user_callbacks` cannot make."""
    for callback in callbacks or ():
        if isinstance(callback, str):
            _class_of(callback)
        elif not isinstance(callback, keras.callbacks.Callback):
            raise InputError.naming(
                "{callbacks} must be names, MODULE:CLASS, or objects of "
                "`keras.callbacks.Callback`. Received: {!r}.",
                callback,
            )


def make_user_callbacks(callbacks, history):
    """The callbacks of the setting `callbacks` for `fit`, a list.

    At the end of a log step they get its record (see `History`) as logs: the training metrics by
    their names, those on held-out data as `val_NAME`, and the other numbers, `step` among them.

    Args:
        callbacks: objects, and names of classes, of which one is made without arguments.
        history: the `History` of the run, which comes before them.
    """
    made = [_class_of(c)() if isinstance(c, str) else c for c in callbacks or ()]
    return [RecordAsLogs(history), *made] if made else []


def _class_of(name):
    """The class that MODULE:CLASS names, in the working directory or an installed package."""
    module, _, attribute = name.partition(":")
    folder = os.getcwd()
    sys.path.insert(0, folder)  # a console script has its own folder there
    try:
        imported = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise InputError(
            f"The callback {name} cannot be imported: {error}. Expected MODULE:CLASS, with a "
            "module in the working directory or in an installed package."
        ) from error
    finally:
        sys.path.remove(folder)
    if not isinstance(imported, type) or not issubclass(imported, keras.callbacks.Callback):
        raise InputError(
            f"The callback {name} is not a class of `keras.callbacks.Callback`. Received: "
            f"{imported!r}."
        )
    return imported


class AgreeOnStop(keras.callbacks.Callback):
    """Ends the run of all workers when a user's callback, which the chief calls, ends it."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def on_epoch_end(self, epoch, logs=None):
        self.run.was_stopped = self.run.devices.any(self.model.stop_training)
        self.model.stop_training = self.run.was_stopped


class RecordAsLogs(keras.callbacks.Callback):
    """Puts the record of a log step in place of Keras's logs, which have sums for some metrics."""

    def __init__(self, history):
        super().__init__()
        self.history = history

    def on_epoch_end(self, epoch, logs=None):
        record = self.history.records[-1]
        numbers = {name: x for name, x in record.items() if isinstance(x, int | float)}
        held_out = {f"val_{name}": x for name, x in record.get("eval", {}).items()}
        logs.clear()
        logs.update({**record["train"], **held_out, **numbers})
