"""Fine-tuning as one call: a single run, a run per seed, or a sweep; the best model is kept."""

import contextlib
import dataclasses
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import delete, system_errors
from keras_bert.base.settings import takes_of_task
from keras_bert.inputs.batches import without_autograph
from keras_bert.readers.sources import not_reported
from keras_bert.tasks.settings import ClassifierSettings
from keras_bert.training.checkpoint import best_metric_value, quality_of_run, rank
from keras_bert.training.finetuning_run import Finetuning
from keras_bert.training.run_folder import RunFolder, check_output, read_metrics
from keras_bert.training.settings import (
    BASELINE,
    FinetuneSettings,
    SweepSettings,
    finetune_settings,
    sweep_settings,
)
from keras_bert.training.strategies.devices import Devices
from keras_bert.training.strategies.scope import scope_of


class _FinetuneClassifier(ClassifierSettings, FinetuneSettings):
    """The arguments of `finetune` for its default task."""


@takes_of_task(_FinetuneClassifier)
@without_autograph
def finetune(*, report=None, **settings) -> dict[str, Any]:
    """Fine-tunes an encoder on labelled examples, or resumes an interrupted run.

    Calling it again with the same arguments resumes exactly: with `deterministic` the weights equal
    those of an uninterrupted run bit for bit. A finished run is not repeated.

    Args:
        {settings}
        report: called with each line about the files and the training, such as `print`.

    `train` and `dev` may also be data in memory: a pandas DataFrame, a `datasets.Dataset`, a
    `tf.data.Dataset`, a list of dictionaries, or a sequence as the task's `dataset` takes it. Of
    these run.json has a hash: a run resumes with the same data only.

    These are the arguments for `task="classifier"`. Another task has its own settings in place of
    the classifier's (see `keras_bert.training.settings.finetune_settings(task)`).

    Returns:
        The contents of metrics.json: `kept` (the model that is kept, with its `step` and `epoch`),
        `best_metric` (the metric that selects it), `dev` (its official metrics), what was inferred
        from the training examples (such as `labels`), `train_examples`, `steps`, `parameters`,
        `trainable_parameters`, `seconds` and `history` (see
        `keras_bert.training.monitoring.history.History`). With a learned mix of layers also
        `scalar_mix`: its `layer_weights`, the lowest layer first, and `gamma`. With several seeds
        these are of the run that is best on the dev data, with the `mean` and `std` of the official
        metrics over all runs, and `runs` (see `keras_bert.training.finetune.run_series`). With
        several `train_fraction`s or a `baseline` there is `training_sizes` instead of `mean` and
        `std`: for "model" and "baseline" a list with, for each size, the number of
        `train_examples`, the `metrics` of the seeds that select a model, and their `mean` and
        `std`; and the model that is kept is not of the baseline. With `ensemble` there is
        `ensemble`: the official metrics of the average, whose SavedModel is in OUTPUT/ensemble.

    Raises:
        InputError: an argument or a file is invalid, the dev examples do not match the training
            examples, or the output folder contains something else.
    """
    given, report = settings, report or not_reported
    first = settings = finetune_settings(given.get("task", "classifier")).of(given)
    with _opened(settings, first, given, command="finetune", report=report) as finetuning:
        settings = finetuning.resolved(settings)
        runs = settings.runs()
        if len(runs) == 1:
            return finetuning.run(settings, report)
        series = {"command": "finetune", "report": report}
        if len(settings.fractions) == 1 and settings.baseline is None:
            return run_series(
                finetuning,
                settings,
                runs,
                varied=("seed",),
                summary=_over_seeds,
                ensemble=finetuning.ensemble if settings.ensemble else None,
                **series,
            )
        others = {}
        if settings.baseline is not None:
            baseline = finetuning.baseline(first, report)
            others = {name: baseline for name in runs if name.startswith(BASELINE)}
            runs = {n: baseline.resolved(run) if n in others else run for n, run in runs.items()}
        return run_series(
            finetuning,
            settings,
            runs,
            varied=("train_fraction", "seed"),
            summary=lambda finished: {"training_sizes": _over_sizes(finished, runs)},
            others=others,
            **series,
        )


class _SweepClassifier(ClassifierSettings, SweepSettings):
    """The arguments of `sweep` for its default task."""


@takes_of_task(_SweepClassifier)
@without_autograph
def sweep(*, report=None, **settings) -> dict[str, Any]:
    """Fine-tunes with every combination of learning rate, batch size, epochs, layers and seed.

    The model with the highest metric on the dev data is kept. Calling it again with the same
    arguments resumes the interrupted run; finished runs are not repeated.

    Args:
        {settings}
        report: called with each line about the files and the training, such as `print`.

    `train` and `dev` may also be data in memory, as for `keras_bert.finetune`.

    These are the arguments for `task="classifier"`. Another task has its own settings in place of
    the classifier's (see `keras_bert.training.settings.sweep_settings(task)`).

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
    given, report = settings, report or not_reported
    of_run = finetune_settings(given.get("task", "classifier"))
    settings = sweep_settings(given.get("task", "classifier")).of(given)
    first = of_run.of(next(iter(settings.runs().values())))
    with _opened(settings, first, given, command="sweep", report=report) as finetuning:
        settings = finetuning.resolved(settings)
        runs = {name: of_run.of(values) for name, values in settings.runs().items()}
        return run_series(
            finetuning,
            settings,
            runs,
            varied=settings.varied,
            command="sweep",
            report=report,
            summary=lambda finished: (
                {"by_layers": _over_layers(finished, runs)} if "layers" in settings.varied else {}
            ),
        )


@contextlib.contextmanager
def _opened(settings, first_run, given, *, command, report):
    """The `Finetuning` of a command, in the scope of its strategy."""
    with scope_of(settings.strategy, report):
        if Devices().workers == 1:  # of several, the chief reports an error when all have read
            check_output(settings.output, command=command, force=settings.force)
        yield Finetuning(first_run, report, given=given)


def run_series(
    finetuning,
    settings,
    runs,
    *,
    varied,
    command,
    report,
    summary=None,
    others=None,
    ensemble=None,
):
    """Makes the runs that are not finished yet, and keeps the model of the best run.

    Each run in OUTPUT/runs/NAME is what `keras_bert.finetune` makes with its settings, except that
    only the best model is kept, in OUTPUT/model: the one with the highest `best_metric` on the dev
    data, of equal ones with the lowest loss there.

    Args:
        finetuning: the `Finetuning`.
        settings: the settings of the series, whose `output` is OUTPUT.
        runs: the settings of each run, of `finetune_settings`, by name.
        varied: the names of the settings that differ between runs.
        command: the command that writes OUTPUT.
        report: called with each line about the runs.
        summary: a function from the metrics of all runs, by name, to a dictionary that is added to
            OUTPUT/metrics.json.
        others: of runs that start from a baseline, the `Finetuning` by name. They are not the best
            run.
        ensemble: a function that is called at the end with the settings and the folders of all
            models, which are then kept, and returns more that is added to OUTPUT/metrics.json.

    Returns:
        The contents of OUTPUT/metrics.json: the metrics of the best run, with its name as
        `kept["run"]`; `runs`, by name each run's `varied` settings, its `metric`, `kept`, `dev`,
        `steps` and `seconds`; and the `summary`.

    Raises:
        InputError: OUTPUT contains something else, or another series.
    """
    if Devices().workers > 1:
        raise InputError(
            f"`{command}` cannot make several runs with `strategy` multiworker: each run would "
            "wait for all workers. Give every worker its own runs, with `strategy` mirrored."
        )
    others = others or {}
    inputs = dict(finetuning.inputs)
    for other in others.values():
        inputs[BASELINE] = other.inputs["model"]
    with RunFolder.of(settings, command=command, inputs=inputs) as folder:
        if folder.finished:
            report(f"The runs in {folder.path} are finished already. These are their results.")
            return folder.read_metrics()
        finished = {}
        for name, of_run in runs.items():
            report(f"Run {len(finished) + 1} of {len(runs)}: {name}.")
            of_run = dataclasses.replace(of_run, output=str(folder.runs / name), force=False)
            start = others.get(name, finetuning)
            finished[name] = _finished(of_run.output) or start.run(of_run, report)
            candidates = [name for name in finished if name not in others] or [name]
            best = max(candidates, key=lambda name: quality_of_run(finished[name]))
            for other in finished:
                delete(folder.runs / other / "checkpoints")
                if other != best and ensemble is None:
                    delete(folder.runs / other / "model")
            gc.collect()  # a model contains reference cycles, and the next one needs the memory
        model = folder.runs / best / "model"
        with system_errors(folder.model):
            if model.exists():  # else it was moved before an interruption
                os.rename(model, folder.model)
        folder.check_model(f"delete {folder.runs / best} to train it again")
        of_runs = {
            name: {
                **{setting: getattr(runs[name], setting) for setting in varied},
                "metric": best_metric_value(metrics),
                **{key: metrics[key] for key in ("kept", "dev", "steps", "seconds")},
            }
            for name, metrics in finished.items()
        }
        kept_model = {**finished[best]["kept"], "run": best}
        added = {} if summary is None else summary(finished)
        if ensemble is not None:
            models = [
                folder.model if name == best else folder.runs / name / "model" for name in runs
            ]
            added |= ensemble(settings, models, report)
        return folder.finish({**finished[best], "kept": kept_model, "runs": of_runs, **added})


def _finished(output):
    """The metrics of the run in a folder; None where it is not finished, or they are damaged."""
    try:
        return read_metrics(Path(output, "metrics.json"))
    except (FileNotFoundError, InputError):
        return None


def _over_seeds(runs):
    """What metrics.json contains about all seeds together."""
    mean, std = mean_and_std([metrics["dev"] for metrics in runs.values()])
    seconds = sum(metrics["seconds"] for metrics in runs.values())
    return {"mean": mean, "std": std, "seconds": round(seconds, 3)}


def _over_sizes(finished, runs):
    """`training_sizes`: for the model and the baseline, their scores by the number of examples."""
    points = {}
    for name, metrics in finished.items():
        start = BASELINE if name.startswith(BASELINE) else "model"
        sizes = points.setdefault(start, {})
        sizes.setdefault(runs[name].train_fraction, []).append(metrics)
    return {
        start: [
            {"train_examples": of_size[0]["train_examples"], **_scores(of_size)}
            for of_size in sizes.values()
        ]
        for start, sizes in points.items()
    }


def _over_layers(finished, runs):
    """`by_layers`: for each choice of layers the scores of its best combination."""
    names = ("learning_rate", "batch_size", "epochs")
    combinations = {}
    for name, metrics in finished.items():
        of_layers = combinations.setdefault(runs[name].layers, {})
        tried = tuple(getattr(runs[name], setting) for setting in names)
        of_layers.setdefault(tried, []).append(metrics)
    best = {}
    for layers, tried in combinations.items():
        scores = [
            {**dict(zip(names, combination, strict=True)), **_scores(of_seeds)}
            for combination, of_seeds in tried.items()
        ]
        best[layers] = max(scores, key=lambda score: rank(score["mean"]))
    return best


def _scores(of_seeds):
    """The metrics that select a model of runs that differ in the seed, their mean and deviation."""
    scores = [best_metric_value(metrics) for metrics in of_seeds]
    if None in scores:  # a NaN
        return {"metrics": scores, "mean": None, "std": None}
    std = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return {"metrics": scores, "mean": float(np.mean(scores)), "std": std}


def mean_and_std(dictionaries):
    """The means and the sample standard deviations (n - 1) of the floats in nested dictionaries."""
    means, stds = {}, {}
    for name, value in dictionaries[0].items():
        of_all = [dictionary.get(name) for dictionary in dictionaries]
        if all(isinstance(value, float) for value in of_all):
            means[name] = float(np.mean(of_all))
            stds[name] = float(np.std(of_all, ddof=1))
        elif all(isinstance(value, dict) for value in of_all):
            inner = mean_and_std(of_all)
            if inner[0]:
                means[name], stds[name] = inner
    return means, stds
