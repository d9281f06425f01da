"""The loop of every training run: restores, fits, evaluates, checkpoints, keeps the best, logs."""

import contextlib
import math

import keras

from keras_bert.stopping import stop_later
from keras_bert.train.best_model import BestModel, evaluations_since_best
from keras_bert.train.checkpoint import Checkpoint
from keras_bert.train.curve import Curve
from keras_bert.train.devices import Devices
from keras_bert.train.progress import Progress
from keras_bert.train.tensorboard import TensorBoardCurve


class Feed:
    """What a run trains on and evaluates on; made when the run is known not to be over.

    Attributes:
        tokens_a_step: tokens in a batch, padding not counted (an average will do), or None.
    """

    tokens_a_step = None

    def training(self, first_step):
        """The dataset of all batches from that of step `first_step` (from 0) on."""
        raise NotImplementedError

    def evaluation(self):
        """The dataset of held-out batches, or None."""
        return None

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
):
    """Trains from the latest checkpoint (or from nothing) to the last step.

    No value is fetched from the device but at the end of an entry. There, too, a run ends that
    Ctrl-C or SIGTERM stops, with a checkpoint; a second one ends it at once.

    Args:
        model: what is trained, compiled: the task, or the head alone that `freeze` gives.
        run: the `RunFolder`.
        feed: the `Feed`.
        plan: the `Plan`.
        task: the task that `model` is, or is the head of.
        best: the file that the best weights so far are kept in, or None.
        patience: end after so many evaluations in a row without a better `task.FIGURE`; None is
            never. The plan has a checkpoint after each evaluation then.
        evaluate_first: evaluate before the first step, too.
        constants: level lines in TensorBoard (see `TensorBoardCurve`).

    Returns:
        The entries of the whole run's curve (see `Curve`).
    """
    devices = Devices()
    checkpoint = Checkpoint(run.checkpoints, model) if devices.is_chief else None
    first_step, entries = devices.restored(checkpoint, model) or (0, [])
    if first_step == plan.steps or _is_out_of_patience(entries, task, patience):
        return entries  # killed after the last checkpoint
    curve = Curve(
        plan,
        tokens_a_step=feed.tokens_a_step,
        entries=entries,
        loss_weights=task.default_loss_weights(),
    )
    progress = Progress(curve, first_step=first_step, names=task.SHOWN)
    callbacks = [_Measures(feed, plan), curve, progress]
    if devices.is_chief:
        outputs = list(task.output)
        callbacks.append(TensorBoardCurve(run.logs, curve, constants or {}, outputs=outputs))
        if best is not None:
            callbacks.append(BestModel(task, best, curve))
    if patience is not None:
        callbacks.append(_Patience(task, curve, patience))
    training = feed.training(first_step)
    devices.prepare(model, training)
    devices.separate_seeds(model)
    evaluation = feed.evaluation()
    evaluation, batches = devices.distributed(evaluation), devices.batches_in(evaluation)
    if evaluate_first and not entries and evaluation is not None:
        curve.set_model(model)
        curve.start(model.evaluate(evaluation, steps=batches, return_dict=True, verbose=0))
    evaluated = [n + 1 for n in range(plan.entries) if plan.evaluates(plan.step_of(n))]
    with contextlib.closing(progress), stop_later() as wish:
        callbacks += [
            _Checkpoints(checkpoint, curve, plan, wish, devices),
            _End(plan, progress, wish),
        ]
        model.fit(
            devices.distributed(training),
            steps_per_epoch=plan.entry,
            initial_epoch=first_step // plan.entry,
            epochs=plan.entries,
            validation_data=evaluation,
            validation_steps=batches,
            validation_freq=evaluated,
            callbacks=_StepCallbacks(callbacks, add_history=True, model=model),
            shuffle=False,
            verbose=0,
        )
    wish.grant()
    return entries


class _StepCallbacks(keras.callbacks.CallbackList):
    """Callbacks that are told of a step without its figures.

    Keras fetches them from the device for every step, which then waits for it.
    """

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch)

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

    def __init__(self, task, curve, patience):
        super().__init__()
        self.task = task
        self.curve = curve
        self.patience = patience

    def on_epoch_end(self, epoch, logs=None):
        if _is_out_of_patience(self.curve.entries, self.task, self.patience):
            self.model.stop_training = True


def _is_out_of_patience(entries, task, patience):
    return patience is not None and evaluations_since_best(entries, task.FIGURE) >= patience


class _Checkpoints(keras.callbacks.Callback):
    """Writes the checkpoints of the plan, and one where the run is to stop.

    Any end of an entry will do: all that the next step depends on is in the variables, the step and
    the entries of the curve. In the middle of an entry it would also be the figures so far.
    """

    def __init__(self, checkpoint, curve, plan, wish, devices):
        super().__init__()
        self.checkpoint = checkpoint
        self.curve = curve
        self.plan = plan
        self.wish = wish
        self.devices = devices

    def on_epoch_end(self, epoch, logs=None):
        step = self.plan.step_of(epoch)
        is_wished = self.devices.any(bool(self.wish))
        if self.devices.is_chief and (self.plan.checkpoints(step) or is_wished):
            self.checkpoint.save(step, self.curve.entries)
        if is_wished:
            self.wish.share()
            self.model.stop_training = True


class _End(keras.callbacks.Callback):
    """Ends the last entry after the last step: it may be shorter than the others.

    Where somebody wishes the run to stop, it says when that will be.
    """

    def __init__(self, plan, progress, wish):
        super().__init__()
        self.plan = plan
        self.progress = progress
        self.wish = wish
        self._has_said = False

    def on_epoch_begin(self, epoch, logs=None):
        self.first_step = epoch * self.plan.entry
        self.last_step = self.plan.step_of(epoch)

    def on_train_batch_end(self, batch, logs=None):
        step = self.first_step + batch + 1
        if step >= self.plan.steps:
            self.model.stop_training = True
        if self.wish and not self._has_said and step < self.last_step:
            self._has_said = True
            self.progress.say(f"Stopping after step {self.last_step}; once more stops at once.")
