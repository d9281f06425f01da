"""The loop of every training run: restores, fits, evaluates, checkpoints, keeps the best, logs."""

import contextlib
import math

import keras

from keras_bert.base.signals import stop_later
from keras_bert.training.checkpoint import BestModel, Checkpoint, evaluations_since_best
from keras_bert.training.monitoring.history import History, NotFinite, save_batch
from keras_bert.training.monitoring.progress import Progress
from keras_bert.training.monitoring.tensorboard import TensorBoardHistory
from keras_bert.training.settings import KEEP_CHECKPOINTS
from keras_bert.training.strategies.devices import Devices


class BatchSource:
    """What a run trains on and evaluates on; made when the run is known not to be over.

    Attributes:
        tokens_a_step: tokens in a step, padding not counted (an average will do), or None.
        batches_a_step: batches whose gradients make a step.
        flops_a_token: floating-point operations of training a token, or None: not known.
    """

    tokens_a_step = None
    flops_a_token = None
    batches_a_step = 1

    def at(self, step):
        """The feed of the phase that a step (from 0) is in."""
        return self

    def training(self, first_step):
        """The dataset of all batches from that of step `first_step` (from 0) on."""
        raise NotImplementedError

    def evaluation(self):
        """The dataset of held-out batches, or None."""
        return None

    def waited(self):
        """Seconds for which steps have waited for their batches so far, or None: not known."""
        return None

    def examples(self):
        """What the model says in some places of held-out rows, for a person; see `MaskExamples`."""
        return []

    def measures(self, step):
        """Figures on held-out data by name, after `step` steps, beside those of `evaluation`."""
        return {}


def train(
    model,
    run,
    feed,
    plan,
    *,
    task,
    best=None,
    patience=None,
    evaluate_first=False,
    constants=None,
    keep_checkpoints=KEEP_CHECKPOINTS,
    watchers=(),
    report=None,
):
    """Trains from the latest checkpoint (or from nothing) to the last step.

    No value is fetched from the device but at the end of an entry. There, too, a run ends that
    Ctrl-C or SIGTERM stops, with a checkpoint; a second one ends it at once.

    Args:
        model: what is trained, compiled: the task, or the head alone that `freeze` gives.
        run: the `RunFolder`.
        feed: the `BatchSource`.
        plan: the `Plan`.
        task: the task that `model` is, or is the head of.
        best: the file that the best weights so far are kept in, or None.
        patience: end after so many evaluations in a row without a better `task.METRIC`; None is
            never. The plan has a checkpoint after each evaluation then.
        evaluate_first: evaluate before the first step, too.
        constants: level lines in TensorBoard (see `TensorBoardHistory`).
        keep_checkpoints: how many checkpoints stay, the newest ones.
        watchers: further callbacks, of the chief alone, which write into the run's logs.
        report: a function that is told in a line where a checkpoint is broken.

    Returns:
        The entries of the whole run's curve (see `History`).

    Raises `NotFinite` where the loss or the weights are not numbers any more; the batch is written
    into the run's folder, where the step is known.
    """
    devices = Devices()
    checkpoint = None
    if devices.is_chief:
        checkpoint = Checkpoint(run.checkpoints, model, keep=keep_checkpoints)
    first_step, records = devices.restored(checkpoint, model, report) or (0, [])
    if first_step == plan.steps or _is_out_of_patience(records, task, patience):
        return records  # killed after the last checkpoint
    matrix_rate = None
    if feed.at(first_step).flops_a_token is not None:
        matrix_rate = devices.matrix_rate(task.encoder.compute_dtype)
    history = History(
        plan,
        records=records,
        loss_weights=task.default_loss_weights(),
        matrix_rate=matrix_rate,
    )
    progress = Progress(history, first_step=first_step, names=task.SHOWN)
    callbacks = [_Measures(feed, plan), history, progress]
    if devices.is_chief:
        outputs = list(task.output)
        callbacks.append(TensorBoardHistory(run.logs, history, constants or {}, outputs=outputs))
        callbacks += watchers
        if best is not None:
            callbacks.append(BestModel(task, best, history))
    if patience is not None:
        callbacks.append(_Patience(task, history, patience))
    training = feed.at(first_step).training(first_step)
    devices.prepare(model, training)
    devices.separate_seeds(model)
    devices.renew_steps(model)
    if evaluate_first and not records:
        _evaluate_first(model, feed, history, devices)
    evaluated = [n + 1 for n in range(plan.records) if plan.evaluates(plan.step_of(n))]
    saved = _batch_is_saved(run, feed) if devices.is_chief else contextlib.nullcontext()
    with contextlib.closing(progress), stop_later() as stop_request, saved:
        checkpoints = _Checkpoints(checkpoint, history, plan, stop_request, devices)
        # The end first: whoever stops the run at the end of an entry comes after it.
        callbacks = [_End(plan, history, progress, stop_request), *callbacks, checkpoints]
        told = StepCallbacks(callbacks, model=model, batches_a_step=feed.batches_a_step)
        for begin, end in plan.phases_from(first_step):
            history.feed = feed.at(begin)
            if begin > first_step:
                training = history.feed.training(begin)
                devices.renew_steps(model)  # shapes are those of the phase
            evaluation = history.feed.evaluation()
            model.fit(
                devices.distributed(training),
                steps_per_epoch=plan.record * feed.batches_a_step,
                initial_epoch=plan.record_at(begin),
                epochs=plan.record_at(end),
                validation_data=devices.distributed(evaluation),
                validation_steps=devices.batches_in(evaluation),
                validation_freq=evaluated,
                callbacks=told,
                shuffle=False,
                verbose=0,
            )
            if checkpoints.are_over or _is_out_of_patience(records, task, patience):
                break
        told.end()
    stop_request.raise_if_requested()
    return records


def _evaluate_first(model, feed, history, devices):
    """Adds what an evaluation gives before the first step to the curve."""
    evaluation = feed.at(0).evaluation()
    if evaluation is not None:
        history.set_model(model)
        history.feed = feed.at(0)
        rows, batches = devices.distributed(evaluation), devices.batches_in(evaluation)
        history.start(model.evaluate(rows, steps=batches, return_dict=True, verbose=0))


@contextlib.contextmanager
def _batch_is_saved(run, feed):
    """Where the body comes to a `NotFinite` of a step, its batch is written into the run's folder.

    What a step trains on is a function of the step, so that it can be made again.
    """
    try:
        yield
    except NotFinite as error:
        if error.step is None:
            raise
        batches = feed.at(error.step - 1).training(error.step - 1).take(feed.batches_a_step)
        save_batch(run.bad_batch, batches.as_numpy_iterator())
        raise error.with_batch(run.bad_batch) from None


class StepCallbacks(keras.callbacks.CallbackList):
    """Callbacks that are told of a run's steps, without their figures.

    Keras fetches them from the device for every step, which then waits for it. It also tells of
    batches, of which `batches_a_step` make a step, and of the begin and the end of every `fit`, of
    which a run has one a phase; `end` is to be called after the last.
    """

    def __init__(self, callbacks, *, model, batches_a_step):
        super().__init__(callbacks, add_history=True, model=model)
        self._batches_a_step = batches_a_step
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
        steps, rest = divmod(batch + 1, self._batches_a_step)
        if not rest:
            super().on_train_batch_end(steps - 1)

    def on_test_batch_end(self, batch, logs=None):
        super().on_test_batch_end(batch)


class _Measures(keras.callbacks.Callback):
    """Adds the feed's own measures to what Keras says of an evaluation.

    Not where training has come to NaN, which the curve has a word on.
    """

    def __init__(self, feed, plan):
        super().__init__()
        self.feed = feed
        self.plan = plan

    def on_epoch_end(self, epoch, logs=None):
        step = self.plan.step_of(epoch)
        if self.plan.evaluates(step) and math.isfinite(logs["loss"]):
            logs.update({f"val_{name}": v for name, v in self.feed.measures(step).items()})


class _Patience(keras.callbacks.Callback):
    """Ends the run after `patience` evaluations without a better figure.

    It keeps no count of its own: the curve's entries, which a checkpoint holds, are all it needs.
    """

    def __init__(self, task, history, patience):
        super().__init__()
        self.task = task
        self.history = history
        self.patience = patience

    def on_epoch_end(self, epoch, logs=None):
        if _is_out_of_patience(self.history.records, self.task, self.patience):
            self.model.stop_training = True


def _is_out_of_patience(records, task, patience):
    return patience is not None and evaluations_since_best(records, task.METRIC) >= patience


class _Checkpoints(keras.callbacks.Callback):
    """Writes the checkpoints of the plan, and one where the run is to stop.

    Any end of an entry will do: all that the next step depends on is in the variables, the step and
    the entries of the curve. In the middle of an entry it would also be the figures so far.

    `are_over` is whether the run stops here, as all workers have agreed at the end of the entry. A
    request that one of them gets after that waits for the next entry, or all would wait for it.
    """

    def __init__(self, checkpoint, history, plan, stop_request, devices):
        super().__init__()
        self.are_over = False
        self.checkpoint = checkpoint
        self.history = history
        self.plan = plan
        self.stop_request = stop_request
        self.devices = devices

    def on_epoch_end(self, epoch, logs=None):
        step = self.plan.step_of(epoch)
        self.are_over = self.devices.any(bool(self.stop_request))
        if self.devices.is_chief and (self.plan.checkpoints(step) or self.are_over):
            self.checkpoint.save(step, self.history.records)
        if self.are_over:
            self.stop_request.request()
            self.model.stop_training = True


class _End(keras.callbacks.Callback):
    """Ends an entry after its last step: it may be shorter than what Keras takes for an epoch.

    Where somebody wishes the run to stop, it says when that will be.
    """

    def __init__(self, plan, history, progress, stop_request):
        super().__init__()
        self.plan = plan
        self.history = history
        self.progress = progress
        self.stop_request = stop_request
        self._has_said = False

    def on_epoch_begin(self, epoch, logs=None):
        self.first_step = self.history.step
        self.last_step = self.plan.step_of(epoch)

    def on_train_batch_end(self, batch, logs=None):
        step = self.first_step + batch + 1
        if step == self.last_step and step - self.first_step < self.plan.record:
            self.model.stop_training = True  # Keras has no other way to end an epoch
        if self.stop_request and not self._has_said and step < self.last_step:
            self._has_said = True
            self.progress.say(f"Stopping after step {self.last_step}; once more stops at once.")

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = False
