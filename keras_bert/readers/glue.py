"""GLUE (Wang et al. 2018): its files, columns, labels and figures, and what is handed in.

The files are those of gluebenchmark.com as they are unpacked: FOLDER/CoLA/train.tsv and so on.
"""

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from keras_bert.base.errors import InputError
from keras_bert.base.files import check_output_file, write_text
from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.columns import Columns

_ENTAILMENT = ("entailment", "not_entailment")
_THREE_WAY = ("entailment", "neutral", "contradiction")
_ZERO_OR_ONE = ("0", "1")
_SENTENCES = ("sentence1", "sentence2")
_HEADER = "index\tprediction"
# What `official_metrics` calls a figure -> what GLUE does.
_METRICS = {
    "accuracy": "Accuracy",
    "f1": "F1",
    "matthews": "Matthew's Corr",
    "pearson": "Pearson Corr",
    "spearman": "Spearman Corr",
}


@dataclass(frozen=True, kw_only=True)
class GlueTask:
    """One task of GLUE.

    Attributes:
        name: as GLUE calls it.
        kind: our kind of task.
        texts: the columns of the one or two texts.
        label: the column of the label.
        labels: their names, in the files and in what is handed in; () where it is a score.
        metrics: the official figures, by their names in what `official_metrics` gives.
        metric: what a run keeps the best epoch by: the figure, or the mean of the two.
        folders: where the files lie under GLUE's folder, the usual place first.
        train, dev, test: the files; None where there is none.
        without_header: of a file that has none, the columns of the text and the label, from 0.
        hands_in: the name of the file to hand in.
    """

    name: str
    kind: str = "pair-classifier"
    texts: tuple[str, ...] = _SENTENCES
    label: str = "label"
    labels: tuple[str, ...] = _ZERO_OR_ONE
    metrics: tuple[str, ...] = ("accuracy",)
    metric: str = "accuracy"
    folders: tuple[str, ...]
    train: str | None = "train.tsv"
    dev: str | None = "dev.tsv"
    test: str = "test.tsv"
    without_header: tuple[int, int] | None = None
    hands_in: str

    def file(self, path, *, labelled):
        """`path`, or where that is a folder, the dev file in it (or the test file, unlabelled)."""
        if not Path(path).is_dir():
            return path
        return self.path(path, "dev" if labelled else "test")

    def path(self, folder, which):
        """The path of the "train", "dev" or "test" file under GLUE's folder, or under its own.

        Raises InputError where there is no such file.
        """
        file = getattr(self, which)
        if file is None:
            raise InputError(f"GLUE's {self.name} has no {which} file with labels.")
        places = [Path(folder) / under / file for under in (*self.folders, ".")]
        for place in places:
            if place.exists():
                return str(place)
        raise InputError(
            f"GLUE's {self.name} has no {file} in {folder}; it should be {places[0]} or "
            f"{places[-1]}."
        )


def _mnli(name, part, **changes):
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
        kind="classifier",
        texts=("sentence",),
        metrics=("matthews",),
        metric="matthews",
        folders=("CoLA",),
        without_header=(3, 1),
        hands_in="CoLA.tsv",
    ),
    GlueTask(
        name="SST-2",
        kind="classifier",
        texts=("sentence",),
        folders=("SST-2",),
        hands_in="SST-2.tsv",
    ),
    GlueTask(
        name="MRPC",
        texts=("#1 String", "#2 String"),
        label="Quality",
        metrics=("f1", "accuracy"),
        metric="accuracy_and_f1",
        folders=("MRPC",),
        hands_in="MRPC.tsv",
    ),
    GlueTask(
        name="STS-B",
        kind="regression",
        label="score",
        labels=(),
        metrics=("pearson", "spearman"),
        metric="pearson_and_spearman",
        folders=("STS-B",),
        hands_in="STS-B.tsv",
    ),
    GlueTask(
        name="QQP",
        texts=("question1", "question2"),
        label="is_duplicate",
        metrics=("f1", "accuracy"),
        metric="accuracy_and_f1",
        folders=("QQP",),
        hands_in="QQP.tsv",
    ),
    _mnli("MNLI", "matched", hands_in="MNLI-m.tsv"),
    _mnli("MNLI-mm", "mismatched", train=None, hands_in="MNLI-mm.tsv"),
    GlueTask(
        name="QNLI",
        texts=("question", "sentence"),
        labels=_ENTAILMENT,
        folders=("QNLI",),
        hands_in="QNLI.tsv",
    ),
    GlueTask(name="RTE", labels=_ENTAILMENT, folders=("RTE",), hands_in="RTE.tsv"),
    GlueTask(name="WNLI", folders=("WNLI",), hands_in="WNLI.tsv"),
    GlueTask(
        name="AX",
        labels=_THREE_WAY,
        metrics=("matthews",),
        metric="matthews",
        folders=("diagnostic", "AX", "MNLI"),
        train=None,
        dev=None,
        test="diagnostic.tsv",
        hands_in="AX.tsv",
    ),
)
GLUE = {task.name: task for task in _TASKS}


def glue_task(name):
    """The `GlueTask` of a name, in any case; InputError where GLUE has none."""
    named = {known.casefold(): task for known, task in GLUE.items()}
    named["mnli-m"] = GLUE["MNLI"]
    if str(name).casefold() not in named:
        raise InputError(f"GLUE has no task {name!r}; its tasks are {listed(GLUE, most=11)}.")
    return named[str(name).casefold()]


def glue_settings(name, folder):
    """What `keras_bert.finetune` takes for a task of GLUE, beside the model and the output.

        kb.finetune(**glue_settings("CoLA", "glue_data"), model="runs/a/model", output="runs/cola")

    Args:
        name: CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE or WNLI.
        folder: GLUE's folder, or the task's own folder in it.

    Raises:
        InputError: there is no such task or file, or it has nothing to train on.
    """
    task = glue_task(name)
    if task.train is None:
        raise InputError(
            f"GLUE's {task.name} has nothing to train on: train on MNLI, and give `glue` to "
            "evaluate and predict."
        )
    return {
        "task": task.kind,
        "glue": task.name,
        "metric": task.metric,
        "train": task.path(folder, "train"),
        "dev": task.path(folder, "dev"),
    }


def glue_columns(table, task, *, labelled):
    """The `Columns` of a file of GLUE; None of JSON Lines and tfds, which have their own names.

    Raises InputError where it is another file, which has not the columns of the task.
    """
    if table.width is None:
        return None
    line, first = table.sample[0]
    names = tuple(cell.strip() for cell in first)
    if task.without_header and not set(task.texts) & set(names):
        text, label = task.without_header
        if table.width > max(text, label):
            return Columns(texts=(text,), label=label)
    needed = (*task.texts, *((task.label,) if labelled else ()))
    for name in needed:
        if name not in names:
            raise table.error(
                line,
                f'no column "{name}", which a file of GLUE\'s {task.name} has; its columns are '
                f"{quoted(names)}.",
            )
    label = names.index(task.label) if task.label in names else None
    return Columns(texts=tuple(map(names.index, task.texts)), label=label, names=names)


def glue_metrics(name, measures):
    """GLUE's own figures of a task by the names that GLUE has for them.

    Args:
        name: the task's.
        measures: what `official_metrics` of a model gives on a file of the task.

    Returns:
        A dictionary: `task`, the figures, and `score`, their mean, which GLUE's average is of.

    Raises:
        InputError: a figure is not among them, since the model is for another task.
    """
    task = glue_task(name)
    missing = [metric for metric in task.metrics if metric not in measures]
    if missing:
        raise InputError(
            f"GLUE's {task.name} is measured by {listed(task.metrics)}; this model has no "
            f"{listed(missing)}. Train it on the files of GLUE."
        )
    metrics = {_METRICS[metric]: measures[metric] for metric in task.metrics}
    return {"task": task.name, **metrics, "score": fmean(metrics.values())}


def glue_submission(name, answers):
    """Yields the lines of the file to hand in: a header, then "index TAB prediction" each.

    Args:
        name: the task's.
        answers: the answers to all rows of its test file, in order.

    Raises:
        InputError: an answer is none of the task's labels, or no score where it needs one.
    """
    task = glue_task(name)
    yield _HEADER
    for index, answer in enumerate(answers):
        yield f"{index}\t{_handed_in(task, answer)}"


def write_submission(name, answers, folder):
    """Writes the file to hand in into a folder, under the name that GLUE wants; returns its path.

    Args:
        name: the task's.
        answers: see `glue_submission`; they are asked for when the place is known to be free.
        folder: where the files to hand in are to be; one of this task that was written before is
            replaced.

    Raises:
        InputError: see `glue_submission`; or another file has the name.
    """
    path = Path(folder) / glue_task(name).hands_in
    check_output_file(path, is_ours=_is_submission, force=True)
    write_text(path, "".join(f"{line}\n" for line in glue_submission(name, answers)))
    return path


def _is_submission(path):
    with path.open("rb") as file:
        return file.readline(100).rstrip(b"\r\n") == _HEADER.encode()


def _handed_in(task, answer):
    if not task.labels:
        if "label" in answer:
            raise InputError(f"GLUE's {task.name} needs scores; this model gives labels.")
        return f"{min(5.0, max(0.0, answer['score'])):.3f}"
    label = answer.get("label")
    if label not in task.labels:
        said = "no labels" if label is None else f'"{label}"'
        raise InputError(
            f"The model says {said}; the labels of GLUE's {task.name} are {quoted(task.labels)}. "
            "Train it on the files of GLUE."
        )
    return label


def glue_average(metrics, *, with_wnli):
    """GLUE's score: the mean over the tasks of the mean of each task's figures.

    Args:
        metrics: {task: its official figure, or a list of them}; those of MNLI are both accuracies,
            matched and mismatched, of which the other may also stand under MNLI-mm. AX is no part
            of the score.
        with_wnli: False leaves WNLI out, as the BERT paper does.

    Raises:
        InputError: a task is missing, or is none of GLUE's.
    """
    counted = [name for name in GLUE if name not in ("AX", "MNLI-mm")]
    if not with_wnli:
        counted.remove("WNLI")
    each = {
        glue_task(name).name: [value] if isinstance(value, int | float) else list(value)
        for name, value in metrics.items()
    }
    missing = [name for name in counted if name not in each]
    if missing:
        raise InputError(f"GLUE's average needs {listed(missing)}, too.")
    if "MNLI-mm" in each:
        each["MNLI"] = [each["MNLI"][0], *each["MNLI-mm"]]
    return fmean(fmean(each[name]) for name in counted)
