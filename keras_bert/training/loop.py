"""The loop of every training run: restores, fits, evaluates, checkpoints, logs."""

import contextlib

from keras_bert.base.signals import stop_later
from keras_bert.training.batch_size import memory_is_enough
from keras_bert.training.callbacks import (
    Checkpoints,
    EndIfOver,
    EndOfRecord,
    EvaluatedRecords,
    HeldOutMetrics,
    StepCallbacks,
)
from keras_bert.training.checkpoint import Checkpoint, frozen_weights, named_variables
from keras_bert.training.costs import matrix_rate
from keras_bert.training.logs import History, Progress


def train(run):
    """Trains from the latest checkpoint, or from the start, until the last step or a part ends it.

    Values are fetched from the device only at the end of a log step. On Ctrl-C or SIGTERM the run
    ends there, too, with a checkpoint; a second signal ends it at once.

    Args:
        run: the `Run`, whose model is compiled.

    Returns:
        The records of the whole run (see `History`).

    Raises `NotFinite` if the loss or the weights become infinite or NaN.
    """
    model, task, source, plan, devices = run.model, run.task, run.source, run.plan, run.devices
    checkpoint = None
    if devices.is_chief:
        checkpoint = Checkpoint(
            run.folder.checkpoints,
            model,
            keep=run.settings.keep_checkpoints,
            frozen=frozen_weights(task),
        )
    variables = named_variables(model)
    first_step, records = devices.restored(checkpoint, variables, run.report) or (0, [])
    if first_step:
        run.report(f"Resumed at step {first_step}.")
    if first_step == plan.steps or any(part.is_over(records) for part in run.parts):
        return records  # it was interrupted after its training
    rate = None
    if source.at(first_step).flops_per_token is not None and devices.processors is not None:
        rate = devices.processors * matrix_rate(task.encoder.compute_dtype)
    history = run.history = History(
        plan,
        records=records,
        loss_weights=task.default_loss_weights(),
        matrix_rate=rate,
    )
    progress = Progress(
        history,
        first_step=first_step,
        names=task.SHOWN,
        may_stop=any(part.may_end for part in run.parts),
    )
    chain = [HeldOutMetrics(source, plan), history, progress]
    for part in run.active_parts:
        chain += part.callbacks(run)
    chain.append(EndIfOver(run.parts, history))
    training = source.at(first_step).training(first_step)
    devices.prepare(model, training)
    devices.separate_seeds(model)
    devices.renew_steps(model)
    with contextlib.ExitStack() as stack:
        stack.enter_context(memory_is_enough(run.settings))
        if run.evaluates_first and not records:
            _evaluate_first(model, source, history, devices)
        stack.enter_context(contextlib.closing(progress))
        stop_request = stack.enter_context(stop_later())
        for part in run.active_parts:
            stack.enter_context(part.while_training(run))
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
