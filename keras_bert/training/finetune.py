"""Fine-tuning: one run from its examples to its model folder, and series of runs."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import delete
from keras_bert.base.formatting import counted
from keras_bert.base.settings import takes_of_task
from keras_bert.checkpoints import load_task
from keras_bert.inputs.batches import planned_batches, without_autograph
from keras_bert.inputs.tokenized_examples import TokenizedExamples
from keras_bert.programs import COMPILES_EACH_SHAPE, Devices
from keras_bert.readers.examples import not_reported
from keras_bert.tasks.classification import ClassifierSettings
from keras_bert.tasks.losses import means_over
from keras_bert.tasks.outputs import Inference
from keras_bert.tasks.raw_data import weights_of_examples
from keras_bert.training.batch_size import run_or_say_what_fits, with_batch_size
from keras_bert.training.callbacks import check_callbacks
from keras_bert.training.devices import out_of_scope, run_of, scope_of_run
from keras_bert.training.finetuning_examples import (
    FinetuningData,
    LabelledExamples,
    read_data,
    sample,
    sample_size,
)
from keras_bert.training.finetuning_settings import (
    BASELINE,
    RANDOM,
    FinetuneSettings,
    finetune_settings,
)
from keras_bert.training.finetuning_task import compile_for, for_xla
from keras_bert.training.loop import train
from keras_bert.training.parts.bad_batch import BadBatch
from keras_bert.training.parts.contrastive import Contrastive
from keras_bert.training.parts.distillation import Distillation
from keras_bert.training.parts.early_stopping import EarlyStopping
from keras_bert.training.parts.findings import Findings
from keras_bert.training.parts.frozen_encoder import FrozenEncoder
from keras_bert.training.parts.keep_best import KeepBest
from keras_bert.training.parts.lora import Lora
from keras_bert.training.parts.results import LayerMix, Results
from keras_bert.training.parts.tensorboard import TensorBoard
from keras_bert.training.parts.trained_layers import TrainedLayers
from keras_bert.training.parts.tuning import Tuning
from keras_bert.training.parts.user_callbacks import UserCallbacks
from keras_bert.training.plan import plan_epochs
from keras_bert.training.run import Run, finish
from keras_bert.training.run_files import check_own_records
from keras_bert.training.series import over_layers, over_seeds, over_sizes, run_folds, run_series
from keras_bert.training.sweep_settings import SweepSettings, sweep_settings


class _FinetuneClassifier(ClassifierSettings, FinetuneSettings):
    """The arguments of `finetune` for its default task."""


@takes_of_task(_FinetuneClassifier)
@without_autograph
def finetune(*, report=None, **settings) -> dict[str, Any]:
    """Fine-tunes an encoder on labelled examples, or resumes an interrupted run.

    Calling it again with the same arguments resumes exactly: with `deterministic` the weights equal
    those of an uninterrupted run bit for bit. A finished run is not repeated.

    Args:
        **settings: the fields of `FinetuneSettings`, and those of the task.
        report: called with each line about the files and the training, such as `print`.

    `train` and `dev` may also be data in memory: a pandas DataFrame, a `datasets.Dataset`, a
    `tf.data.Dataset`, a list of dictionaries, or a sequence as the task's `dataset` takes it. Of
    these run.json has a hash: a run resumes with the same data only.

    These are the arguments for `task="classifier"`. Another task has its own settings in place of
    the classifier's (see `keras_bert.training.finetuning_settings.finetune_settings(task)`).

    Returns:
        The contents of metrics.json: `kept` (the model that is kept, with its `step` and `epoch`),
        `best_metric` (the metric that selects it), `dev` (its official metrics), what was inferred
        from the training examples (such as `labels`), `train_examples`, `steps`, `parameters`,
        `trainable_parameters`, `seconds` and `history` (see `keras_bert.training.logs.History`).
        With a learned mix of layers also `scalar_mix`: its `layer_weights`, the lowest layer first,
        and `gamma`. `warnings` are sentences on what is off: labels that are never predicted, dev
        texts that are also in the training data, repeated texts with different labels, and a
        training loss that did not fall. If settings such as a threshold were tuned on the dev
        data, they are in `tuned`.

        With several seeds these are of the run that is best on the dev data, with the `mean` and
        `std` of the official metrics over all runs, and `runs` (see
        `keras_bert.training.series.run_series`). With `folds` they are of the model that is trained
        on all examples; `dev` has the metrics of all folds together, `mean` and `std` are over the
        folds, and `runs` has the results of each. With several `train_fraction`s or a `baseline`
        there is `training_sizes` instead of `mean` and `std`: for "model" and "baseline" a list
        with, for each size, the number of `train_examples`, the `metrics` of the seeds that select
        a model, and their `mean` and `std`; and the model that is kept is not of the baseline. With
        `ensemble` there is `ensemble`: the official metrics of the average, whose SavedModel is in
        OUTPUT/ensemble.

    Raises:
        InputError: an argument or a file is invalid, the dev examples do not match the training
            examples, or the output folder contains something else.
    """
    return finetune_given(settings, report or not_reported)


def finetune_given(given, report, *, sample_weight=None, chosen=frozenset()):
    """`finetune` of the arguments `given`.

    Args:
        given: the arguments by name.
        report: called with each line about the files and the training.
        sample_weight: the weight of each row of `train`, which is in memory, in the loss, float32
            (N,), or None. Runs on a fraction of the examples or on folds take no weights.
        chosen: see `FinetuningData`.
    """
    settings = finetune_settings(given.get("task", "classifier")).of(given)
    check_callbacks(settings.callbacks)
    with scope_of_run(settings, report, command="finetune") as settings:
        data = read_data(settings, given, report)
        data = dataclasses.replace(data, chosen=chosen)
        if sample_weight is not None:
            weights = weights_of_examples(sample_weight, data.train.examples)
            data.train.weight_by(example_factors=weights)
            inputs = {**data.inputs, "train": data.train.fingerprint}
            data = dataclasses.replace(data, inputs=inputs)
        first, settings = settings, with_size_of(data, data.recipe.resolved(settings), report)
        if settings.folds is not None:
            return run_folds(settings, data, partial(finetune_on, report=report), report)
        runs = settings.runs()
        if len(runs) == 1:
            return finetune_on(data, settings, report)
        return _finetune_several(runs, settings, first, data, given, report)


def with_size_of(data, settings, report, *, command="finetune"):
    """`with_batch_size`, tried on the longest training examples, without the parts of a run."""

    most, train = len(data.train), partial(_train_longest, data)
    return with_batch_size(settings, train, command=command, most=most, report=report)


def _train_longest(data, settings):
    """Trains a new model for a step on the longest training examples of `FinetuningData`."""
    settings, _ = data.recipe.with_defaults(settings, len(data.train.examples), not_reported)
    task = data.recipe.build(settings, not_reported)
    plan = finetuning_plan(settings, data.train)
    compile_for(settings, plan, model=task, task=task)
    examples = data.train.in_few_lengths() if COMPILES_EACH_SHAPE else data.train
    longest = np.argsort(examples.lengths, kind="stable")[-settings.batch_size :]
    batches, devices = planned_batches([longest], examples.batch), Devices()
    devices.prepare(task, batches)
    with means_over(task, examples.weight_totals, steps=1):
        task.fit(devices.distributed(batches), shuffle=False, verbose=0)


class _SweepClassifier(ClassifierSettings, SweepSettings):
    """The arguments of `sweep` for its default task."""


@takes_of_task(_SweepClassifier)
@without_autograph
def sweep(*, report=None, **settings) -> dict[str, Any]:
    """Fine-tunes with every combination of learning rate, batch size, epochs, layers and seed.

    The model with the highest metric on the dev data is kept. Calling it again with the same
    arguments resumes the interrupted run; finished runs are not repeated.

    Args:
        **settings: the fields of `SweepSettings`, and those of the task.
        report: called with each line about the files and the training, such as `print`.

    `train` and `dev` may also be data in memory, as for `keras_bert.finetune`.

    These are the arguments for `task="classifier"`. Another task has its own settings in place of
    the classifier's (see `keras_bert.training.sweep_settings.sweep_settings(task)`).

    Returns:
        The contents of metrics.json: the metrics of the best run, as from `keras_bert.finetune`,
        its name as `kept["run"]`, and `runs`: by name, each run's `learning_rate`, `batch_size` and
        `epochs` (and `layers` and `seed` of several), the `metric` that the runs are compared by,
        `kept`, `dev`, `steps` and `seconds`. With several `layers` also `by_layers`: for each of
        them the best combination's `learning_rate`, `batch_size` and `epochs`, the `metrics` of its
        seeds, and their `mean` and `std`.

    Raises:
        InputError: see `keras_bert.finetune`.
    """
    return sweep_given(settings, report or not_reported)


def sweep_given(given, report, *, chosen=frozenset()):
    """`sweep` of the arguments `given`; the arguments are those of `finetune_given`."""
    run_settings = finetune_settings(given.get("task", "classifier"))
    settings = sweep_settings(given.get("task", "classifier")).of(given)
    check_callbacks(settings.callbacks)
    with scope_of_run(settings, report, command="sweep") as settings:
        first = run_settings.of(next(iter(settings.runs().values())))
        data = read_data(first, given, report)
        default_settings = {n for n in ("learning_rate", "epochs") if getattr(settings, n) is None}
        data = dataclasses.replace(data, chosen=chosen | default_settings)
        count = len(data.train.examples)
        settings = data.recipe.resolved(settings)
        settings = data.recipe.with_defaults_of_sweep(settings, count, report)
        runs = {name: run_settings.of(run) for name, run in settings.runs().items()}
        one_run = _runs_on(data, report)
        return run_series(
            settings,
            runs,
            lambda name, run: one_run(run),
            command="sweep",
            inputs=data.inputs,
            varied=settings.varied,
            summary=lambda metrics, models: (
                over_layers(metrics, runs) if "layers" in settings.varied else {}
            ),
            report=report,
        )


def _finetune_several(runs, settings, first, data, given, report):
    """Makes the runs of several seeds, fractions and starts, and keeps the best model.

    Args:
        runs: the settings of each run by name.
        settings: those of all, resolved by the recipe of the data; `first` are the unresolved ones.
        data: what `read_data` gives.
        given: the caller's arguments by name.
        report: called with each line about the runs.
    """
    one_run, inputs = {False: _runs_on(data, report)}, dict(data.inputs)
    is_baseline = {name: name.startswith(BASELINE) for name in runs}
    if settings.baseline is not None:
        baseline = read_baseline(data, first, given, report)
        one_run[True] = _runs_on(baseline, report)
        inputs[BASELINE] = baseline.inputs["model"]
        runs = {n: baseline.recipe.resolved(x) if is_baseline[n] else x for n, x in runs.items()}
    varied, summarize = ("train_fraction", "seed"), over_sizes
    if len(settings.fractions) == 1 and settings.baseline is None:
        varied, summarize = ("seed",), over_seeds

    def summary(metrics, models):
        summary = summarize(metrics, runs)
        if settings.ensemble:
            # Outside the scope of a strategy, on one device of this process.
            summary |= out_of_scope(_export_mean, settings, data.dev, models, report)
        return summary

    return run_series(
        settings,
        runs,
        lambda name, run: one_run[is_baseline[name]](run),
        command="finetune",
        inputs=inputs,
        varied=varied,
        candidates=[name for name in runs if not is_baseline[name]],
        summary=summary,
        keeps_models=settings.ensemble,
        report=report,
    )


def read_baseline(data, settings, given, report):
    """`read_data` of the start that the setting `baseline` names, on examples that are read."""
    is_random = settings.baseline == RANDOM
    if not is_random:
        start = {"model": settings.baseline, "architecture": None, "vocab": None}
        settings = dataclasses.replace(settings, **start, cased=False)
    examples = data.train.examples, data.dev.examples, data.recipe.inferred_arguments
    return read_data(settings, given, report, examples=examples, is_random=is_random)


def _runs_on(data, report):
    """A function of settings that makes one run after another on the same `FinetuningData`.

    The outputs of a frozen encoder that a run computes are there for the runs after it.
    """
    encoded = {}
    return lambda settings: finetune_on(data, settings, report, encoded=encoded)


@dataclasses.dataclass(kw_only=True)
class FinetuningRun(Run):
    """A `Run` on labelled examples.

    Attributes:
        data: the `FinetuningData`.
        examples, dev: the `TokenizedExamples` of this run; `dev` is None if nothing is evaluated.
        count: how many examples are trained on.
        default_settings: the settings with the default rate and epochs.
        encoded: of a series with a frozen encoder, `shared` of `compute_once`.
        splits: what the model is trained and evaluated on, a list of `SequenceBatches`.
        losses: the losses by output; None is the task's own, with its metrics.
        kept, outputs: which model is kept, and its outputs on `dev`, once they are known.
    """

    data: FinetuningData
    examples: TokenizedExamples
    count: int
    default_settings: FinetuneSettings
    encoded: dict
    splits: list = dataclasses.field(default_factory=list)
    losses: dict | None = None
    kept: dict | None = None
    outputs: dict | None = None

    @property
    def dev(self):
        return self.data.dev

    def dev_metrics(self):
        """The official metrics of the kept model, or those over the folds."""
        if self.dev is None:
            return self.data.over_folds.metrics
        return official_metrics(self.task, self.outputs, self.dev)


# In the order in which their callbacks are called, they select (the weights before what is tuned
# with them), and their keys of metrics.json come: the findings are about the results.
PARTS = (
    *(
        TrainedLayers,
        Distillation,
        FrozenEncoder,
        Contrastive,
        TensorBoard,
        BadBatch,
        UserCallbacks,
        EarlyStopping,
        KeepBest,
        Lora,
    ),
    *(Results, Findings, Tuning, LayerMix),
)


def finetune_on(data, settings, report, *, encoded=None, command="finetune"):
    """Makes a run in the folder `settings.output`, or resumes it there; returns the metrics.

    Args:
        data: the `FinetuningData` that `read_data` gives.
        settings: those of the run, resolved by the recipe of the data but for its defaults.
        report: called with each line about the run.
        encoded: of a series with a frozen encoder, `shared` of `compute_once`.
        command: the command that makes it.
    """

    def run():
        return _run_on(data, settings, report, encoded=encoded, command=command)

    return run_or_say_what_fits(run, settings, partial(_train_longest, data), report=report)


def _run_on(data, settings, report, *, encoded, command):
    count = sample_size(settings.train_fraction, data.train.examples)
    settings, defaults = data.recipe.with_defaults(settings, count, report)
    plan = finetuning_plan(settings, data.train)
    with run_of(settings, command=command, inputs=data.inputs) as folder:
        if folder.finished:
            report(f"The run in {settings.output} is finished already. These are its results.")
            return folder.read_metrics()
        task, examples = data.recipe.build(settings, report), data.train
        if count < len(data.train.examples):
            examples_in_all = counted(len(data.train.examples), "training example")
            report(f"Training on {count:,} of the {examples_in_all}.")
            drawn = sample(data.train.examples, count, seed=settings.seed)
            examples = task.features(drawn, labelled=True)
            plan = finetuning_plan(settings, examples)
        run = FinetuningRun(
            folder=folder,
            settings=settings,
            task=task,
            plan=plan,
            report=report,
            data=data,
            examples=examples,
            count=count,
            default_settings=defaults,
            encoded={} if encoded is None else encoded,
        )
        run.take_parts(PARTS)
        return finish(run, _trained(run))


def _trained(run):
    """Compiles and trains the model of a run; returns the records."""
    task, plan, settings = run.task, run.plan, run.settings
    dev = [] if run.dev is None else [run.dev]
    smallest_batch = len(run.examples) // plan.evaluate_every
    run.devices.check_batch_size(min([smallest_batch, *map(len, dev)]))
    if COMPILES_EACH_SHAPE:
        run.examples, *dev = (split.in_few_lengths() for split in (run.examples, *dev))
    run.splits, fixed_shape_examples = [run.examples, *dev], None
    for part in run.active_parts:
        part.prepare(run)
    if run.model is task and not COMPILES_EACH_SHAPE:
        fixed_shape_examples = for_xla(
            task, run.examples, epochs=settings.epochs, steps_per_epoch=plan.evaluate_every
        )
        run.splits[0] = fixed_shape_examples or run.examples
    jit_compile = fixed_shape_examples is not None
    compile_for(
        settings, plan, model=run.model, task=task, losses=run.losses, jit_compile=jit_compile
    )
    run.source = LabelledExamples(
        run.model, task, *run.splits, dev_examples=run.dev, plan=plan, settings=settings
    )
    with means_over(run.model, run.examples.weight_totals, steps=plan.evaluate_every):
        return train(run)


def finetuning_plan(settings, examples):
    """The `Plan` of a run; `InputError` if an epoch has more steps than examples."""
    count = len(examples)
    plan = plan_epochs(
        settings.epochs,
        examples=count,
        batch_size=settings.batch_size,
        checkpoint_every=settings.checkpoint_every,
        steps_per_execution=settings.steps_per_execution,
    )
    if plan.evaluate_every > count:
        raise InputError.naming(
            "An epoch would have {}, a multiple of {steps_per_execution}, for {}. Use a smaller "
            "{steps_per_execution}.",
            counted(plan.evaluate_every, "step"),
            counted(count, "example"),
        )
    return plan


def official_metrics(task, outputs, examples):
    """The official metrics of a task's outputs for `TokenizedExamples`."""
    return task.official_metrics(task.decode(outputs, examples), examples.examples)


def _export_mean(settings, dev_examples, models, report):
    """Exports the mean of the models in some folders to OUTPUT/ensemble, as one SavedModel.

    Returns what metrics.json contains of it: `ensemble`, its official metrics.
    """
    task, *others = map(load_task, models)
    task.average_with(others)
    outputs = Inference(task, batch_size=settings.batch_size).outputs(dev_examples)
    task.tune_threshold(outputs, dev_examples)
    metrics = official_metrics(task, outputs, dev_examples)
    output = Path(settings.output) / "ensemble"
    check_own_records(output.parent, [output.name], command="finetune")
    delete(output)  # of an interrupted run
    version = task.export(output)
    report(f"Exported the average of {counted(len(models), 'model')} to {version}.")
    return {"ensemble": metrics}
