"""GLUE (Wang et al. 2018): its files, columns, labels and metrics, and its submission files.

The files are those of gluebenchmark.com as they are unpacked: FOLDER/CoLA/train.tsv and so on.
"""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any

from keras_bert.base.errors import InputError, Naming
from keras_bert.base.files import new_file, write_text
from keras_bert.base.formatting import listed, quoted
from keras_bert.base.ownership import check_output_file
from keras_bert.readers.table import Table

_ENTAILMENT = ("entailment", "not_entailment")
_THREE_WAY = ("entailment", "neutral", "contradiction")
_ZERO_OR_ONE = ("0", "1")
_SENTENCES = ("sentence1", "sentence2")
_HEADER = "index\tprediction"
_HIGHEST_SCORE = 5.0  # of STS-B
# The names of metrics in `official_metrics` -> GLUE's.
_METRICS = {
    "accuracy": "Accuracy",
    "f1": "F1",
    "matthews": "Matthew's Corr",
    "pearson": "Pearson Corr",
    "spearman": "Spearman Corr",
}


@dataclass(frozen=True, kw_only=True)
class GlueTask:
    """One task of GLUE, by GLUE's name."""

    name: str
    task_type: str = "pair-classifier"  # ours
    texts: tuple[str, ...] = _SENTENCES  # the columns of the one or two texts
    label: str = "label"  # the column
    labels: tuple[str, ...] = _ZERO_OR_ONE  # in files and submissions; () if it is a score
    metrics: tuple[str, ...] = ("accuracy",)  # the official ones, as in `official_metrics`
    folders: tuple[str, ...]  # where the files are under GLUE's folder, the usual one first
    train: str | None = "train.tsv"  # the files; None if there is none
    dev: str | None = "dev.tsv"
    test: str = "test.tsv"
    without_header: tuple[int, int] | None = None  # columns of text and label, from 0
    submission: str | None = None  # the file's name; None is NAME.tsv

    @property
    def submission_file(self) -> str:
        return self.submission or f"{self.name}.tsv"

    @property
    def column_names(self) -> set[str]:
        """The names, in lower case, by which the first line of a file is its header."""
        return {name.casefold() for name in (*self.texts, self.label)}

    @property
    def metric(self) -> str:
        """The metric that selects the best epoch of a run, or the mean of the two."""
        return "_and_".join(sorted(self.metrics))

    def check_form(self, texts: Sequence[str], *, is_score: bool) -> None:
        """Raises InputError if the task has other texts, or labels in place of scores."""
        expected, read = (
            f"{'two texts' if count > 1 else 'one text'} and a {'score' if scores else 'label'}"
            for count, scores in ((len(self.texts), not self.labels), (len(texts), is_score))
        )
        if expected != read:
            raise InputError(
                f"GLUE's {self.name} is a {self.task_type} task, with {expected} per record. "
                f"This task reads {read}."
            )

    def check_label(self, label: Any, error: Callable[[str], Exception]) -> None:
        """Raises `error` of a message if a label of a training or dev file is another task's."""
        if self.labels and label not in self.labels:
            expected, received = f"labels {quoted(self.labels)}", f'"{label}"'
        elif not self.labels and not 0 <= label <= _HIGHEST_SCORE:
            expected, received = f"scores from 0 to {_HIGHEST_SCORE:g}", f"{label:g}"
        else:
            return
        raise error(
            f"GLUE's {self.name} has the {expected}. Received: {received}. Is this the file of "
            "another task?"
        )

    def file(self, path: str | PathLike[str], *, labelled: bool) -> str | PathLike[str]:
        """`path`, or if that is a folder, the dev file in it (or the test file, unlabelled)."""
        if not Path(path).is_dir():
            return path
        return self.path(path, "dev" if labelled else "test")

    def path(self, folder: str | PathLike[str], which: str) -> str:
        """The path of the "train", "dev" or "test" file under GLUE's folder, or under its own.

        Raises InputError if there is no such file.
        """
        file = getattr(self, which)
        if file is None:
            raise InputError(f"GLUE's {self.name} has no {which} file with labels.")
        paths = [Path(folder) / under / file for under in (*self.folders, ".")]
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            raise InputError(
                f"GLUE's {self.name} has no {file} in {folder}. Expected {paths[0]} or {paths[-1]}."
            )
        return str(path)


def _mnli(name: str, part: str, **changes: Any) -> GlueTask:
    return GlueTask(
        name=name,
        label="gold_label",
        labels=_THREE_WAY,
        folders=("MNLI",),
        dev=f"dev_{part}.tsv",
        test=f"test_{part}.tsv",
        **changes,
    )


_TASKS = (
    GlueTask(
        name="CoLA",
        task_type="classifier",
        texts=("sentence",),
        metrics=("matthews",),
        folders=("CoLA",),
        without_header=(3, 1),
    ),
    GlueTask(name="SST-2", task_type="classifier", texts=("sentence",), folders=("SST-2",)),
    GlueTask(
        name="MRPC",
        texts=("#1 String", "#2 String"),
        label="Quality",
        metrics=("f1", "accuracy"),
        folders=("MRPC",),
    ),
    GlueTask(
        name="STS-B",
        task_type="regression",
        label="score",
        labels=(),
        metrics=("pearson", "spearman"),
        folders=("STS-B",),
    ),
    GlueTask(
        name="QQP",
        texts=("question1", "question2"),
        label="is_duplicate",
        metrics=("f1", "accuracy"),
        folders=("QQP",),
    ),
    _mnli("MNLI", "matched", submission="MNLI-m.tsv"),
    _mnli("MNLI-mm", "mismatched", train=None),
    GlueTask(name="QNLI", texts=("question", "sentence"), labels=_ENTAILMENT, folders=("QNLI",)),
    GlueTask(name="RTE", labels=_ENTAILMENT, folders=("RTE",)),
    GlueTask(name="WNLI", folders=("WNLI",)),
    GlueTask(
        name="AX",
        labels=_THREE_WAY,
        metrics=("matthews",),
        folders=("diagnostic", "AX", "MNLI"),
        train=None,
        dev=None,
        test="diagnostic.tsv",
    ),
)
GLUE = {task.name: task for task in _TASKS}


def glue_task(name: str) -> GlueTask:
    """The `GlueTask` of a name, in any case; InputError if GLUE has none."""
    named = {name.casefold(): task for name, task in GLUE.items()}
    named["mnli-m"] = GLUE["MNLI"]
    if str(name).casefold() not in named:
        raise InputError(f"GLUE has no task {name!r}. Its tasks are {listed(GLUE, most=11)}.")
    return named[str(name).casefold()]


def glue_settings(name: str, folder: str | PathLike[str]) -> dict[str, Any]:
    """The settings of `keras_bert.finetune` for a task of GLUE, besides the model and the output.

        kb.finetune(**glue_settings("CoLA", "glue_data"), model="runs/a/model", output="runs/cola")

    Args:
        name: CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE or WNLI.
        folder: GLUE's folder, or the task's own folder in it.

    Raises:
        InputError: there is no such task or file, or it has no training file.
    """
    task = glue_task(name)
    if task.train is None:
        raise InputError.naming(
            "GLUE's {} has no training file. Train on MNLI, and give {glue} to evaluate and "
            "predict.",
            task.name,
        )
    return {
        "task": task.task_type,
        "glue": task.name,
        "metric": task.metric,
        "train": task.path(folder, "train"),
        "dev": task.path(folder, "dev"),
    }


def glue_files(name: str, *, with_tests: bool = True) -> list[tuple[str, str]]:
    """(name of a task, "train", "dev" or "test") of every file that a task of GLUE needs.

    The model of MNLI is evaluated on MNLI-mm, too, and predicts it and AX.
    """
    names = ("MNLI", "MNLI-mm", "AX") if name == "MNLI" else (name,)
    return [
        (task, which)
        for task in names
        for which in ("train", "dev", "test")
        if getattr(GLUE[task], which) is not None and (with_tests or which != "test")
    ]


def check_glue_folder(
    folder: str | PathLike[str], names: Sequence[str], *, with_tests: bool = True
) -> None:
    """Raises InputError that lists everything that some tasks lack in GLUE's folder, or their own.

    With `with_tests` the test files are needed.
    """
    if not Path(folder).is_dir():
        raise InputError(f"There is no folder {folder}. Expected GLUE's, with CoLA/ and so on.")
    missing = []
    for name in names:
        files = [
            (GLUE[task].folders, getattr(GLUE[task], which))
            for task, which in glue_files(name, with_tests=with_tests)
        ]
        task_folder = (".",) if len(names) == 1 else ()
        absent = [
            f"{under[0]}/{file}"
            for under, file in files
            if not any(Path(folder, part, file).is_file() for part in (*under, *task_folder))
        ]
        missing += absent if len(absent) < len(files) else [f"the folder {files[0][0][0]}"]
    if missing:
        tests = Naming(", and the test files with {dev_only}") if with_tests else ""
        raise InputError.naming(
            "{} lacks files of GLUE: {}. Expected them as gluebenchmark.com gives them. Leave "
            "tasks out with {tasks}{}.",
            folder,
            listed(missing, most=40),
            tests,
        )


def glue_columns(table: Table, task: GlueTask, *, labelled: bool) -> tuple[tuple, tuple]:
    """-> (the columns of each text, of the label) of a file of GLUE's cells, as tuples.

    Raises InputError if it is another file, without the columns of the task.
    """
    if task.without_header and not {*task.texts} & {*table.names}:
        text, label = task.without_header
        if len(table.names) > max(text, label):
            return ((table.names[text],),), (table.names[label],)
    for name in (*task.texts, *((task.label,) if labelled else ())):
        if name not in table.names:
            names = table.names if table.has_names else table.sample(1)[0].values()
            raise table.error(
                1,
                f'no column "{name}", which a file of GLUE\'s {task.name} has; its columns are '
                f"{quoted(names)}.",
            )
    texts = tuple((name,) for name in task.texts)
    return texts, (task.label,) if task.label in table.names else ()


def glue_metrics(name: str, measures: Mapping[str, float]) -> dict[str, Any]:
    """GLUE's own metrics of a task, by GLUE's names.

    Args:
        name: the task's.
        measures: the `official_metrics` of a model on a file of the task.

    Returns:
        A dictionary: `task`, the metrics, and `score`, their mean, which is averaged over tasks.

    Raises:
        InputError: a metric is not among them, since the model is for another task.
    """
    task = glue_task(name)
    missing = [metric for metric in task.metrics if metric not in measures]
    if missing:
        raise InputError(
            f"GLUE's {task.name} is measured by {listed(task.metrics)}. This model has no "
            f"{listed(missing)}. Train it on the files of GLUE."
        )
    metrics = {_METRICS[metric]: measures[metric] for metric in task.metrics}
    return {"task": task.name, **metrics, "score": fmean(metrics.values())}


def glue_submission(name: str, predictions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the lines of the submission file: a header, then "index TAB prediction" each.

    Args:
        name: the task's.
        predictions: of all records of its test file, in order.

    Raises:
        InputError: a prediction is not one of the task's labels, or not a score if it needs one.
    """
    task = glue_task(name)
    yield _HEADER
    for index, prediction in enumerate(predictions):
        label = prediction.get("label")
        if not task.labels:
            if "label" in prediction:
                raise InputError(f"GLUE's {task.name} needs scores. This model predicts labels.")
            label = f"{min(_HIGHEST_SCORE, max(0.0, prediction['score'])):.3f}"
        elif label not in task.labels:
            predicted = "no labels" if label is None else f'"{label}"'
            raise InputError(
                f"The model predicts {predicted}. The labels of GLUE's {task.name} are "
                f"{quoted(task.labels)}. Train it on the files of GLUE."
            )
        yield f"{index}\t{label}"


def write_submission(
    name: str, predictions: Iterable[Mapping[str, Any]], folder: str | PathLike[str]
) -> Path:
    """Writes the submission file into a folder, under the name that GLUE wants; returns its path.

    Args:
        name: the task's.
        predictions: see `glue_submission`; they are computed when the path is known to be free.
        folder: where the submission files are to be; an earlier one of this task is replaced.

    Raises:
        InputError: see `glue_submission`; or another file has the name.
    """
    task = glue_task(name)
    path = Path(folder) / task.submission_file
    check_output_file(path, is_ours=_is_submission, force=True)
    write_text(path, "".join(f"{line}\n" for line in glue_submission(name, predictions)))
    return path


def zip_submission(folder: str | PathLike[str], path: str | PathLike[str]) -> list[str]:
    """Writes the zip to submit, of the submission files in a folder.

    The same files give the same bytes. An earlier zip of submission files is replaced.

    Returns:
        The names of the files that a submission needs and that are missing.
    """
    names = [task.submission_file for task in GLUE.values()]
    missing = [name for name in names if not Path(folder, name).is_file()]
    check_output_file(path, is_ours=lambda path: _is_zip_of(path, names), force=True)
    with new_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(set(names) - set(missing)):
            content = Path(folder, name).read_bytes()
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return missing


def _is_zip_of(path: Path, names: Sequence[str]) -> bool:
    """Whether a file is a zip of nothing but submission files."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return {*archive.namelist()} <= {*names}


def _is_submission(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline(100).rstrip(b"\r\n") == _HEADER.encode()


def glue_average(metrics: Mapping[str, float | Sequence[float]], *, with_wnli: bool) -> float:
    """GLUE's score: the mean over the tasks of the mean of each task's metrics.

    Args:
        metrics: {task: its official metric, or a list of them}; those of MNLI are both accuracies,
            matched and mismatched, of which the other may also be under MNLI-mm. AX is not part of
            the score.
        with_wnli: False leaves WNLI out, as the BERT paper does.

    Raises:
        InputError: a task is missing, or is not one of GLUE's.
    """
    averaged = [name for name in GLUE if name not in ("AX", "MNLI-mm")]
    if not with_wnli:
        averaged.remove("WNLI")
    scores = {
        glue_task(name).name: [value] if isinstance(value, int | float) else list(value)
        for name, value in metrics.items()
    }
    missing = [name for name in averaged if name not in scores]
    if missing:
        raise InputError(f"GLUE's average needs {listed(missing)}, too.")
    if "MNLI-mm" in scores:
        scores["MNLI"] = [scores["MNLI"][0], *scores["MNLI-mm"]]
    return fmean(fmean(scores[name]) for name in averaged)
