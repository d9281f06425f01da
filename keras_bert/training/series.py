"""Several fine-tuning runs under one output: repeats with other seeds, or a sweep over settings."""

import dataclasses
import gc
import os
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.files import delete, system_errors
from keras_bert.training.checkpoint import rank, value_of
from keras_bert.training.run_folder import RunFolder, read_metrics
from keras_bert.training.strategies.devices import Devices


def run_series(finetuning, settings, runs, *, varied, command, report, summary=None, on_run=None):
    """Makes the runs that are not finished yet, and keeps the model of the best one.

    The runs lie in OUTPUT/runs/NAME and are what `keras_bert.finetune` makes of their settings by
    itself, but that only the best one's model stays, in OUTPUT/model. Best is the first with the
    highest figure (that of `best_metric`) on the dev data, of the model that each run keeps.

    Args:
        finetuning: the opened `Finetuning`.
        settings: the settings of the series, whose `output` is OUTPUT.
        runs: the settings of each run, of `finetune_settings`, by its name.
        varied: the names of the settings that tell the runs apart.
        command: what makes OUTPUT.
        report: a function that is told, in lines, what is done.
        summary: a function from the metrics of all runs to what OUTPUT/metrics.json says of them
            together, a dictionary.
        on_run: a function that is called after each run with OUTPUT/logs and the metrics of the
            runs so far by name.

    Returns:
        What OUTPUT/metrics.json holds: the metrics of the best run, whose name is `kept["run"]`;
        `runs`, for each by name the settings that are `varied`, its `figure` (what they were
        compared by), `kept`, `dev`, `steps` and `seconds`; and what `summary` gives.

    Raises:
        InputError: OUTPUT holds something else, or another series.
    """
    if Devices().workers > 1:
        raise InputError(
            f"`{command}` makes several runs here, each of which would wait for all workers; give "
            "every worker runs of its own, with `strategy` mirrored."
        )
    with RunFolder.of(settings, command=command, inputs=finetuning.inputs) as folder:
        if folder.finished:
            report(f"The runs in {folder.path} are finished already; these are their results.")
            return folder.read_metrics()
        found = {}
        for name, of_run in runs.items():
            report(f"Run {len(found) + 1} of {len(runs)}: {name}.")
            of_run = dataclasses.replace(of_run, output=str(folder.runs / name), force=False)
            found[name] = finished_run(of_run.output) or finetuning.run(of_run, report)
            best = max(found, key=lambda name: rank(best_metric_value(found[name])))
            _delete_models(folder, found, best)
            if on_run is not None:
                on_run(folder.logs, found)
            gc.collect()  # a model is a circle of references, and the next one needs its room
        _publish(folder, best)
        folder.check_model(f"delete {folder.runs / best} to train it again")
        described = {
            name: {
                **{key: getattr(runs[name], key) for key in varied},
                **_described(metrics),
            }
            for name, metrics in found.items()
        }
        kept = {**found[best]["kept"], "run": best}
        together = summary(found) if summary is not None else {}
        return folder.finish({**found[best], "kept": kept, "runs": described, **together})


def finished_run(output):
    """The metrics of the run in a folder; None where it is not finished, or they are damaged."""
    try:
        return read_metrics(Path(output, "metrics.json"))
    except (FileNotFoundError, InputError):
        return None


def best_metric_value(metrics):
    """The figure by which a run kept its model, on the dev data after the step that it kept.

    None where it was NaN.
    """
    (record,) = (e for e in metrics["history"] if e["step"] == metrics["kept"]["step"])
    return value_of(record, metrics["best_metric"])


def mean_and_deviation(dictionaries):
    """The means and the standard deviations of the numbers that several dictionaries hold.

    Two dictionaries of the form of the given ones, with the figures alone: floats, and dictionaries
    with floats in them. The deviation is that of a sample (n - 1).
    """
    means, deviations = {}, {}
    for name, value in dictionaries[0].items():
        values = [dictionary.get(name) for dictionary in dictionaries]
        if all(isinstance(value, float) for value in values):
            means[name] = float(np.mean(values))
            deviations[name] = float(np.std(values, ddof=1))
        elif all(isinstance(value, dict) for value in values):
            inner = mean_and_deviation(values)
            if inner[0]:
                means[name], deviations[name] = inner
    return means, deviations


def _delete_models(folder, found, best):
    """Leaves one model alone, and no checkpoints: a finished run does not go on."""
    for name in found:
        delete(folder.runs / name / "checkpoints")
        if name != best:
            delete(folder.runs / name / "model")


def _publish(folder, best):
    """Moves the best run's model to its place."""
    model = folder.runs / best / "model"
    with system_errors(folder.model):
        if model.exists():  # else it is there, and a kill came before the results
            os.rename(model, folder.model)


def _described(metrics):
    """What the metrics of a series say of one run."""
    shown = {name: metrics[name] for name in ("kept", "dev", "steps", "seconds")}
    return {"metric": best_metric_value(metrics), **shown}
