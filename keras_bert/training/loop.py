"""The loop of every training run: restores, fits, evaluates, checkpoints, keeps the best, logs."""

import contextlib

from keras_bert.base.signals import stop_later
from keras_bert.training.callbacks import (
    AgreeOnStop,
    Checkpoints,
    EndOfRecord,
    EvaluatedRecords,
    HeldOutMetrics,
    Patience,
    StepCallbacks,
    is_out_of_patience,
    make_user_callbacks,
)
from keras_bert.training.checkpoint import BestModel, Checkpoint
from keras_bert.training.devices import Devices
from keras_bert.training.logs import History, NotFinite, Progress, TensorBoardHistory, save_batch
from keras_bert.training.settings import KEEP_CHECKPOINTS


def train(
    model,
    run,
    source,
    plan,
    *,
    task,
    best=None,
    patience=None,
    evaluate_first=False,
    constants=None,
    keep_checkpoints=KEEP_CHECKPOINTS,
    callbacks=(),
    user_callbacks=None,
    report=None,
):
    """Trains from the latest checkpoint (or from the start) to the last step.

    Values are fetched from the device only at the end of a log step. On Ctrl-C or SIGTERM the run
    ends there, too, with a checkpoint; a second signal ends it at once.

    Args:
        model: what is trained, compiled: the task, or the head alone that `freeze` gives.
        run: the `RunFolder`.
        source: the `BatchSource`.
        plan: the `Plan`.
        task: the task that `model` is, or is the head of.
        best: the file for the best weights so far, or None.
        patience: end after so many evaluations in a row without a better `task.METRIC`; None is
            never. The plan has a checkpoint after each evaluation then.
        evaluate_first: evaluate before the first step, too.
        constants: horizontal lines in TensorBoard (see `TensorBoardHistory`).
        keep_checkpoints: how many checkpoints are kept, the newest ones.
        callbacks: further callbacks, of the chief alone, which write into the run's folder.
        user_callbacks: those of the setting `callbacks`; the chief alone calls them.
        report: called with a line where a checkpoint is damaged.

    Returns:
        The records of the whole run (see `History`).

    Raises `NotFinite` where the loss or the weights become infinite or NaN; the batch is written
    into the run's folder, where the step is known.
    """
    devices = Devices()
    checkpoint = None
    if devices.is_chief:
        checkpoint = Checkpoint(run.checkpoints, model, keep=keep_checkpoints)
    first_step, records = devices.restored(checkpoint, model, report) or (0, [])
    if first_step == plan.steps or is_out_of_patience(records, task, patience):
        return records  # interrupted after the last checkpoint
    matrix_rate = None
    if source.at(first_step).flops_per_token is not None:
        matrix_rate = devices.matrix_rate(task.encoder.compute_dtype)
    history = History(
        plan,
        records=records,
        loss_weights=task.default_loss_weights(),
        matrix_rate=matrix_rate,
    )
    progress = Progress(history, first_step=first_step, names=task.SHOWN)
    chain = [HeldOutMetrics(source, plan), history, progress]
    if devices.is_chief:
        outputs = list(task.output)
        chain.append(TensorBoardHistory(run.logs, history, constants or {}, outputs=outputs))
        chain += [*callbacks, *make_user_callbacks(user_callbacks, history)]
        if best is not None:
            chain.append(BestModel(task, best, history))
    if patience is not None:
        chain.append(Patience(task, history, patience))
    if user_callbacks:
        chain.append(AgreeOnStop(devices))
    training = source.at(first_step).training(first_step)
    devices.prepare(model, training)
    devices.separate_seeds(model)
    devices.renew_steps(model)
    if evaluate_first and not records:
        _evaluate_first(model, source, history, devices)
    saved = _batch_is_saved(run, source) if devices.is_chief else contextlib.nullcontext()
    with contextlib.closing(progress), stop_later() as stop_request, saved:
        checkpoints = Checkpoints(checkpoint, history, plan, stop_request, devices)
        # `EndOfRecord` first: it resets `stop_training`, which a later callback may set.
        chain = [EndOfRecord(plan, history, progress, stop_request), *chain, checkpoints]
        steps = StepCallbacks(
            chain, model=model, batches_per_step=source.batches_per_step, epochs=plan.records
        )
        for begin, end in plan.phases_from(first_step):
            history.source = source.at(begin)
            if begin > first_step:
                training = history.source.training(begin)
                devices.renew_steps(model)  # each phase has its own shapes
            evaluation = history.source.evaluation()
            model.fit(
                devices.distributed(training),
                steps_per_epoch=plan.record * source.batches_per_step,
                initial_epoch=plan.record_at(begin),
                epochs=plan.record_at(end),
                validation_data=devices.distributed(evaluation),
                validation_steps=devices.batches_in(evaluation),
                validation_freq=EvaluatedRecords(plan),
                callbacks=steps,
                shuffle=False,
                verbose=0,
            )
            if checkpoints.is_stopping or history.step < end:  # a callback has ended the run
                break
        steps.end()
    stop_request.raise_if_requested()
    return records


def _evaluate_first(model, source, history, devices):
    """Adds the record of an evaluation before the first step."""
    history.source = source.at(0)
    evaluation = history.source.evaluation()
    if evaluation is not None:
        history.set_model(model)
        batches, count = devices.distributed(evaluation), devices.batches_in(evaluation)
        history.start(model.evaluate(batches, steps=count, return_dict=True, verbose=0))


@contextlib.contextmanager
def _batch_is_saved(run, source):
    """On a `NotFinite` of a step, writes its batch into the run's folder.

    The batches of a step depend on nothing but the step, so they can be made again.
    """
    try:
        yield
    except NotFinite as error:
        if error.step is None:
            raise
        batches = source.at(error.step - 1).training(error.step - 1).take(source.batches_per_step)
        save_batch(run.bad_batch, batches.as_numpy_iterator())
        raise error.with_batch(run.bad_batch) from None
