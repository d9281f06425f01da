"""Thresholds and a temperature that are tuned on the dev data after training, and what is told."""

from keras_bert.base.formatting import counted, listed, percent
from keras_bert.training.parts import Part

_FEW = 100  # dev examples


class Tuning(Part):
    """Tunes thresholds and a temperature on the outputs of the kept model for the dev examples.

    The outputs are those of the model as it is saved, in float32, as `evaluate` has them.
    """

    def select(self, run, records):
        if run.dev is None:
            run.task.update_settings(**run.data.over_folds.tuned)
            return
        if run.settings.dtype != "float32":
            self._load_in_float32(run)
        run.task.tune_threshold(run.outputs, run.dev)

    def _load_in_float32(self, run):
        from keras_bert.checkpoints import load_task, save_folder
        from keras_bert.tasks.outputs import Inference
        from keras_bert.training.devices import out_of_scope

        def loaded():
            save_folder(run.task, run.task.tokenizer, run.folder.model, overwrite=True)
            task = load_task(run.folder.model)
            inference = Inference(task, batch_size=run.settings.batch_size)
            return task, inference.outputs(run.dev)

        run.task, run.outputs = out_of_scope(loaded)

    def findings(self, run):
        if run.dev is not None:
            yield from tuning_findings(_tuned(run.task), examples=len(run.dev.examples))

    def metrics(self, run, records):
        return tuning_metrics(run.task, run.outputs, run.dev)

    def notes(self, run):
        if run.dev is not None:
            yield from tuning_lines(run.task, run.metrics, examples=len(run.dev.examples))


def _tuned(task):
    """The tuned settings of a task by name."""
    return {name: getattr(task.settings, name) for name in task.tuned}


def tuning_metrics(task, outputs, dev):
    """Returns the keys of metrics.json on the tuned settings: `tuned`, and `calibration_error`.

    `outputs` are those on the `TokenizedExamples` `dev`, which is None if nothing was evaluated.
    """
    metrics = {"tuned": tuned} if (tuned := _tuned(task)) else {}
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


def tuning_findings(tuned, *, examples):
    """A finding on too few dev examples for the settings that were tuned."""
    changed = [name for name, value in tuned.items() if value is not None and value != 1]
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
