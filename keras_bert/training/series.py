"""Several runs under one output: made one after another, compared, and summed up."""

import dataclasses
import gc
import os
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError, argument
from keras_bert.base.files import delete, system_errors
from keras_bert.base.formatting import counted
from keras_bert.programs import Devices
from keras_bert.readers.examples import divided
from keras_bert.training.finetuning_settings import BASELINE
from keras_bert.training.run_files import check_own_records, read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.selection import best_metric_value, quality_of_run, rank

ALL = "all"  # the run on all examples


def run_series(
    settings,
    runs,
    one_run,
    *,
    command,
    inputs,
    varied,
    report,
    candidates=None,
    summary=None,
    keeps_models=False,
):
    """Makes the runs that are not finished yet, and keeps the model of the best run.

    Each run in OUTPUT/runs/NAME is what `keras_bert.finetune` makes with its settings, except that
    only the best model is kept, in OUTPUT/model: the one with the highest `best_metric` on the dev
    data, of equal ones with the lowest loss there.

    Args:
        settings: the settings of the series, whose `output` is OUTPUT.
        runs: the settings of each run, of `finetune_settings`, by name.
        one_run: a function of a run's name and its settings that makes the run in its `output`, or
            resumes it there, and returns its metrics.
        command: the command that writes OUTPUT.
        inputs: fingerprints of everything that the series depends on except its settings.
        varied: the names of the settings that differ between runs.
        report: called with each line about the runs.
        candidates: the names of the runs whose model may be kept; None is all.
        summary: a function from the metrics of all runs, by name, and the folders of their models
            to a dictionary that is added to OUTPUT/metrics.json.
        keeps_models: whether the models of all runs are kept, in OUTPUT/runs/NAME.

    Returns:
        The contents of OUTPUT/metrics.json: the metrics of the best run, with its name as
        `kept["run"]`; `runs`, by name each run's `varied` settings, its `metric`, `kept`, `dev`,
        `steps` and `seconds`; and the `summary`.

    Raises:
        InputError: OUTPUT contains something else, or another series.
    """
    if Devices().workers > 1:
        raise InputError.naming(
            "{} cannot make several runs with {strategy} multiworker: each run would wait for all "
            "workers. Give every worker its own runs, with {strategy} mirrored.",
            argument(command),
        )
    with RunFolder.of(settings, command=command, inputs=inputs) as folder:
        if folder.finished:
            report(f"The runs in {folder.path} are finished already. These are their results.")
            return folder.read_metrics()
        metrics = {}
        for name, run in runs.items():
            report(f"Run {len(metrics) + 1} of {len(runs)}: {name}.")
            run = dataclasses.replace(run, output=str(folder.runs / name), force=False)
            metrics[name] = _metrics_of_finished(run.output) or one_run(name, run)
            best = _best_run(metrics, candidates or runs)
            for other in metrics:
                keeps = other == best or keeps_models
                for name in ("checkpoints",) if keeps else ("checkpoints", "model", "adapter"):
                    check_own_records(folder.runs / other, [name], command=command)
                    delete(folder.runs / other / name)
            gc.collect()  # a model contains reference cycles, and the next one needs the memory
        models = {name: folder.runs / name / "model" for name in runs}
        with system_errors(folder.model):
            adapter = folder.runs / best / "adapter"
            for written, place in ((adapter, folder.adapter), (models[best], folder.model)):
                if written.exists():  # else it was moved before an interruption
                    os.rename(written, place)
        models[best] = folder.model
        folder.check_model(f"delete {folder.runs / best} to train it again")
        results = {**metrics[best], "kept": {**metrics[best]["kept"], "run": best}}
        results["runs"] = {
            name: {
                **{setting: getattr(runs[name], setting) for setting in varied},
                "metric": best_metric_value(run_metrics),
                **{key: run_metrics[key] for key in ("kept", "dev", "steps", "seconds")},
            }
            for name, run_metrics in metrics.items()
        }
        if summary is not None:
            results |= summary(metrics, [*models.values()])
        return folder.finish(results)


def _metrics_of_finished(output):
    """The metrics of the run in a folder; None if it is not finished, or they are damaged."""
    try:
        metrics = read_metrics(Path(output, "metrics.json"), command="finetune")
        quality_of_run(metrics)  # raises an error if it cannot be compared
        return metrics
    except (FileNotFoundError, InputError):
        return None


def _best_run(metrics, candidates):
    """The name of the best of the candidates that are finished; without one, the last run."""
    names = [name for name in metrics if name in candidates] or [*metrics][-1:]
    return max(names, key=lambda name: quality_of_run(metrics[name]))


def over_seeds(metrics, runs):
    """The means and deviations of the official metrics of runs that differ in the seed."""
    mean, std = mean_and_std([run_metrics["dev"] for run_metrics in metrics.values()])
    seconds = sum(run_metrics["seconds"] for run_metrics in metrics.values())
    return {"mean": mean, "std": std, "seconds": round(seconds, 3)}


def over_sizes(metrics, runs):
    """`training_sizes`: for the model and the baseline, their scores by the number of examples."""
    sizes = {}
    for name, run_metrics in metrics.items():
        start = BASELINE if name.startswith(BASELINE) else "model"
        metrics_by_size = sizes.setdefault(start, {})
        metrics_by_size.setdefault(runs[name].train_fraction, []).append(run_metrics)
    return {
        "training_sizes": {
            start: [
                {"train_examples": seed_metrics[0]["train_examples"], **_scores(seed_metrics)}
                for seed_metrics in metrics_by_size.values()
            ]
            for start, metrics_by_size in sizes.items()
        }
    }


def over_layers(metrics, runs):
    """`by_layers`: for each choice of layers the scores of its best combination."""
    names = ("learning_rate", "batch_size", "epochs")
    by_layers = {}
    for name, run_metrics in metrics.items():
        runs_by_combination = by_layers.setdefault(runs[name].layers, {})
        combination = tuple(getattr(runs[name], setting) for setting in names)
        runs_by_combination.setdefault(combination, []).append(run_metrics)
    best = {}
    for layers, runs_by_combination in by_layers.items():
        scores = [
            {**dict(zip(names, combination, strict=True)), **_scores(seed_metrics)}
            for combination, seed_metrics in runs_by_combination.items()
        ]
        best[layers] = max(scores, key=lambda score: rank(score["mean"]))
    return {"by_layers": best}


def _scores(seed_metrics):
    """The metrics that select a model of runs that differ in the seed, their mean and deviation."""
    scores = [best_metric_value(run_metrics) for run_metrics in seed_metrics]
    if None in scores:  # a NaN
        return {"metrics": scores, "mean": None, "std": None}
    std = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return {"metrics": scores, "mean": float(np.mean(scores)), "std": std}


def mean_and_std(dictionaries):
    """The means and the sample standard deviations (n - 1) of the floats in nested dictionaries."""
    means, stds = {}, {}
    for name, value in dictionaries[0].items():
        found = [dictionary.get(name) for dictionary in dictionaries]
        if all(isinstance(value, float) for value in found):
            means[name] = float(np.mean(found))
            stds[name] = float(np.std(found, ddof=1))
        elif all(isinstance(value, dict) for value in found):
            inner = mean_and_std(found)
            if inner[0]:
                means[name], stds[name] = inner
    return means, stds


@dataclasses.dataclass(frozen=True)
class OverFolds:
    """The metrics that a run on all examples has in place of dev examples.

    Attributes:
        epochs: the mean best epoch of the folds, rounded.
        metrics: the official metrics of the folds, as `pooled` gives them.
        tuned: the means of the settings that the folds have tuned, such as thresholds, by name.
    """

    epochs: int
    metrics: dict
    tuned: dict


def run_folds(settings, data, one_run, report):
    """A run for each fold, on the others, and one on all examples for the mean best epoch.

    Args:
        settings: those of the series, with `folds`.
        data: the `FinetuningData` in which the first fold is the dev data.
        one_run: a function of `FinetuningData` and settings that makes a run.
        report: called with each line about the runs.

    Returns the contents of metrics.json: see `run_series`, with the `mean` and `std` of the
    official metrics over the folds, and those of all folds together as `dev`.
    """
    examples, count = [*data.train.examples, *data.dev.examples], settings.folds
    one = dataclasses.replace(settings, folds=None)
    task = data.recipe.build(one, report)
    names = [f"fold-{number}" for number in range(1, count + 1)]
    runs = dict.fromkeys(names, one)
    runs[ALL] = dataclasses.replace(one, keep="last", patience=None)

    def fold_run(name, run):
        if name != ALL:
            parts = divided(examples, names.index(name), count)
            return one_run(data.with_examples(task, *parts), run)
        folder = Path(run.output).parent
        fold_metrics = [
            read_metrics(folder / fold / "metrics.json", command="finetune") for fold in names
        ]
        over = _over(fold_metrics)
        report(f"Training on all examples for {counted(over.epochs, 'epoch')}, the folds' mean.")
        on_all = data.with_examples(task, examples, over_folds=over)
        return one_run(on_all, dataclasses.replace(run, epochs=over.epochs))

    def summary(metrics, models):
        mean, std = mean_and_std([metrics[name]["dev"] for name in names])
        seconds = sum(run_metrics["seconds"] for run_metrics in metrics.values())
        return {"mean": mean, "std": std, "seconds": round(seconds, 3)}

    return run_series(
        settings,
        runs,
        fold_run,
        command="finetune",
        inputs=data.inputs,
        varied=(),
        candidates=[ALL],
        summary=summary,
        report=report,
    )


def _over(fold_metrics):
    """The `OverFolds` of the metrics.json of all folds."""
    tuned = {}
    for name in fold_metrics[0].get("tuned", {}):
        tuned_values = [metrics["tuned"][name] for metrics in fold_metrics]
        tuned_values = [value for value in tuned_values if value is not None]
        if tuned_values:
            tuned[name] = np.mean(tuned_values, axis=0).tolist()
    return OverFolds(
        epochs=max(1, round(np.mean([metrics["kept"]["epoch"] for metrics in fold_metrics]))),
        metrics=pooled([metrics["dev"] for metrics in fold_metrics]),
        tuned=tuned,
    )


def pooled(parts):
    """Official metrics of several parts of the data as one: means of ratios, and sums of counts.

    Bins of a calibration are weighted by their examples.
    """
    first = parts[0]
    if isinstance(first, dict):
        names = [name for name in first if all(name in part for part in parts)]
        if set(first) == {"confidence", "accuracy", "examples"}:
            weights = np.array([part["examples"] for part in parts], float)
            total = max(1.0, weights.sum())
            means = {n: float(weights @ [part[n] for part in parts] / total) for n in first}
            return {**means, "examples": int(weights.sum())}
        return {name: pooled([part[name] for part in parts]) for name in names}
    if isinstance(first, float):
        return float(np.mean(parts))
    if isinstance(first, int):
        return sum(parts)
    if isinstance(first, list) and len({len(part) for part in parts}) == 1:
        return [pooled(column) for column in zip(*parts, strict=True)]
    return first
