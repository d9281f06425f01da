"""Labelled examples and a starting point, opened once, to fine-tune on as often as is wanted."""

import dataclasses
import math
from functools import partial

import keras
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.checkpoints import load_task, save_folder
from keras_bert.inference.answers import Inference
from keras_bert.inputs.framing import check_max_length
from keras_bert.tasks import settings_class, task_class
from keras_bert.tasks.global_mean import means_over
from keras_bert.text.tokenizer import note_on_unknown
from keras_bert.training.checkpoint import best_record, restore_best
from keras_bert.training.followed_run import run_of
from keras_bert.training.frozen import computed_once, freeze
from keras_bert.training.labelled_examples import LabelledExamples
from keras_bert.training.loop import train
from keras_bert.training.monitoring.tensorboard import WeightHistograms
from keras_bert.training.optimizers.optimizer import (
    RATE,
    RATE_OF_A_HEAD,
    depths,
    layers_to_train,
    make_optimizer,
    train_from_the_top,
)
from keras_bert.training.plan import plan_epochs
from keras_bert.training.starting_point import StartingPoint
from keras_bert.training.strategies.devices import Devices, out_of_scope


class Finetuning:
    """What a run trains on, read and tokenized; `run` trains a new task on it.

    Args:
        settings: the settings of the (first) run, of `finetune_settings`.
        report: a function that is told, in lines, how the files are read.
        given: the arguments that the caller gave, by name. A model of the same kind and labels
            continues with its own options where none are given.

    Attributes: `kind` (the class of the task), `train_examples` and `dev_examples`
    (`TokenizedExamples`), `inputs` (fingerprints of all that the result depends on beside the
    settings).

    Raises:
        InputError: a file or the starting point is wrong, or the dev examples do not go with the
            training ones.
    """

    def __init__(self, settings, report, *, given):
        self.kind = task_class(settings.task)
        self._frozen_examples = {}
        self._earlier = None
        names = ("model", "architecture", "vocab", "cased")
        self._start = StartingPoint(
            **{name: getattr(settings, name) for name in names}, dtype=settings.dtype
        )
        earlier, why_new = self._start.earlier_task(self.kind)
        kept = {} if earlier is None else _not_given(earlier.options, settings, given)
        # How files are read goes by the kind alone: their labels are not known yet.
        self._taken_over = {name: v for name, v in kept.items() if name in settings.columns}
        encoder, tokenizer = self._draw(settings)
        usual = settings_class(settings.task).MAX_LENGTH
        longest = settings.max_length or encoder.default_max_length(usual)
        check_max_length(longest, encoder.config, tokenizer)
        layers_to_train(encoder, last=settings.train_layers)  # refuses more than there are
        *splits, self._inferred_arguments = _read(self.kind, self.resolved(settings), report)
        report(self._start.description)
        if earlier is not None and not self._continues(earlier, {**settings.arguments, **kept}):
            why_new = f"{settings.model} has other labels ({listed(earlier.labels)})."
        if why_new is None:
            self._earlier, self._taken_over = earlier, kept
        else:
            report(f"The head is new: {why_new} {_left_behind(earlier, self._taken_over)}")
        settings = self.resolved(settings)
        self._max_length = settings.max_length or encoder.default_max_length(usual)
        task = self._task(encoder, tokenizer, settings, report)
        self._first = settings.seed, task
        self.train_examples, self.dev_examples = (
            task.features(split, labelled=True) for split in splits
        )
        for rows, which in ((self.train_examples, "training"), (self.dev_examples, "dev")):
            if note := note_on_unknown(*rows.unknown, which=which):
                report(note)
            _report_unfit(rows, which, report)
        if self.train_examples.fingerprint == self.dev_examples.fingerprint:
            report(
                "Note: the dev examples are the training examples; metrics on them do not show how "
                "the model does on new text."
            )
        self.inputs = {
            "model": self._start.fingerprint,
            "train": self.train_examples.fingerprint,
            "dev": self.dev_examples.fingerprint,
            "inferred_arguments": self._inferred_arguments,
        }

    def _continues(self, earlier, arguments):
        """Whether a task of the examples' labels has those of an earlier one, in its order then."""
        labels = self._inferred_arguments.get("labels", ())
        if earlier.labels and earlier.has_labels(labels):
            self._inferred_arguments = {**self._inferred_arguments, "labels": list(earlier.labels)}
        return earlier.has_labels(self.kind.labels_with(self._inferred_arguments, **arguments))

    def resolved(self, settings):
        """The settings, with the options that the model continues with where none are given."""
        return dataclasses.replace(settings, **self._taken_over)

    def run(self, settings, report):
        """One run: trains in the folder `settings.output`, or goes on there; returns its metrics.

        What the settings, which are `resolved`, say of the starting point, the task and the files
        is as at the opening.
        """
        plan = self._plan(settings)
        with run_of(settings, command="finetune", inputs=self.inputs) as run:
            if run.finished:
                report(f"The run in {settings.output} is finished already; these are its results.")
                return run.read_metrics()
            task = self._new_task(settings, report)
            model, computed = task, None
            if settings.freeze_encoder:
                features, model = freeze(task)
                folder = run.checkpoints if Devices().is_chief else None
                computed = partial(self._computed, features, model, settings, folder)
            examples_of_a_batch = len(self.train_examples) // plan.evaluate_every
            Devices().check_sequences(min(examples_of_a_batch, len(self.dev_examples)))
            _compile(model, task, settings, plan)
            feed = LabelledExamples(
                model,
                task,
                self.train_examples,
                self.dev_examples,
                plan=plan,
                settings=settings,
                computed=computed,
            )
            return _trained(run, feed, report)

    def _plan(self, settings):
        plan = plan_epochs(
            settings.epochs,
            examples=len(self.train_examples),
            batch_size=settings.batch_size,
            checkpoint_every=settings.checkpoint_every,
            steps_per_execution=settings.steps_per_execution,
        )
        if plan.evaluate_every > len(self.train_examples):
            raise InputError(
                f"An epoch would have {counted(plan.evaluate_every, 'step')}, a multiple of "
                f"`steps_per_execution`, and {counted(len(self.train_examples), 'row')} for them; "
                "give a smaller `steps_per_execution`."
            )
        return plan

    def _new_task(self, settings, report):
        """A task as the seed draws it; that of the opening, where it is the same."""
        (seed, task), self._first = self._first, (None, None)
        if seed == settings.seed:
            return task
        return self._task(*self._draw(settings), settings, report)

    def _computed(self, features, head, settings, folder):
        """The `FrozenRows` of both files; for several runs once, where the encoder is the same.

        In batches of another size the same sums come out a little differently.
        """
        drawn = settings.seed if settings.model is None else None
        if (drawn, settings.batch_size) not in self._frozen_examples:
            self._frozen_examples[drawn, settings.batch_size] = computed_once(
                (self.train_examples, self.dev_examples),
                features,
                head,
                batch_size=settings.batch_size,
                folder=folder,
            )
        return self._frozen_examples[drawn, settings.batch_size]

    def _draw(self, settings):
        """-> (the encoder, its tokenizer); what is new in them is drawn with the seed."""
        keras.utils.set_random_seed(settings.seed)
        if settings.deterministic:
            tf.config.experimental.enable_op_determinism()
        return self._start.build()

    def _task(self, encoder, tokenizer, settings, report):
        arguments = {
            **self._inferred_arguments,
            **settings.arguments,
            "max_length": self._max_length,
        }
        if settings.scalar_mix:
            epsilon = encoder.config.head_layer_norm_eps
            if self._earlier is not None:
                epsilon = self._earlier.layer_norm_eps(epsilon)
            epsilon = epsilon if settings.scalar_mix_layer_norm else None
            arguments["layer_mix"] = {"layer_norm_eps": epsilon, "l2": settings.scalar_mix_l2}
        if encoder.lacks_head_transform(self.kind.KIND):
            if self.kind.reads_first_token(**settings.arguments):
                report("The model came without a pooler over [CLS]; the head reads a new one.")
                encoder = encoder.with_head_transform(self.kind.KIND)
            elif arguments.get("pooling") is None:
                report(
                    "The model came without a pooler over [CLS]; the head reads the tokens instead."
                )
        task = self.kind(encoder, tokenizer, **arguments)
        if self._earlier is not None:
            report(_continued(settings, self._earlier.options, *self._earlier.continue_in(task)))
        if not settings.freeze_encoder:
            _leave_out(task, settings, report)
        return task


def _not_given(options, settings, given):
    """Those options of an earlier task that the caller says nothing of."""
    said = {name for name, value in given.items() if value is not None}
    if "scalar_mix" in said and not settings.scalar_mix:
        said |= {"scalar_mix_l2", "scalar_mix_layer_norm"}
    return {name: value for name, value in options.items() if name not in said}


def _continued(settings, options, new, lost):
    """What a run continues with, and what it does not, for the user."""
    now = {name: getattr(settings, name) for name in options}
    parts = [f"Continuing with its head ({_described(now) or 'no options'})."]
    changed = [
        f"{name} {now[name]}, was {was}" for name, was in options.items() if now[name] != was
    ]
    if changed:
        parts.append(f"Changed: {'; '.join(changed)}.")
    if new:
        parts.append(f"New, from random weights: {_named(new)}.")
    if lost:
        parts.append(f"Not taken over: {_named(lost)}.")
    return " ".join(parts)


def _left_behind(earlier, taken_over):
    """What a run does not take over of a fine-tuned model whose head it has no use for."""
    if earlier is None:
        return "Its own head and options are not taken over."
    left = {name: value for name, value in earlier.options.items() if name not in taken_over}
    line = f"Its own head is not taken over ({_described(left) or 'no options'})."
    read = _described(taken_over)
    return f"{line} The files are read as its own: {read}." if read else line


def _described(options):
    shown = ((name, value) for name, value in options.items() if value not in (None, False))
    return ", ".join(name if value is True else f"{name} {value}" for name, value in shown)


def _named(heads):
    return listed(head.removesuffix("_layer") for head in heads)


def _read(kind, settings, report):
    """-> (training examples, dev examples, what the task is made with)."""
    train_file = kind.read(settings.train, **settings.columns)
    report(train_file.description)
    train_examples = _all(kind, train_file, report)
    inferred_arguments = kind.infer_arguments(train_examples)
    dev_file = kind.read(
        settings.dev, inferred_arguments=inferred_arguments, schema=train_file, **settings.columns
    )
    report(dev_file.description)
    dev_examples = _all(kind, dev_file, report)
    report(kind.summary(train_examples, dev_examples, inferred_arguments))
    return train_examples, dev_examples, inferred_arguments


def _all(kind, file, report):
    examples = list(file)
    if not examples:
        raise InputError(f"{file.name} holds no examples.")
    for note in kind.notes(examples):
        report(f"Note: {note}")
    return examples


def _report_unfit(rows, which, report):
    """Says how many of the training or dev examples do not fit into a row."""
    count, reason = rows.unfit
    if count and which == "training" and count == len(rows.examples):
        raise InputError(f"No training example can be used: {reason}.")
    if count:
        what = "left out" if which == "training" else "counted as wrong"
        report(f"Note: {counted(count, f'{which} example')} {what}: {reason}.")


def _leave_out(task, settings, report):
    """Takes out of training the layers that the settings never train, and says so."""
    epochs = settings.epochs if settings.gradual_unfreezing else None
    layers = layers_to_train(task.encoder, last=settings.train_layers, epochs=epochs)
    above = len(task.encoder.layer_groups) - 1  # the embeddings
    if layers <= above:
        train_from_the_top(task, layers)
        report(f"Trained are the head and the last {layers} of {counted(above, 'layer')}.")


def _compile(model, task, settings, plan):
    """Compiles what is trained, the task or its head alone."""
    depth = depths(task, model.trainable_variables)
    thaw_every = plan.evaluate_every if settings.gradual_unfreezing else 0
    optimizer = make_optimizer(
        model,
        learning_rate=settings.learning_rate
        or (RATE_OF_A_HEAD if settings.freeze_encoder else RATE),
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        steps=plan.steps,
        schedule=settings.schedule,
        fractions=[settings.layer_decay**below for below in depth],
        first_steps=[thaw_every * below for below in depth],
        measures_gradients=model is task,
    )
    model.compile(
        optimizer=optimizer,
        loss=task.compiled_losses(),
        loss_weights=task.default_loss_weights(),
        weighted_metrics=task.default_metrics(),
        jit_compile=False,  # XLA would compile anew for every length of rows
        steps_per_execution=settings.steps_per_execution,
    )


def _trained(run, feed, report):
    """Trains, and finishes with the model that is to be kept; returns the run's metrics."""
    task, patience = feed.task, feed.settings.patience
    is_chief = Devices().is_chief
    best = run.best if is_chief and feed.settings.keep == "best" else None
    watched = is_chief and feed.settings.histograms
    watchers = [WeightHistograms(run.logs, feed.plan)] if watched else []
    totals = feed.train_examples.weight_totals
    with means_over(feed.model, totals, steps=feed.plan.evaluate_every):
        records = train(
            feed.model,
            run,
            feed,
            feed.plan,
            task=task,
            best=best,
            patience=patience,
            keep_checkpoints=feed.settings.keep_checkpoints,
            watchers=watchers,
            report=report,
        )
    if records[-1]["step"] < feed.plan.steps:
        epochs = counted(patience, "epoch")
        report(f"Stopped early: {epochs} without a better {task.METRIC} on the dev data.")
    kept = _kept(feed, records, best, report)
    outputs = feed.outputs_at(kept["step"])
    if not is_chief:
        return run.finish()
    if feed.settings.dtype != "float32":
        task, outputs = out_of_scope(_in_float32, run, feed)
    task.tune_threshold(outputs, feed.dev_examples)
    save_folder(task, task.tokenizer, run.model, overwrite=True)
    predictions = task.decode(outputs, feed.dev_examples)
    metrics = {
        "kept": kept,
        "best_metric": task.METRIC,
        "dev": task.official_metrics(predictions, feed.dev_examples.examples),
        **task.inferred_arguments,
        "steps": records[-1]["step"],
        "parameters": task.count_params(),
        "trainable_parameters": sum(math.prod(w.shape) for w in feed.model.trainable_weights),
        "seconds": records[-1]["seconds"],
        "history": records,
        **_learned_mix(task),
    }
    return run.finish(metrics)


def _kept(feed, records, best, report):
    """Puts the weights that are kept into the task; returns which they are."""
    which, record = feed.settings.keep, records[-1]
    if which == "best":
        record = best_record(records, feed.task.METRIC)
    if best is not None:
        restore_best(feed.task, best)
    epoch = record["step"] // feed.plan.evaluate_every
    report(
        f"Kept the model of epoch {epoch} of {feed.settings.epochs}, the {which} one"
        f"{' on the dev data' if which == 'best' else ''}."
    )
    return {"which": which, "epoch": epoch, "step": record["step"]}


def _in_float32(run, feed):
    """-> (the task as it loads from its folder, its outputs on dev): what `evaluate` will say."""
    save_folder(feed.task, feed.task.tokenizer, run.model, overwrite=True)
    task = load_task(run.model)
    return task, Inference(task, batch_size=feed.settings.batch_size).outputs(feed.dev_examples)


def _learned_mix(task):
    """What metrics.json says of a mix of layers; nothing where there is none."""
    if task.scalar_mix is None:
        return {}
    mix = task.scalar_mix
    fractions = [round(float(fraction), 6) for fraction in mix.layer_weights]
    return {"scalar_mix": {"layer_weights": fractions, "gamma": round(float(mix.gamma), 6)}}
