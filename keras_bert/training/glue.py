"""All of GLUE as one call: a sweep per task, the table with the averages, and the submission."""

import dataclasses
import gc
import hashlib
import math
from statistics import fmean, stdev
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.files import hash_of_file
from keras_bert.base.formatting import counted, duration
from keras_bert.base.settings import takes
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.inputs.batches import without_autograph
from keras_bert.programs import COMPILES_EACH_SHAPE, Devices, scope_of
from keras_bert.readers.examples import not_reported
from keras_bert.readers.glue import (
    GLUE,
    check_glue_folder,
    glue_average,
    glue_files,
    glue_metrics,
    glue_settings,
    write_submission,
    zip_submission,
)
from keras_bert.tasks import task_class
from keras_bert.tasks.losses import means_over
from keras_bert.training.callbacks import check_callbacks
from keras_bert.training.costs import Stopwatch
from keras_bert.training.devices import with_dtype
from keras_bert.training.finetune import finetune_given, finetuning_plan, sweep_given
from keras_bert.training.finetuning_examples import read_data
from keras_bert.training.finetuning_settings import finetune_settings
from keras_bert.training.finetuning_task import StartingPoint, compile_for
from keras_bert.training.parts.trained_layers import freeze_lower_layers
from keras_bert.training.run_files import read_metrics
from keras_bert.training.run_folder import RunFolder, check_output
from keras_bert.training.sweep_settings import GlueSettings

# A step is measured for so many seconds, on this many batches of examples from the whole file.
_SECONDS_MEASURED = 3.0
_BATCHES_MEASURED = 8
_EPOCHS_TO_MEASURE = 20  # at most
_FORWARD = 1 / 3  # the fraction of a training step's time that predicting the same examples takes
# The settings that are not passed on to the runs as they are.
_OWN = ("data", "tasks", "quick", "num_seeds", "dev_only", "output", "force")
_GRID = ("learning_rate", "batch_size", "epochs")


@takes(GlueSettings)
@without_autograph
def glue(*, report=None, **settings) -> dict[str, Any]:
    """Fine-tunes and evaluates a model on all of GLUE (Wang et al. 2018), and writes a submission.

    For each task, `keras_bert.sweep` tries every combination of the grid in OUTPUT/runs/TASK; with
    several seeds, `keras_bert.finetune` repeats the best one in OUTPUT/runs/TASK-seeds. The model
    with the highest metric on the dev data predicts the test file. All files are read, and the
    expected time is measured and reported, before training starts. Calling it again with the same
    arguments resumes an interrupted run; what is finished is not repeated.

    Args:
        **settings: the fields of `GlueSettings`.
        report: called with each line about the files and the training, such as `print`.

    Returns:
        The contents of metrics.json. `tasks` has for each task, and for MNLI-mm, GLUE's `metrics`
        of the model that is kept, by GLUE's names, on the dev data; their mean as `score`; and the
        `learning_rate`, `batch_size` and `epochs` of the model, the number of `runs` and their
        `seconds`. With several seeds it has `mean` and `std`, of the score over the seeds.
        `average` is GLUE's average of the scores, `with_wnli` and `without_wnli` (as the BERT paper
        has it), or None if a task is missing; with several seeds `mean` and `std` are of the
        average of each seed, for which MNLI counts with the matched accuracy. `submission` is the
        path of the zip, or None, and `missing` the submission files that it lacks.

    Raises:
        InputError: an argument, the model or a file is invalid (all missing files are named
            together), or the output folder contains something else.
    """
    given, report = settings, report or (lambda line: None)
    settings = GlueSettings.of(given)
    check_callbacks(settings.callbacks)
    force, inputs = settings.force, settings.paths()
    run = check_output(settings.output, command="glue", force=force, inputs=inputs)
    check_glue_folder(settings.data, settings.tasks, with_tests=not settings.dev_only)
    start = StartingPoint.of(settings)
    files = {name: _files(name, settings) for name in settings.tasks}
    inputs = {"model": start.fingerprint, **{name: _hash_of(files[name]) for name in files}}
    examined = None
    if run is None or force:  # the files of a resumed run are the same, or that is the error
        examined = _examine(files, settings)
    with RunFolder.of(settings, command="glue", inputs=inputs, has_model=False) as folder:
        if folder.finished:
            report(f"The runs in {folder.path} are finished already. These are their results.")
            return folder.read_metrics()
        expected = folder.resolved("expected_seconds")
        if expected is None:
            report(f"Measuring the time of a step for {counted(len(files), 'task')}.")
            examined = examined or _examine(files, settings)
            expected = {task.name: _expected_seconds(settings, task) for task in examined}
            folder.resolve("expected_seconds", expected)
        _report_expected(settings, folder, expected, report)
        results = {}
        for number, name in enumerate(settings.tasks, start=1):
            report(f"{name}, task {number} of {len(settings.tasks)}.")
            model, results[name] = _train(name, settings, given, folder, report)
            gc.collect()
            if name == "MNLI":
                metrics = folder.resolved("MNLI-mm")
                if metrics is None:
                    measured = evaluate(model=model, glue="MNLI-mm", data=settings.data)["glue"]
                    metrics = folder.resolve("MNLI-mm", measured)
                results["MNLI-mm"] = _result(metrics)
            if not settings.dev_only:
                _predict(name, model, settings, folder, report)
        return folder.finish(_summary(settings, folder, results))


@dataclasses.dataclass(frozen=True)
class _Examined:
    """A task's files: how many examples they have, and some to train on.

    Attributes:
        name: the task's.
        train, dev: examples.
        others: examples that are predicted once.
        sample: examples from the whole training file, as a sequence that the task reads.
    """

    name: str
    train: int
    dev: int
    others: int
    sample: list


def _files(name, settings):
    """{(name of a task, "train", "dev" or "test"): path} of the files of a task."""
    files = glue_files(name, with_tests=not settings.dev_only)
    return {(task, which): GLUE[task].path(settings.data, which) for task, which in files}


def _hash_of(files):
    digest = hashlib.sha256()
    for path in files.values():
        digest.update(hash_of_file(path).digest())
    return digest.hexdigest()


def _examine(files, settings):
    """Reads all files of all tasks, so that what is wrong with one is known before training."""
    size = _BATCHES_MEASURED * max(settings.grid["batch_size"])
    return [_examine_task(name, task_files, size) for name, task_files in files.items()]


def _examine_task(name, files, size):
    glue_class = task_class(GLUE[name].task_type)
    counts, sample = {"train": 0, "dev": 0, "others": 0}, []
    for (task, which), path in files.items():
        source = glue_class.read(path, glue=task, labelled=which != "test")
        examples = list(source)
        if not examples:
            raise InputError(f"{source.name} contains no examples.")
        counts[which if task == name and which != "test" else "others"] += len(examples)
        if which == "train":
            sample = _sample(examples, size)
    return _Examined(name, **counts, sample=sample)


def _sample(examples, size):
    """About `size` examples from the whole list, all labels among them."""
    chosen = examples[:: -(-len(examples) // size)]
    if isinstance(examples[0].label, str):
        chosen += {example.label: example for example in examples}.values()
    return [(*example.texts, example.label) for example in chosen]


def _expected_seconds(settings, examined):
    """The seconds that the runs of a task will take, from a few steps of training."""
    sweep_settings = settings.for_task(examined.name)
    batch_size = max(settings.grid["batch_size"])
    sample = examined.sample
    run_settings = {
        **next(iter(sweep_settings.runs().values())),
        **{"train": sample, "dev": sample, "batch_size": batch_size, "steps_per_execution": 1},
    }
    run = finetune_settings(sweep_settings.task).of(run_settings)
    with scope_of(settings.strategy):
        first, step = _seconds_of_steps(with_dtype(run, not_reported))
    gc.collect()
    example = step / min(batch_size, len(sample))
    epoch = example * (examined.train + _FORWARD * examined.dev)
    passes = settings.runs_per_task * fmean(settings.grid["epochs"])
    if settings.freeze_encoder:  # whose outputs are computed once for each batch size
        epoch = _FORWARD * example * (examined.train + examined.dev)
        passes = len(settings.grid["batch_size"])
    seconds = settings.runs_per_task * first + passes * epoch
    return round(seconds + _FORWARD * example * examined.others, 1)


def _seconds_of_steps(settings):
    """-> (seconds to the end of the first step, seconds of a step after it) of a run.

    A model is trained for a short time; nothing is written.
    """
    data = read_data(settings, {}, lambda line: None)
    settings = data.recipe.resolved(settings)
    task = data.recipe.build(settings, lambda line: None)
    freeze_lower_layers(task, settings)
    plan = finetuning_plan(settings, data.train)
    compile_for(settings, plan, model=task, task=task)
    train = data.train.in_few_lengths() if COMPILES_EACH_SHAPE else data.train
    batches = train.training_batches(
        steps=plan.evaluate_every, seed=settings.seed, epochs=_EPOCHS_TO_MEASURE
    )
    devices, watch = Devices(), Stopwatch(_SECONDS_MEASURED)
    devices.prepare(task, batches)
    with means_over(task, data.train.weight_totals, steps=plan.evaluate_every):
        task.fit(
            devices.distributed(batches),
            steps_per_epoch=_EPOCHS_TO_MEASURE * plan.evaluate_every,
            callbacks=[watch],
            shuffle=False,
            verbose=0,
        )
    return watch.first, watch.batch


def _report_expected(settings, folder, expected, report):
    """Reports the expected time of the tasks that are not finished."""
    models = {name: _model_of(name, settings, folder) for name in settings.tasks}
    left = [name for name, path in models.items() if not (path / "metrics.json").is_file()]
    total = sum(expected[name] for name in left)
    report(
        f"Expected time: about {duration(total)} for {counted(len(left), 'task')} with "
        f"{counted(settings.runs_per_task, 'run')} each."
    )
    for name in left:
        report(f"  {name}: about {duration(expected[name])}")


def _model_of(name, settings, folder):
    """The folder of the runs whose best model is kept."""
    is_repeated = settings.is_sweep and settings.num_seeds > 1
    return folder.runs / (f"{name}-seeds" if is_repeated else name)


def _train(name, settings, given, folder, report):
    """Trains a task, or reads the results; returns (the folder of the model, its results)."""
    run_options = {n: value for n, value in given.items() if n not in (*_OWN, *_GRID)}
    run_options |= glue_settings(name, settings.data)
    options = {"report": report, "chosen": frozenset(_GRID) - given.keys()}
    chosen, seconds = {setting: tried[0] for setting, tried in settings.grid.items()}, 0.0
    if settings.is_sweep:
        metrics = _once(sweep_given, folder.runs / name, {**run_options, **settings.grid}, options)
        best = metrics["runs"][metrics["kept"]["run"]]
        chosen = {setting: best[setting] for setting in _GRID}
        seconds += sum(run["seconds"] for run in metrics["runs"].values())
    model = _model_of(name, settings, folder)
    if settings.num_seeds > 1 or not settings.is_sweep:
        best_options = {**run_options, **chosen, "num_seeds": settings.num_seeds}
        metrics = _once(finetune_given, model, best_options, options)
        seconds += metrics["seconds"]
    results = {**_result(glue_metrics(name, _measures(metrics))), **chosen}
    results |= {"runs": settings.runs_per_task, "seconds": round(seconds, 3)}
    if settings.num_seeds > 1:
        seed_metrics = [glue_metrics(name, _measures(run)) for run in metrics["runs"].values()]
        scores = [one_seed["score"] for one_seed in seed_metrics]
        results |= {"seeds": scores, "mean": fmean(scores), "std": stdev(scores)}
    return model, results


def _once(function, output, settings, options):
    """The results of `sweep_given` or `finetune_given`, which is not called if it has finished.

    `options` are its arguments besides the settings.
    """
    path = output / "metrics.json"
    if path.is_file():
        return read_metrics(path, command="finetune")
    return function({**settings, "output": str(output)}, **options)


def _measures(metrics):
    """The official metrics on the dev data; NaN if they are undefined, as JSON has no NaN."""
    return {name: math.nan if value is None else value for name, value in metrics["dev"].items()}


def _result(metrics):
    metrics = {name: value for name, value in metrics.items() if name != "task"}
    return {"score": metrics.pop("score"), "metrics": metrics}


def _predict(name, model, settings, folder, report):
    """Writes the submission files of a task that are not there yet."""
    for task, which in glue_files(name):
        path = folder.path / "submission" / GLUE[task].submission_file
        if which == "test" and not path.exists():
            predictions = predict(model=model, glue=task, data=settings.data)
            write_submission(task, predictions, path.parent)
            report(f"Wrote {path}.")


def _summary(settings, folder, results):
    """Returns what metrics.json contains about all tasks."""
    summary = {"tasks": results, "average": _averages(_lists(results)), "submission": None}
    if settings.num_seeds > 1:
        seeds = [
            _averages(
                {name: result["seeds"][k] for name, result in results.items() if "seeds" in result}
            )
            for k in range(settings.num_seeds)
        ]
        for statistic, combine in (("mean", fmean), ("std", stdev)):
            summary[statistic] = {
                which: None if value is None else combine([averages[which] for averages in seeds])
                for which, value in seeds[0].items()
            }
    summary["missing"] = []
    if not settings.dev_only:
        path = folder.path / "submission.zip"
        summary["missing"] = zip_submission(folder.path / "submission", path)
        summary["submission"] = str(path)
    seconds = sum(result.get("seconds", 0.0) for result in results.values())
    return {**summary, "seconds": round(seconds, 3)}


def _lists(results):
    return {name: list(result["metrics"].values()) for name, result in results.items()}


def _averages(metrics):
    """GLUE's averages of {task: metrics}; None if a task is missing."""
    averages = {}
    for which, with_wnli in (("with_wnli", True), ("without_wnli", False)):
        try:
            averages[which] = glue_average(metrics, with_wnli=with_wnli)
        except InputError:
            averages[which] = None
    return averages
