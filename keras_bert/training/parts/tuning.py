"""Thresholds and a temperature that are tuned on the dev data after training, and what is told."""

from keras_bert.base.formatting import counted, listed, percent

_FEW = 100  # dev examples


def tuning_metrics(task, outputs, dev):
    """What metrics.json contains of the tuned settings: `tuned`, and `calibration_error`.

    `outputs` are those on the `TokenizedExamples` `dev`, which is None if nothing was evaluated.
    """
    metrics = {}
    if task.tuned:
        metrics["tuned"] = {name: getattr(task.settings, name) for name in task.tuned}
    if dev and (errors := task.calibration_error(outputs, dev)) is not None:
        metrics["calibration_error"] = errors
    return metrics


def tuning_lines(task, metrics, *, examples):
    """Lines for the user on `tuning_metrics`, and on how many dev examples they were made with."""
    on_dev = counted(examples, "dev example")
    for name, value in metrics.get("tuned", {}).items():
        if name != "temperature" and value is not None:
            yield f"Tuned on the {on_dev}: {name} {_described(value, task)}."
    if "calibration_error" in metrics and task.temperature != 1:  # else a warning says why
        before, after = map(percent, metrics["calibration_error"].values())
        yield (
            f"Calibrated on the {on_dev} with the temperature {task.temperature:.3g}: the expected "
            f"calibration error there is {after}; before, it was {before}."
        )


def tuning_findings(metrics, *, examples):
    """A finding on too few dev examples for what was tuned."""
    tuned = metrics.get("tuned", {}).items()
    changed = [name for name, value in tuned if value is not None and value != 1]
    if changed and examples < _FEW:
        verb = "was" if len(changed) == 1 else "were"
        yield (
            f"The {' and the '.join(changed)} {verb} tuned on {counted(examples, 'dev example')}, "
            f"which is little. Give {_FEW} or more as `dev` (--dev)."
        )


def _described(value, task):
    """A threshold, or one for each label by its name."""
    if not isinstance(value, list | tuple):
        return f"{value:.3g}"
    return listed(f"{label} {one:.2f}" for label, one in zip(task.labels, value, strict=True))
