"""Fine-tuning as one call: from labelled examples to a model folder, over `model.fit`."""

import math

import keras
import tensorflow as tf

from keras_bert.checkpoints import load_task, save_folder
from keras_bert.errors import InputError
from keras_bert.files import delete
from keras_bert.inference.answers import Inference
from keras_bert.input_pipeline.framing import check_max_length
from keras_bert.mixed_encoder import MixedEncoder
from keras_bert.settings import takes, together
from keras_bert.tasks import settings_class, task_class
from keras_bert.train.best_model import best_entry
from keras_bert.train.depth import depths, layers_to_train, train_from_the_top
from keras_bert.train.finetuning_optimizer import RATE, RATE_OF_A_HEAD
from keras_bert.train.frozen import freeze
from keras_bert.train.labelled_rows import LabelledRows
from keras_bert.train.loop import train
from keras_bert.train.optimizer import make_optimizer
from keras_bert.train.plan import plan_epochs
from keras_bert.train.run_folder import RunFolder
from keras_bert.train.settings import FinetuneSettings, finetune_settings
from keras_bert.train.starting_point import StartingPoint
from keras_bert.wording import counted, percent

# From this share of [UNK] on, which the model cannot tell apart, a vocabulary hardly fits the text.
_MUCH_UNKNOWN = 0.05


@takes(together(settings_class("classifier"), FinetuneSettings))
@tf.autograph.experimental.do_not_convert  # it writes Python files outside the output
def finetune(*, report=None, **settings):
    """Fine-tunes an encoder on labelled examples, or goes on where a run stopped.

    Calling it again with the same arguments resumes a run that was killed, exactly: with
    `deterministic` the weights are those of a run that was not, bit for bit. A finished run is not
    repeated.

    Args:
        {settings}
        report: a function that is told, in lines, how the files are read and what is trained.

    These are the arguments for `task="classifier"`; for another, the settings of that kind of task
    stand in place of its own (`keras_bert.train.settings.finetune_settings(task)` has them).

    Returns:
        What metrics.json holds: `kept` (which model, with its `step` and `epoch`), `dev` (its
        official figures), what the task is made with (such as `labels`), `steps`, `parameters`,
        `seconds` and `curve` (see `keras_bert.train.curve.Curve`); `trained_parameters`; and where
        there is a mix, `scalar_mix`: the `shares` of the layers in it, the embeddings first, and
        `gamma`.

    Raises:
        InputError: an argument or a file is wrong, the dev examples do not go with the training
            ones, or the output folder holds something else.
    """
    settings = finetune_settings(settings.get("task", "classifier")).of(settings)
    report = report or (lambda line: None)
    task, train_rows, dev_rows, inputs = _opened(settings, report)
    with RunFolder.of(settings, command="finetune", inputs=inputs) as run:
        if run.finished:
            report(f"The run in {run.path} is finished already; these are its results.")
            return run.read_metrics()
        frozen = freeze(task) if settings.frozen else None
        model = frozen[1] if frozen else task
        if not frozen:
            _choose_layers(task, settings, report)
        plan = plan_epochs(
            settings.epochs,
            examples=len(train_rows),
            batch_size=settings.batch_size,
            checkpoint_every=settings.checkpoint_every,
            steps_per_execution=settings.steps_per_execution,
        )
        _compile(model, task, settings, plan)
        feed = LabelledRows(
            task,
            train_rows,
            dev_rows,
            plan=plan,
            settings=settings,
            frozen=frozen,
            folder=run.checkpoints,
        )
        return _trained(model, run, feed, report)


def _opened(settings, report):
    """-> (the new task, training rows, dev rows, the fingerprints of what it is trained on)."""
    start = StartingPoint(
        **{name: getattr(settings, name) for name in ("model", "architecture", "vocab", "cased")},
        dtype=settings.dtype,
    )
    keras.utils.set_random_seed(settings.seed)
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    encoder, tokenizer = start.build()
    usual = settings_class(settings.task).MAX_LENGTH
    max_length = settings.max_length or min(usual, encoder.config.max_length)
    check_max_length(max_length, encoder.config)
    kind = task_class(settings.task)
    *splits, made_with = _read(kind, settings, report)
    report(start.description)
    arguments = {**made_with, **settings.arguments, "max_length": max_length}
    task = kind(_read_by_the_head(encoder, settings), tokenizer, **arguments)
    train_rows, dev_rows = (task.features(examples, labelled=True) for examples in splits)
    for rows, which in ((train_rows, "training"), (dev_rows, "dev")):
        if rows.share_unknown > _MUCH_UNKNOWN:
            report(
                f"{percent(rows.share_unknown)} of the {which} tokens are [UNK]: the vocabulary "
                "does not have these words, nor parts of them."
            )
    inputs = {
        "model": start.fingerprint,
        "train": train_rows.fingerprint,
        "dev": dev_rows.fingerprint,
        "made_with": made_with,
    }
    return task, train_rows, dev_rows, inputs


def _read(kind, settings, report):
    """-> (training examples, dev examples, what the task is made with)."""
    train_file = kind.read(settings.train, **settings.columns)
    report(train_file.description)
    train_examples = _all(kind, train_file, report)
    made_with = kind.made_from(train_examples)
    dev_file = kind.read(settings.dev, made_with=made_with, like=train_file, **settings.columns)
    report(dev_file.description)
    dev_examples = _all(kind, dev_file, report)
    report(kind.summary(train_examples, dev_examples, made_with))
    return train_examples, dev_examples, made_with


def _all(kind, file, report):
    examples = list(file)
    if not examples:
        raise InputError(f"{file.name} holds no examples.")
    for note in kind.notes(examples):
        report(f"Note: {note}")
    return examples


def _read_by_the_head(encoder, settings):
    """The encoder, or a learned mix of its layers."""
    if not settings.scalar_mix:
        return encoder
    epsilon = encoder.config.layer_norm_eps if settings.scalar_mix_layer_norm else None
    return MixedEncoder(encoder, layer_norm_eps=epsilon, l2=settings.scalar_mix_l2)


def _choose_layers(task, settings, report):
    """Takes out of training what the settings never train, and says so."""
    epochs = settings.epochs if settings.gradual_unfreezing else None
    layers = layers_to_train(task, last=settings.train_layers, epochs=epochs)
    blocks = len(task.encoder.base().blocks)
    if layers <= blocks:
        train_from_the_top(task, layers)
        report(f"Trained are the head and the last {layers} of {counted(blocks, 'block')}.")


def _compile(model, task, settings, plan):
    """Compiles what is trained, the task or its head alone."""
    depth = depths(task, model.trainable_variables)
    thaw_every = plan.evaluate_every if settings.gradual_unfreezing else 0
    optimizer = make_optimizer(
        model,
        learning_rate=settings.learning_rate or (RATE_OF_A_HEAD if settings.frozen else RATE),
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        steps=plan.steps,
        schedule=settings.schedule,
        shares=[settings.layer_decay**below for below in depth],
        first_steps=[thaw_every * below for below in depth],
    )
    model.compile(
        optimizer=optimizer,
        loss=task.default_losses(),
        loss_weights=task.default_loss_weights(),
        weighted_metrics=task.default_metrics(),
        jit_compile=False,  # XLA would compile anew for every length of rows
        steps_per_execution=settings.steps_per_execution,
    )


def _trained(model, run, feed, report):
    """Trains, and finishes with the model that is to be kept; returns the run's metrics."""
    trained_parameters = sum(math.prod(weight.shape) for weight in model.trainable_weights)
    best_folder = run.checkpoints / "best" if feed.settings.keep == "best" else None
    entries = train(
        model,
        run,
        feed,
        feed.plan,
        task=feed.task,
        best_folder=best_folder,
        patience=feed.settings.patience,
    )
    if entries[-1]["step"] < feed.plan.steps:
        epochs = counted(feed.settings.patience, "epoch")
        report(f"Stopped early: {epochs} without a better {feed.task.FIGURE} on the dev data.")
    task, kept = _kept(feed, entries, best_folder, report)
    outputs = Inference(task, batch_size=feed.settings.batch_size).outputs(feed.dev_rows)
    task.tune(outputs, feed.dev_rows)
    save_folder(task, task.tokenizer, run.model, overwrite=True)
    answers = task.decode(outputs, feed.dev_rows)
    metrics = {
        "kept": kept,
        "dev": task.measure(answers, feed.dev_rows.examples),
        **task.made_with,
        "steps": entries[-1]["step"],
        "parameters": task.count_params(),
        "trained_parameters": trained_parameters,
        "seconds": entries[-1]["seconds"],
        "curve": entries,
        **_learned_mix(task),
    }
    run.finish(metrics)
    if best_folder is not None:
        delete(best_folder)  # it is in model/ now
    return metrics


def _kept(feed, entries, best_folder, report):
    """-> (the task with the weights that are kept, which they are)."""
    which, task, entry = feed.settings.keep, feed.task, entries[-1]
    if best_folder is not None:
        task, entry = load_task(best_folder), best_entry(entries, task.FIGURE)
    epoch = entry["step"] // feed.plan.evaluate_every
    report(
        f"Kept the model of epoch {epoch} of {feed.settings.epochs}, the {which} one"
        f"{' on the dev data' if best_folder is not None else ''}."
    )
    return task, {"which": which, "epoch": epoch, "step": entry["step"]}


def _learned_mix(task):
    """What metrics.json says of a mix of layers; nothing where there is none."""
    if not isinstance(task.encoder, MixedEncoder):
        return {}
    mix = task.encoder.scalar_mix
    shares = [round(float(share), 6) for share in mix.shares]
    return {"scalar_mix": {"shares": shares, "gamma": round(float(mix.gamma), 6)}}
