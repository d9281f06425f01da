"""The examples of fine-tuning: read and tokenized once for all runs, and how a run uses them."""

import dataclasses
from functools import cached_property
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.model_folder import fingerprint_of_folder
from keras_bert.encoders.config import check_max_length
from keras_bert.inputs.batches import SequenceBatches, planned_batches
from keras_bert.inputs.tokenized_examples import TokenizedExamples
from keras_bert.optimizers.optimizer import layers_to_train
from keras_bert.programs import Devices, replica_count
from keras_bert.readers.examples import (
    divided,
    held_back,
    line_on_held_back,
    line_on_missing_labels,
    report_source,
)
from keras_bert.readers.labels import unknown_labels_note
from keras_bert.readers.sources import files_of
from keras_bert.tasks import settings_class, task_class
from keras_bert.tasks.findings import counts_by_label
from keras_bert.tasks.losses import check_can_average, means_over
from keras_bert.tasks.outputs import collected_outputs
from keras_bert.text.vocabulary import note_on_unknown
from keras_bert.training.earlier_task import line_on_labels, line_on_new_head
from keras_bert.training.finetuning_task import StartingPoint, TaskRecipe, draw
from keras_bert.training.parts.contrastive import line_on_few_labels
from keras_bert.training.parts.early_stopping import PREDICTED_LABELS
from keras_bert.training.plan import BatchSource
from keras_bert.training.selection import quality
from keras_bert.training.series import OverFolds


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningData:
    """The tokenized examples of one or more runs, and the recipe of their tasks.

    Attributes:
        recipe: the `TaskRecipe`.
        train, dev: `TokenizedExamples`; `dev` is None if all examples are trained on.
        inputs: fingerprints of everything that a run depends on except its settings.
        over_folds: without `dev`, the `OverFolds` of the runs before.
        teaching: the `Teaching` of a student; its answers are those of `train`, in order.
        chosen: the names of settings that the series of runs chooses, and not the user. No warning
            advises to change them.
    """

    recipe: TaskRecipe
    train: TokenizedExamples
    dev: TokenizedExamples | None
    inputs: dict
    over_folds: OverFolds | None = None
    teaching: Any = None
    chosen: frozenset[str] = frozenset()

    def with_examples(self, task, train, dev=None, *, over_folds=None):
        """The same with other examples, lists that `task` tokenizes."""
        train = task.features(train, labelled=True)
        dev = None if dev is None else task.features(dev, labelled=True)
        inputs = {**self.inputs, "train": train.fingerprint, "dev": dev and dev.fingerprint}
        return dataclasses.replace(self, train=train, dev=dev, inputs=inputs, over_folds=over_folds)


def read_data(settings, given, report, *, examples=None, is_random=False, start=None):
    """Returns the `FinetuningData` of some runs.

    Args:
        settings: the settings of the first run, of `finetune_settings`.
        given: the caller's arguments by name. A model of the same task and labels keeps its own
            options if none are given.
        report: called with each line about the files and the head.
        examples: labelled examples for training and for evaluation, and the arguments of the task
            that follow from the former; None reads the files.
        is_random: see `StartingPoint`.
        start: the `StartingPoint`; None is that of the settings.

    Raises:
        InputError: a file or the starting point is invalid, or the dev examples do not match the
            training examples.
    """
    task_cls = task_class(settings.task)
    start = start or StartingPoint.of(settings, is_random=is_random)
    earlier, why_new = start.earlier_task(task_cls)
    options = {} if earlier is None else earlier.options_not_given(settings, given)
    # How files are read depends on the class alone: their labels are not known yet.
    options_of_reading = {name: v for name, v in options.items() if name in settings.columns}
    settings = dataclasses.replace(settings, **options_of_reading)
    drawn = encoder, tokenizer = draw(start, settings)
    longest = encoder.default_max_length(settings_class(settings.task).MAX_LENGTH)
    check_max_length(settings.max_length or longest, encoder.config, tokenizer)
    layers_to_train(encoder.layer_groups, last=settings.train_layers)  # raises for too many
    if examples is None:
        remembered = None if earlier is None else earlier.columns
        examples = _read(task_cls, settings, report, remembered)
    train, dev, inferred_arguments = examples
    _check_fractions(settings.fractions, train)
    report(start.description)
    if start.appended:
        report(f"Appended special tokens that the model lacks: {listed(start.appended)}.")
    if earlier is not None:
        inferred_arguments = _in_order_of(earlier, inferred_arguments)
        arguments = {**settings.arguments, **options}
        labels = task_cls.labels_with(inferred_arguments, **arguments)
        if not earlier.has_labels(labels) and earlier.shares_labels(labels):
            report(line_on_labels(earlier.labels, labels))
            options_of_labels = earlier.options_with(labels)
            options = {
                name: value for name, value in options.items() if name not in options_of_labels
            }
        elif not earlier.has_labels(labels):
            why_new = f"{settings.model} has other labels ({listed(earlier.labels)})."
    if why_new is not None:
        report(line_on_new_head(why_new, earlier, options_of_reading))
        earlier, options = None, options_of_reading
    settings = dataclasses.replace(settings, **options)
    if encoder.came_with_pooling is not None and getattr(settings, "pooling", "") is None:
        pooling = {"pooling": encoder.came_with_pooling}
        settings, options = dataclasses.replace(settings, **pooling), {**options, **pooling}
        report(_line_on_pooling(encoder, task_cls))
        if line := line_on_few_labels(settings, train, inferred_arguments.get("labels", ())):
            report(line)
    elif settings.contrastive and settings.pooling is None:
        # As sentence-transformers reads a folder that names no pooling.
        options = {**options, "pooling": "mean"}
        settings = dataclasses.replace(settings, pooling="mean")
    recipe = TaskRecipe(
        task_class=task_cls,
        start=start,
        earlier=earlier,
        options=options,
        inferred_arguments=inferred_arguments,
        columns=train[0].source.schema,
        max_length=settings.max_length or longest,
        hidden_size=encoder.config.hidden_size,
    )
    task = recipe.build(settings, report, drawn=drawn)
    recipe.built[settings.seed, settings.layers] = task
    if settings.ensemble:
        check_can_average(task.default_losses())
        task.check_export()
    task.evaluate_on(dev)
    train, dev = (task.features(split, labelled=True) for split in (train, dev))
    _report_on_tokens(task, train, dev, report)
    inputs = {
        "model": start.fingerprint,
        "train": train.fingerprint,
        "dev": dev.fingerprint,
        "inferred_arguments": inferred_arguments,
    }
    for name in ("static_vectors", "guide"):
        if (folder := getattr(settings, name, None)) is not None:
            inputs[name] = fingerprint_of_folder(find_model_folder(folder))
    return FinetuningData(recipe=recipe, train=train, dev=dev, inputs=inputs)


def _line_on_pooling(encoder, task_cls):
    """A line on the pooling of a head, which is that of the model's folder."""
    pooling = encoder.came_with_pooling
    usual = encoder.tensor_names(encoder.config).names_for(task_cls.TASK_TYPE).pooling
    line = f"The pooling is {pooling}, which the model's folder gives."
    if usual in (None, pooling):
        return line
    return (
        f'{line} Only with `pooling="{usual}"` (--pooling {usual}) could the library '
        "transformers open the new model with its head, too."
    )


def _read(task_cls, settings, report, remembered):
    """-> (training examples, dev examples, arguments of the task inferred from the former).

    `remembered` are the columns of the data that the model was trained on before, or None.
    """

    def examples_of(file):
        report_source(file, report)
        examples = list(file)
        if not examples:
            raise InputError(f"{file.name} contains no examples.")
        for note in dict.fromkeys((*file.notes(), *task_cls.notes(examples))):
            report(f"Note: {note}")
        return examples

    def read(data, schema, **inferred):
        """-> (examples of a file or several, the schema of the last)."""
        examples = []
        for path in files_of(data):
            file = task_cls.read(path, schema=schema, **inferred, **settings.columns)
            examples += examples_of(file)
            schema = file.schema
        return examples, schema

    train, schema = read(settings.train, remembered)
    inferred_arguments = task_cls.infer_arguments(train)
    if settings.folds is not None:
        report(f"Cross-validation: {settings.folds} folds of {counted(len(train), 'example')}.")
        train, dev = divided(train, 0, settings.folds)
    elif settings.dev is None:
        train, dev = held_back(train)
        report(line_on_held_back(train, dev))
    else:
        dev, _ = read(settings.dev, schema, inferred_arguments=inferred_arguments)
    report(task_cls.describe_examples(train, dev, inferred_arguments))
    if note := line_on_missing_labels(train, dev):
        report(f"Note: {note}")
    return train, dev, inferred_arguments


def _check_fractions(fractions, examples):
    """Raises `InputError` for a `train_fraction` of more examples than there are."""
    for fraction in fractions:
        if fraction > len(examples):
            raise InputError.naming(
                "{train_fraction} is {:.0f} examples, but {} has {:,}.",
                fraction,
                examples[0].source.name,
                len(examples),
            )


def _in_order_of(earlier, inferred_arguments):
    """The inferred arguments, with the labels in the order of an earlier task that has the same."""
    labels = inferred_arguments.get("labels", ())
    if earlier.labels and earlier.has_labels(labels):
        return {**inferred_arguments, "labels": list(earlier.labels)}
    return inferred_arguments


def _report_on_tokens(task, train, dev, report):
    """Reports [UNK] tokens, examples that the task cannot use, and a dev file that is unsuitable.

    Raises `InputError` if no training example can be used.
    """
    for examples, which in ((train, "training"), (dev, "dev")):
        if note := note_on_unknown(*examples.unknown, which=which):
            report(note)
        if note := _note_on_length(task, examples, which):
            report(f"Note: {note}")
        count, reason = examples.unfit
        if count and which == "training" and count == len(examples.examples):
            raise InputError.naming("No training example can be used: {}.", reason)
        if count:
            treatment = "left out" if which == "training" else "counted as wrong"
            report(f"Note: {counted(count, f'{which} example')} {treatment}: {reason}.")
    if unknown := task.unknown_labels(dev.examples):
        report(f"Note: {unknown_labels_note(dev.examples[0].source.name, unknown)}")
    if train.fingerprint == dev.fingerprint:
        report(
            "Note: the dev examples are the training examples; metrics on them do not show how "
            "the model does on new text."
        )


def _note_on_length(task, examples, which):
    """A sentence on the examples that are longer than the model reads, or None."""
    count, longest = len(examples.examples), f"{task.settings.max_length} tokens"
    all_of = f"of the {counted(count, f'{which} example')}"
    if len(examples) > count and getattr(task, "reads_windows", False):
        several = np.count_nonzero(np.bincount(examples.example_of_sequence) > 1)
        return (
            f"{several:,} {all_of} are longer than {longest} and are read in windows, "
            f"{len(examples):,} in all."
        )
    if not examples.cut:
        return None
    windows = ""
    if "long_texts" in task.SETTINGS.names() and len(task.text_names) == 1:
        windows = ', or `long_texts="windows"` (--long-texts windows) to read all of them'
    return (
        f"{examples.cut:,} {all_of} are longer than {longest}, and cut. Set a larger `max_length` "
        f"(--max-length){windows}."
    )


def sample_size(fraction, examples):
    """How many of a list of examples a `train_fraction` is: a fraction up to 1, or a number."""
    return max(1, round(fraction * len(examples))) if fraction <= 1 else int(fraction)


def sample(examples, count, *, seed):
    """So many of a list of examples in their order, those of a smaller sample among them."""
    order = np.random.default_rng(seed).permutation(len(examples))
    return [examples[number] for number in np.sort(order[:count])]


class LabelledExamples(BatchSource):
    """Examples in memory, in batches of similar length.

    Args:
        model: what is trained, compiled: the task, or the head alone that `freeze` gives.
        task: the `Task` of the examples.
        train, dev: the `SequenceBatches` that the model takes; without `dev` nothing is evaluated.
        dev_examples: the `TokenizedExamples` of `dev`.
        plan: the `Plan` of the run.
        settings: the `FinetuneSettings`.
    """

    def __init__(
        self,
        model,
        task,
        train: SequenceBatches,
        dev: SequenceBatches | None = None,
        *,
        dev_examples: TokenizedExamples | None,
        plan,
        settings,
    ):
        self.task = task
        self.train = train
        self.dev_examples = dev_examples
        self.plan = plan
        self.settings = settings
        self._model, self._dev = model, dev
        # Of the model that would be kept now: (quality, step, outputs).
        self._best_outputs = None, None, None
        if model is task:  # a head alone reads no tokens
            self.tokens_per_step = float(train.lengths.sum() / plan.evaluate_every)

    def training(self, first_step):
        return self.train.training_batches(
            steps=self.plan.evaluate_every,
            seed=self.settings.seed,
            epochs=self.settings.epochs,
            first_step=first_step,
        )

    def held_out_metrics(self, step):
        """Keras's metrics on the dev examples, and the official ones if the METRIC is one.

        Keras's leave out labels that the task does not have, which are errors: then, too. There is
        also the number of labels that are predicted, if the dev examples have several.
        """
        if self._dev is None:
            return {}
        metrics, outputs = self._evaluate()
        is_of_keras = self.task.METRIC in metrics and not self._has_unknown_labels
        if not is_of_keras:
            # Epochs are compared by the predictions that a folder of each would make.
            self.task.tune_threshold(outputs, self.dev_examples)
        predictions = self.task.decode(outputs, self.dev_examples)
        official = self.task.official_metrics(predictions, self.dev_examples.examples)
        if not is_of_keras:
            metrics |= {name: v for name, v in official.items() if isinstance(v, float)}
        _, expected, predicted = counts_by_label(official)
        if np.count_nonzero(expected) > 1:
            metrics[PREDICTED_LABELS] = np.count_nonzero(predicted)
        step_quality, (best, *_) = quality(metrics, self.task.METRIC), self._best_outputs
        if self.settings.keep == "last" or best is None or step_quality > best:
            self._best_outputs = step_quality, step, outputs
        return metrics

    def outputs_at(self, step):
        """The model's outputs on dev with its weights after `step` steps, which it has now.

        An evaluation in this session is not computed again.
        """
        _, step_quality, outputs = self._best_outputs
        return outputs if step == step_quality else self._evaluate()[1]

    @cached_property
    def _evaluate(self):
        return Evaluation(self._model, self._dev, batch_size=self.settings.batch_size)

    @cached_property
    def _has_unknown_labels(self):
        return bool(self.task.unknown_labels(self.dev_examples.examples))


class Evaluation:
    """The metrics of `model.evaluate` together with the outputs that they are computed from.

    Keras's own discards the outputs. Official metrics, threshold tuning and the end of a run need
    them; predicting again would do the same work, and trace another graph. Every replica of a
    strategy computes a part.

    Args:
        model: a compiled functional model with dictionaries in and out.
        examples: `SequenceBatches`.
        batch_size: sequences in a batch.
    """

    def __init__(self, model, examples, *, batch_size):
        devices = Devices()
        self.model = model
        self._examples = examples
        self._loss = keras.metrics.Mean(name="loss")
        self._plan = devices.own_parts(examples.lengths, batch_size=batch_size)
        parts = planned_batches([part for step in self._plan for part in step], examples.batch)
        devices.prepare(model, parts)
        self._batches = devices.one_each(parts)
        assigned = [*model.metrics_variables, *self._loss.variables]
        self._step = devices.on_replicas(self._evaluate, parts.element_spec, [model], assigned)

    def __call__(self):
        """Returns (metrics by name, outputs by name as of `collected_outputs`).

        Examples without labels, which the loss is not for, have no metrics.
        """
        self.model.reset_metrics()
        self._loss.reset_state()
        totals, count = self._examples.weight_totals, len(self._examples)
        with means_over(self.model, totals, examples=count):
            outputs = collected_outputs(self.model, count, self._evaluated_batches())
        metrics = {**self.model.get_metrics_result(), "loss": self._loss.result()}
        metrics = metrics if self._examples.has_labels else {}
        return {name: float(value) for name, value in metrics.items()}, outputs

    def _evaluated_batches(self):
        for numbers, batch in zip(self._plan, self._batches, strict=True):
            yield from zip(numbers, self._step(batch), strict=True)

    def _evaluate(self, inputs, labels=None, weights=None):
        """One batch: (B, …) by name -> the outputs; updates the metrics."""
        outputs = self.model(inputs, training=False)
        if labels is None:
            return {name: ops.cast(output, "float32") for name, output in outputs.items()}
        loss = self.model.compute_loss(inputs, labels, outputs, weights, training=False)
        loss = loss * replica_count()  # each replica has its part of the mean
        self._loss.update_state(loss, sample_weight=ops.shape(keras.tree.flatten(inputs)[0])[0])
        self.model.compute_metrics(inputs, labels, outputs, weights)
        return {name: ops.cast(output, "float32") for name, output in outputs.items()}
