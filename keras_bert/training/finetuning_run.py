"""One fine-tuning run: reads the examples, builds the task, trains it and writes its folder."""

import dataclasses
import math
from functools import partial
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.files import delete
from keras_bert.base.formatting import counted, listed
from keras_bert.checkpoints import find_model_folder, load, load_task, save_folder
from keras_bert.checkpoints.model_folder import fingerprint_of_folder
from keras_bert.encoders import new_encoder
from keras_bert.heads.layer_choice import MIXES
from keras_bert.inference.predict import Inference
from keras_bert.inputs.framing import check_max_length
from keras_bert.readers.labels import unknown_labels_note
from keras_bert.readers.sources import files_of, not_reported, report_notes, report_source
from keras_bert.tasks import settings_class, task_class
from keras_bert.tasks.ensemble import check_can_average
from keras_bert.tasks.global_mean import means_over
from keras_bert.text.tokenizer import note_on_unknown
from keras_bert.training.checkpoint import best_record, restore_best
from keras_bert.training.finetuning_examples import (
    LabelledExamples,
    compute_once,
    freeze,
)
from keras_bert.training.loop import train
from keras_bert.training.optimizers.layer_depths import depths, layers_to_train, train_last_layers
from keras_bert.training.optimizers.optimizer import make_optimizer
from keras_bert.training.plan import Stopwatch, plan_epochs
from keras_bert.training.settings import HEAD_LEARNING_RATE, LEARNING_RATE, RANDOM
from keras_bert.training.starting_point import StartingPoint
from keras_bert.training.strategies.devices import Devices, out_of_scope
from keras_bert.training.strategies.shared_run import run_of

_EPOCHS_TO_MEASURE = 20  # at most; of the few examples that a step is measured on


class Finetuning:
    """The examples and the starting point of one or more runs, read and tokenized once.

    Args:
        settings: the settings of the (first) run, of `finetune_settings`.
        report: called with each line about the files.
        given: the caller's arguments by name. A model of the same task and labels keeps its own
            options where none are given.
        examples: None, or (training examples, dev examples, arguments inferred from the former) of
            another `Finetuning`, which are not read again.
        is_random: see `StartingPoint`.

    Attributes: `task_class`, `train_examples` and `dev_examples` (`TokenizedExamples`),
    `inputs` (fingerprints of everything that the result depends on except the settings).

    Raises:
        InputError: a file or the starting point is invalid, or the dev examples do not match the
            training examples.
    """

    def __init__(self, settings, report, *, given, examples=None, is_random=False):
        self.task_class = task_class(settings.task)
        self._frozen_examples = {}
        self._sample = None, None  # (number, seed), and the examples
        self._given = given
        self._earlier = None
        names = ("model", "architecture", "vocab", "cased")
        self._start = StartingPoint(
            **{name: getattr(settings, name) for name in names},
            dtype=settings.dtype,
            is_random=is_random,
        )
        earlier, why_new = self._start.earlier_task(self.task_class)
        options = {} if earlier is None else _not_given(earlier.options, settings, given)
        # How files are read depends on the class alone: their labels are not known yet.
        self._kept_options = {name: v for name, v in options.items() if name in settings.columns}
        encoder, tokenizer = self._draw(settings)
        usual = settings_class(settings.task).MAX_LENGTH
        longest = settings.max_length or encoder.default_max_length(usual)
        check_max_length(longest, encoder.config, tokenizer)
        layers_to_train(encoder.layer_groups, last=settings.train_layers)  # checks the number
        if examples is None:
            remembered = None if earlier is None else earlier.columns
            examples = _read(self.task_class, self.resolved(settings), report, remembered)
        *splits, self._inferred_arguments = examples
        self._columns = splits[0][0].source.schema
        _check_fractions(settings.fractions, splits[0])
        report(self._start.description)
        if self._start.appended:
            report(f"Appended special tokens that the model lacks: {listed(self._start.appended)}.")
        if earlier is not None:
            self._inferred_arguments = _in_order_of(earlier, self._inferred_arguments)
            arguments = {**settings.arguments, **options}
            if not earlier.has_labels(
                self.task_class.labels_with(self._inferred_arguments, **arguments)
            ):
                why_new = f"{settings.model} has other labels ({listed(earlier.labels)})."
        if why_new is None:
            self._earlier, self._kept_options = earlier, options
        else:
            report(f"The head is new: {why_new} {_dropped(earlier, self._kept_options)}")
        settings = self.resolved(settings)
        self._max_length = settings.max_length or encoder.default_max_length(usual)
        task = self._task(encoder, tokenizer, settings, report)
        if settings.ensemble:
            check_can_average(task.default_losses())
            task.check_export()
        self._first = (settings.seed, settings.layers), task
        self.train_examples, self.dev_examples = (
            task.features(split, labelled=True) for split in splits
        )
        for examples, which in ((self.train_examples, "training"), (self.dev_examples, "dev")):
            if note := note_on_unknown(*examples.unknown, which=which):
                report(note)
            _report_unfit(examples, which, report)
        if unknown := task.unknown_labels(self.dev_examples.examples):
            name = self.dev_examples.examples[0].source.name
            report(f"Note: {unknown_labels_note(name, unknown)}")
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
        if settings.static_vectors is not None:
            folder = find_model_folder(settings.static_vectors)
            self.inputs["static_vectors"] = fingerprint_of_folder(folder)

    def baseline(self, settings, report):
        """The `Finetuning` from the start that the setting `baseline` names, on these examples."""
        is_random = settings.baseline == RANDOM
        if not is_random:
            start = {"model": settings.baseline, "architecture": None, "vocab": None}
            settings = dataclasses.replace(settings, **start, cased=False)
        read = self.train_examples.examples, self.dev_examples.examples, self._inferred_arguments
        options = {"given": self._given, "examples": read, "is_random": is_random}
        return Finetuning(settings, report, **options)

    def resolved(self, settings):
        """The settings, with the model's own options where none are given."""
        return dataclasses.replace(settings, **self._kept_options)

    def run(self, settings, report):
        """Trains in the folder `settings.output`, or resumes there; returns the metrics.

        The settings are `resolved`; starting point, task and files are those of the constructor.
        """
        self._plan(settings, self.train_examples)  # checks the settings
        with run_of(settings, command="finetune", inputs=self.inputs) as run:
            if run.finished:
                report(f"The run in {settings.output} is finished already. These are its results.")
                return run.read_metrics()
            task = self._new_task(settings, report)
            examples = self._sampled(task, settings)
            if examples is not self.train_examples:
                report(
                    f"Training on {len(examples.examples):,} of the "
                    f"{counted(len(self.train_examples.examples), 'training example')}."
                )
            plan = self._plan(settings, examples)
            model, computed = task, None
            if settings.freeze_encoder:
                features, model = freeze(task)
                folder = run.checkpoints if Devices().is_chief else None
                computed = partial(self._computed, examples, features, model, settings, folder)
            examples_per_batch = len(examples) // plan.evaluate_every
            Devices().check_batch_size(min(examples_per_batch, len(self.dev_examples)))
            _compile(model, task, settings, plan)
            source = LabelledExamples(
                model,
                task,
                examples,
                self.dev_examples,
                plan=plan,
                settings=settings,
                computed=computed,
            )
            return _train(run, source, report)

    def _sampled(self, task, settings):
        """The training examples of a run: all of them, or a random part of `train_fraction`.

        Those of a seed contain those of a smaller part with that seed.
        """
        all_of_them = self.train_examples.examples
        count = _sample_size(settings.train_fraction, all_of_them)
        if count == len(all_of_them):
            return self.train_examples
        if self._sample[0] != (count, settings.seed):
            order = np.random.default_rng(settings.seed).permutation(len(all_of_them))
            drawn = [all_of_them[number] for number in np.sort(order[:count])]
            self._sample = (count, settings.seed), task.features(drawn, labelled=True)
        return self._sample[1]

    def measure(self, settings, *, seconds):
        """-> (seconds to the end of the first step, seconds of a step after it).

        A model is built as for a run and trained for about so many seconds; nothing is written.
        """
        plan, devices = self._plan(settings, self.train_examples), Devices()
        task = self._new_task(settings, lambda line: None)
        _compile(task, task, settings, plan)
        batches = self.train_examples.training_batches(
            steps=plan.evaluate_every, seed=settings.seed, epochs=_EPOCHS_TO_MEASURE
        )
        devices.prepare(task, batches)
        watch = Stopwatch(seconds)
        with means_over(task, self.train_examples.weight_totals, steps=plan.evaluate_every):
            task.fit(
                devices.distributed(batches),
                steps_per_epoch=_EPOCHS_TO_MEASURE * plan.evaluate_every,
                callbacks=[watch],
                shuffle=False,
                verbose=0,
            )
        return watch.first, watch.each

    @staticmethod
    def _plan(settings, examples):
        count = len(examples)
        plan = plan_epochs(
            settings.epochs,
            examples=count,
            batch_size=settings.batch_size,
            checkpoint_every=settings.checkpoint_every,
            steps_per_execution=settings.steps_per_execution,
        )
        if plan.evaluate_every > count:
            raise InputError(
                f"An epoch would have {counted(plan.evaluate_every, 'step')}, a multiple of "
                f"`steps_per_execution`, for {counted(count, 'example')}. Use a smaller "
                "`steps_per_execution`."
            )
        return plan

    def ensemble(self, settings, folders, report):
        """Exports the mean of the models in `folders` to OUTPUT/ensemble, as one SavedModel.

        Returns what metrics.json contains of it: `ensemble`, its official metrics.
        """
        return out_of_scope(self._ensemble, settings, folders, report)

    def _ensemble(self, settings, folders, report):
        task, *others = map(load_task, folders)
        task.average_with(others)
        outputs = Inference(task, batch_size=settings.batch_size).outputs(self.dev_examples)
        task.tune_threshold(outputs, self.dev_examples)
        predictions = task.decode(outputs, self.dev_examples)
        metrics = task.official_metrics(predictions, self.dev_examples.examples)
        output = Path(settings.output) / "ensemble"
        delete(output)  # of an interrupted run
        version = task.export(output)
        report(f"Exported the average of {counted(len(folders), 'model')} to {version}.")
        return {"ensemble": metrics}

    def _new_task(self, settings, report):
        """A task with weights of the seed; that of the constructor, where it is the same."""
        (made_for, task), self._first = self._first, (None, None)
        if made_for == (settings.seed, settings.layers):
            return task
        return self._task(*self._draw(settings), settings, report)

    def _computed(self, examples, features, head, settings, folder):
        """The `FrozenExamples` of both files, computed once for all runs with the same encoder.

        Per batch size: sums over other batches differ by rounding. Those of other layers or of
        another sample are dropped, since each takes the disk space of its features.
        """
        chosen = settings.layers, None if examples is self.train_examples else self._sample[0]
        key = chosen, settings.seed if self._start.is_random else None, settings.batch_size
        self._frozen_examples = {
            key: value for key, value in self._frozen_examples.items() if key[0] == chosen
        }
        if key not in self._frozen_examples:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            self._frozen_examples[key] = compute_once(
                [examples, self.dev_examples],
                features,
                head,
                batch_size=settings.batch_size,
                folder=folder,
            )
        return self._frozen_examples[key]

    def _draw(self, settings):
        """-> (encoder, tokenizer); new weights are drawn from the seed."""
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
        arguments["layers"] = settings.layers
        if settings.layers in MIXES:
            epsilon = encoder.config.head_layer_norm_eps
            if self._earlier is not None:
                epsilon = self._earlier.layer_norm_eps(epsilon)
            epsilon = epsilon if settings.scalar_mix_layer_norm else None
            arguments["layer_mix"] = {"layer_norm_eps": epsilon, "l2": settings.scalar_mix_l2}
        vectors = self._static_vectors(settings, tokenizer)
        if vectors is not None:
            arguments["static_vectors"] = vectors
        if encoder.lacks_head_transform(self.task_class.TASK_TYPE):
            if self.task_class.reads_first_token(**settings.arguments):
                report("The model has no pooler; the head reads [CLS] through a new one.")
                encoder = encoder.with_head_transform(self.task_class.TASK_TYPE)
            elif arguments.get("pooling") is None:
                report("The model has no pooler; the head reads the tokens instead of [CLS].")
        task = self.task_class(encoder, tokenizer, **arguments)
        task.columns = self._columns
        if self._earlier is not None:
            heads = self._earlier.continue_in(task)
            report(_continued(settings, self._earlier.options, *heads))
        if not settings.freeze_encoder:
            epochs = settings.epochs if settings.gradual_unfreezing else None
            groups = task.read_groups
            layers = layers_to_train(groups, last=settings.train_layers, epochs=epochs)
            above = len(groups) - 1  # the embeddings
            if layers <= above:
                train_last_layers(task, layers)
                report(f"Training the head and the last {layers} of {counted(above, 'layer')}.")
        return task

    def _static_vectors(self, settings, tokenizer):
        """The encoder whose vectors are concatenated with the other's, or None.

        A model that the run continues with has its own.
        """
        of_model = None if self._earlier is None else self._earlier.static_vectors
        if settings.static_vectors is None or of_model is not None:
            if settings.static_vectors is not None:
                raise InputError(
                    f"{settings.model} has static vectors already. Leave `static_vectors` out."
                )
            return of_model and new_encoder(of_model, dtype=settings.dtype)
        vectors, vocabulary_of = load(settings.static_vectors, dtype=settings.dtype)
        if vectors.config.num_hidden_states != 1:
            raise InputError(
                f"{settings.static_vectors} contains a {vectors.config.model_type} encoder, not "
                "static vectors."
            )
        if vocabulary_of is None or vocabulary_of.vocabulary != tokenizer.vocabulary:
            raise InputError(
                f"The static vectors in {settings.static_vectors} have another vocabulary than the "
                "model. Train them with the model's vocabulary."
            )
        vectors.trainable = not settings.freeze_static_vectors
        return vectors


def _not_given(options, settings, given):
    """Those options of an earlier task that the caller does not give."""
    names = {name for name, value in given.items() if value is not None}
    if "layers" in names and settings.layers not in MIXES:
        names |= {"scalar_mix_l2", "scalar_mix_layer_norm"}
    return {name: value for name, value in options.items() if name not in names}


def _in_order_of(earlier, inferred_arguments):
    """The inferred arguments, with the labels in the order of an earlier task that has the same."""
    labels = inferred_arguments.get("labels", ())
    if earlier.labels and earlier.has_labels(labels):
        return {**inferred_arguments, "labels": list(earlier.labels)}
    return inferred_arguments


def _check_fractions(fractions, examples):
    """Raises `InputError` for a `train_fraction` of more examples than there are."""
    for fraction in fractions:
        if fraction > len(examples):
            raise InputError(
                f"`train_fraction` is {fraction:.0f} examples, but {examples[0].source.name} has "
                f"{len(examples):,}."
            )


def _sample_size(fraction, examples):
    """How many of the examples a `train_fraction` is: a fraction up to 1, or a count above."""
    return max(1, round(fraction * len(examples))) if fraction <= 1 else int(fraction)


def _continued(settings, options, same, new, lost):
    """A line on what a run keeps of an earlier task.

    The heads are those of it that are the `same`, that are `new`, and that are `lost`.
    """
    now = {name: getattr(settings, name) for name in options}
    is_lost = not set(new).isdisjoint(lost)  # what it read is not there any more
    subject = "its options, without its head, which reads something else" if is_lost else "its head"
    parts = [f"Continuing with {subject} ({_described(now) or 'no options'})."]
    changed = [
        f"{name} {now[name]}, was {was}" for name, was in options.items() if now[name] != was
    ]
    if changed:
        parts.append(f"Changed: {'; '.join(changed)}.")
    texts = (
        ("Kept", same if is_lost else ()),
        ("New, from random weights", new),
        ("Not kept", lost),
    )
    for text, heads in texts:
        if heads:
            parts.append(f"{text}: {listed(head.removesuffix('_layer') for head in heads)}.")
    return " ".join(parts)


def _dropped(earlier, kept_options):
    """A line on what a run does not keep of a fine-tuned model whose head it cannot use."""
    if earlier is None:
        return "Its own head and options are not kept."
    left = {name: value for name, value in earlier.options.items() if name not in kept_options}
    line = f"Its own head is not kept ({_described(left) or 'no options'})."
    options = _described(kept_options)
    return f"{line} Its options for reading files are kept: {options}." if options else line


def _described(options):
    shown = ((name, value) for name, value in options.items() if value not in (None, False))
    return ", ".join(name if value is True else f"{name} {value}" for name, value in shown)


def _read(task_class, settings, report, remembered):
    """-> (training examples, dev examples, arguments of the task inferred from the former).

    `remembered` are the columns of the data that the model was trained on before, or None.
    """

    def examples_of(file):
        report_source(file, report)
        examples = list(file)
        if not examples:
            raise InputError(f"{file.name} contains no examples.")
        if report is not_reported:
            report_notes(file, report)
        for note in task_class.notes(examples):
            report(f"Note: {note}")
        return examples

    schema, train_examples = remembered, []
    for path in files_of(settings.train):
        train_file = task_class.read(path, schema=schema, **settings.columns)
        train_examples += examples_of(train_file)
        schema = train_file.schema
    inferred_arguments = task_class.infer_arguments(train_examples)
    dev_file = task_class.read(
        settings.dev, inferred_arguments=inferred_arguments, schema=schema, **settings.columns
    )
    dev_examples = examples_of(dev_file)
    report(task_class.summary(train_examples, dev_examples, inferred_arguments))
    return train_examples, dev_examples, inferred_arguments


def _report_unfit(examples, which, report):
    """Reports how many of the training or dev examples the task cannot use."""
    count, reason = examples.unfit
    if count and which == "training" and count == len(examples.examples):
        raise InputError(f"No training example can be used: {reason}.")
    if count:
        treatment = "left out" if which == "training" else "counted as wrong"
        report(f"Note: {counted(count, f'{which} example')} {treatment}: {reason}.")


def _compile(model, task, settings, plan):
    """Compiles the model that is trained, the task or its head alone."""
    depth = depths(task, model.trainable_variables)
    unfreeze_every = plan.evaluate_every if settings.gradual_unfreezing else 0
    optimizer = make_optimizer(
        model,
        learning_rate=settings.learning_rate
        or (HEAD_LEARNING_RATE if settings.freeze_encoder else LEARNING_RATE),
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        steps=plan.steps,
        schedule=settings.schedule,
        fractions=[settings.layer_decay**below for below in depth],
        first_steps=[unfreeze_every * below for below in depth],
        measures_gradients=model is task,
    )
    model.compile(
        optimizer=optimizer,
        loss=task.compiled_losses(),
        loss_weights=task.default_loss_weights(),
        weighted_metrics=task.default_metrics(),
        jit_compile=False,  # XLA would compile again for every batch length
        steps_per_execution=settings.steps_per_execution,
    )


def _train(run, source, report):
    """Trains, writes the model that is kept and returns the metrics."""
    task, settings, plan = source.task, source.settings, source.plan
    is_chief = Devices().is_chief
    best = run.best if is_chief and settings.keep == "best" else None
    totals = source.train_examples.weight_totals
    with means_over(source.model, totals, steps=plan.evaluate_every):
        records = train(
            source.model,
            run,
            source,
            plan,
            task=task,
            best=best,
            patience=settings.patience,
            keep_checkpoints=settings.keep_checkpoints,
            report=report,
        )
    if records[-1]["step"] < plan.steps:
        epochs = counted(settings.patience, "epoch")
        report(f"Stopped early: {epochs} without a better {task.METRIC} on the dev data.")
    kept_model = _restore_kept(source, records, best, report)
    outputs = source.outputs_at(kept_model["step"])
    if not is_chief:
        return run.finish()
    if settings.dtype != "float32":
        task, outputs = out_of_scope(_in_float32, run, source)
    task.tune_threshold(outputs, source.dev_examples)
    save_folder(task, task.tokenizer, run.model, overwrite=True)
    predictions = task.decode(outputs, source.dev_examples)
    metrics = {
        "kept": kept_model,
        "best_metric": task.METRIC,
        "dev": task.official_metrics(predictions, source.dev_examples.examples),
        **task.inferred_arguments,
        "train_examples": len(source.train_examples.examples),
        "steps": records[-1]["step"],
        "parameters": task.count_params(),
        "trainable_parameters": sum(math.prod(w.shape) for w in source.model.trainable_weights),
        "seconds": records[-1]["seconds"],
        "history": records,
    }
    if (mix := task.reader.scalar_mix) is not None:
        weights = [round(float(weight), 6) for weight in mix.layer_weights]
        metrics["scalar_mix"] = {"layer_weights": weights, "gamma": round(float(mix.gamma), 6)}
    return run.finish(metrics)


def _restore_kept(source, records, best, report):
    """Restores the weights that are kept; returns what metrics.json says of them."""
    which, record = source.settings.keep, records[-1]
    if which == "best":
        record = best_record(records, source.task.METRIC)
    if best is not None:
        restore_best(source.task, best)
    epoch = record["step"] // source.plan.evaluate_every
    report(
        f"Kept the model of epoch {epoch} of {source.settings.epochs}, the {which} one"
        f"{' on the dev data' if which == 'best' else ''}."
    )
    return {"which": which, "epoch": epoch, "step": record["step"]}


def _in_float32(run, source):
    """-> (the task as loaded from its folder, its outputs on dev), as `evaluate` has them."""
    save_folder(source.task, source.task.tokenizer, run.model, overwrite=True)
    task = load_task(run.model)
    inference = Inference(task, batch_size=source.settings.batch_size)
    return task, inference.outputs(source.dev_examples)
