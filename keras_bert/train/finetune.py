"""Fine-tuning as one call: from labelled examples to a model folder, over `model.fit`."""

import math
from functools import cached_property

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
from keras_bert.train.finetuning_optimizer import RATE, RATE_OF_A_HEAD
from keras_bert.train.frozen import computed_once, freeze
from keras_bert.train.loop import Feed, train
from keras_bert.train.optimizer import make_optimizer
from keras_bert.train.plan import plan_epochs
from keras_bert.train.run_folder import RunFolder
from keras_bert.train.settings import FinetuneSettings, finetune_settings
from keras_bert.train.starting_point import StartingPoint
from keras_bert.wording import percent

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
    train_examples, dev_examples, made_with = _read(kind, settings, report)
    report(start.description)
    if settings.scalar_mix:
        normalised = settings.scalar_mix_layer_norm
        epsilon = encoder.config.layer_norm_eps if normalised else None
        encoder = MixedEncoder(encoder, layer_norm_eps=epsilon, l2=settings.scalar_mix_l2)
    arguments = {**made_with, **settings.arguments, "max_length": max_length}
    task = kind(encoder, tokenizer, **arguments)
    train_rows, dev_rows = (
        task.features(examples, labelled=True) for examples in (train_examples, dev_examples)
    )
    for rows, which in ((train_rows, "training"), (dev_rows, "dev")):
        if rows.share_unknown > _MUCH_UNKNOWN:
            report(
                f"{percent(rows.share_unknown)} of the {which} tokens are [UNK]: the vocabulary "
                "does not have these words, nor parts of them."
            )
    frozen = freeze(task) if settings.frozen else None
    trained = frozen[1] if frozen else task
    plan = plan_epochs(
        settings.epochs,
        examples=len(train_rows),
        batch_size=settings.batch_size,
        checkpoint_every=settings.checkpoint_every,
        steps_per_execution=settings.steps_per_execution,
    )
    optimizer = make_optimizer(
        trained,
        learning_rate=settings.learning_rate or (RATE_OF_A_HEAD if settings.frozen else RATE),
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        steps=plan.steps,
    )
    inputs = {
        "model": start.fingerprint,
        "train": train_rows.fingerprint,
        "dev": dev_rows.fingerprint,
        "made_with": made_with,
    }
    with RunFolder.of(settings, command="finetune", inputs=inputs) as run:
        if run.finished:
            report(f"The run in {run.path} is finished already; these are its results.")
            return run.read_metrics()
        trained.compile(
            optimizer=optimizer,
            loss=task.default_losses(),
            loss_weights=task.default_loss_weights(),
            weighted_metrics=task.default_metrics(),
            jit_compile=False,  # XLA would compile anew for every length of rows
            steps_per_execution=settings.steps_per_execution,
        )
        feed = _LabelledRows(
            task,
            train_rows,
            dev_rows,
            plan=plan,
            settings=settings,
            frozen=frozen,
            folder=run.checkpoints,
        )
        return _train(trained, run, feed, report)


def _train(model, run, feed, report):
    """The run itself, of the task or its head alone; returns its metrics."""
    task, plan, settings = feed.task, feed.plan, feed.settings
    trained_parameters = sum(math.prod(weight.shape) for weight in model.trainable_weights)
    best_folder = run.checkpoints / "best" if settings.keep == "best" else None
    entries = train(model, run, feed, plan, task=task, best_folder=best_folder)
    kept = entries[-1]
    if best_folder is not None:
        kept = best_entry(entries, task.FIGURE)
        task = load_task(best_folder)
    epoch = kept["step"] // plan.evaluate_every
    report(
        f"Kept the model of epoch {epoch} of {settings.epochs}, the {settings.keep} one"
        f"{' on the dev data' if best_folder is not None else ''}."
    )
    outputs = Inference(task, batch_size=settings.batch_size).outputs(feed.dev_rows)
    task.tune(outputs, feed.dev_rows)
    save_folder(task, task.tokenizer, run.model, overwrite=True)
    answers = task.decode(outputs, feed.dev_rows)
    metrics = {
        "kept": {"which": settings.keep, "epoch": epoch, "step": kept["step"]},
        "dev": task.measure(answers, feed.dev_rows.examples),
        **task.made_with,
        "steps": plan.steps,
        "parameters": task.count_params(),
        "trained_parameters": trained_parameters,
        "seconds": entries[-1]["seconds"],
        "curve": entries,
    }
    if settings.scalar_mix:
        mix = task.encoder.scalar_mix
        metrics["scalar_mix"] = {
            "shares": [round(float(share), 6) for share in mix.shares],
            "gamma": round(float(mix.gamma), 6),
        }
    run.finish(metrics)
    if best_folder is not None:
        delete(best_folder)  # it is in model/ now
    return metrics


class _LabelledRows(Feed):
    """Rows in memory, in batches of about one length.

    `frozen` is None, or what `freeze` gives: a head alone is fed what the encoder makes of rows.
    """

    def __init__(self, task, train_rows, dev_rows, *, plan, settings, frozen, folder):
        self.task = task
        self.train_rows = train_rows
        self.dev_rows = dev_rows
        self.plan = plan
        self.settings = settings
        self.frozen = frozen
        self.folder = folder
        if frozen is None:  # a head alone reads no tokens
            self.tokens_a_step = float(train_rows.lengths.sum() / plan.evaluate_every)

    def training(self, first_step):
        return self._fed[0].training_batches(
            steps=self.plan.evaluate_every,
            seed=self.settings.seed,
            epochs=self.settings.epochs,
            first_step=first_step,
        )

    def evaluation(self):
        return self._fed[1].evaluation_batches(batch_size=self.settings.batch_size)

    def measures(self):
        metrics = [metric for some in self.task.default_metrics().values() for metric in some]
        if self.task.FIGURE in {metric.name for metric in metrics}:
            return {}
        measures = self.task.measure(self._inference.of_rows(self.dev_rows), self.dev_rows.examples)
        return {name: value for name, value in measures.items() if isinstance(value, float)}

    @cached_property
    def _inference(self):
        return Inference(self.task, batch_size=self.settings.batch_size)

    @cached_property
    def _fed(self):
        rows = (self.train_rows, self.dev_rows)
        if self.frozen is None:
            return rows
        return computed_once(
            rows, *self.frozen, batch_size=self.settings.batch_size, folder=self.folder
        )


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
