"""Distillation: a smaller student that learns the answers of a teacher (Hinton et al. 2015)."""

import dataclasses
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import counted
from keras_bert.base.ownership import reject_input_as_output
from keras_bert.base.settings import takes_of_model
from keras_bert.checkpoints import find_model_folder, load_task, save_folder
from keras_bert.checkpoints.locations import name_of
from keras_bert.checkpoints.model_folder import fingerprint_of_folder, folders_read
from keras_bert.inputs.batches import without_autograph
from keras_bert.readers.examples import (
    held_back,
    line_on_held_back,
    not_reported,
    report_source,
)
from keras_bert.readers.retrieval_folder import RETRIEVAL
from keras_bert.readers.sources import files_of
from keras_bert.tasks.classification import NO_WEIGHTS, ClassifierSettings
from keras_bert.tasks.distillation import (
    SCORES,
    VECTORS,
    check_known_labels,
    check_teachable,
    kind_of,
)
from keras_bert.tasks.text_embedding import LONGEST_STATIC, TEXTS
from keras_bert.tasks.text_embedding import SCORES as RATED
from keras_bert.tasks.text_embedding.metrics import pair_similarities
from keras_bert.training.callbacks import check_callbacks
from keras_bert.training.devices import scope_of_run
from keras_bert.training.distillation_settings import (
    DIMENSIONS,
    DistillSettings,
    StaticDistillSettings,
    distill_settings,
)
from keras_bert.training.finetune import finetune_on, with_size_of
from keras_bert.training.finetuning_examples import FinetuningData, read_data
from keras_bert.training.series import over_seeds, run_series
from keras_bert.training.static_student import static_student
from keras_bert.training.student_starts import starting_point
from keras_bert.training.teaching import Teaching, answers_of

# What a student has of its teacher if the caller does not give it, beside what follows from the
# starting model: how texts are read, and how vectors are compared.
_SETTINGS_OF_TEACHER = (
    *("max_length", "multi_label", "normalize", "similarity"),
    *("prompts", "default_prompt", "lowercase"),
)


class _DistillClassifier(ClassifierSettings, DistillSettings):
    """The arguments of `distill` for its default task."""


@takes_of_model(DistillSettings, _DistillClassifier)
@without_autograph
def distill(*, report=None, **settings) -> dict[str, Any]:
    """Trains a smaller student on the answers of a teacher, or resumes an interrupted run.

    The teacher is a classifier (of one text or two), a tagger, a regression or cross-encoder, or a
    text embedder. Its answers for all texts are computed once, into a file that is mapped into
    memory. All else is as in `keras_bert.finetune`, whose other arguments it takes, too: dev
    metrics, seeds, TensorBoard, and that the same call resumes exactly.

    With `static` and without `data` nothing is trained: `output` is a model folder (see
    `keras_bert.training.static_student.static_student`).

    Args:
        **settings: the fields of `DistillSettings`, and those of the teacher's task.
        report: called with each line about the files and the training, such as `print`.

    `data` and `dev` may also be data in memory, as for `keras_bert.finetune`, and `data` a list of
    texts. Examples of `data`, and of a part of it that is held back as `dev`, have the teacher's
    answer as their label in metrics if they have none.

    These are the arguments for a teacher that is a classifier. Another task has its own settings in
    place of the classifier's.

    Returns:
        The contents of metrics.json, as of `keras_bert.finetune`, with `distillation`: how many
        `answers` of the teacher there are (of a tagger one per word), and how many are `labelled`.
        Of a static student without `data`: `tokens`, `dimensions` and `parameters`.

    Raises:
        InputError: an argument or a file is invalid, the teacher's task cannot be distilled, the
            data have labels that it does not have, the student is wider than it, or the output
            folder contains something else.
    """
    report = report or not_reported
    teacher_folder = _teacher_folder(settings)
    if settings.get("static") and settings.get("data") is None:
        return _distill_static(StaticDistillSettings.of(settings), report)
    task_type = _task_type(teacher_folder, settings)
    given = {**settings, "task": task_type, "data": _in_memory(settings.get("data"))}
    settings = distill_settings(task_type).of(given)
    check_callbacks(settings.callbacks)
    with scope_of_run(settings, report, command="distill") as settings:
        data, settings = read_taught_data(settings, given, report)
        settings = data.recipe.resolved(settings)
        settings = with_size_of(data, settings, report, command="distill")
        runs = settings.runs()
        one_run = partial(finetune_on, data, report=report, command="distill")
        if len(runs) == 1:
            return one_run(settings)
        return run_series(
            settings,
            runs,
            lambda name, run: one_run(run),
            command="distill",
            inputs=data.inputs,
            varied=("seed",),
            summary=lambda metrics, models: over_seeds(metrics, runs),
            report=report,
        )


def _in_memory(data):
    """The data, where a sequence of strings are texts, and not files as elsewhere."""
    are_texts = isinstance(data, list | tuple) and all(isinstance(text, str) for text in data)
    return [{"text": text} for text in data] if are_texts else data


def _teacher_folder(settings):
    """The folder of the teacher; InputError without one."""
    if settings.get("teacher") is None:
        raise InputError.naming("Missing required arguments: {}.", argument("teacher"))
    return find_model_folder(settings["teacher"])


def _task_type(folder, settings):
    """The task type of the teacher, which a caller may give, too."""
    task_type = load_type(folder)
    if settings.get("task") not in (None, task_type):
        raise InputError.naming(
            "The teacher {} is of the task {}. Leave {task} {} out.",
            name_of(folder),
            task_type,
            settings["task"],
        )
    return task_type


def load_type(folder):
    """The task type of a folder; InputError if it has no task."""
    from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint

    return PretrainedCheckpoint(folder, tokenizer=False).task_class().TASK_TYPE


def _distill_static(settings, report):
    """Writes a static student; returns its sizes."""
    folder = find_model_folder(settings.teacher)
    reject_input_as_output(folders_read(folder), settings.output)
    teacher = load_task(folder)
    _check_embedder(teacher)
    dimensions = settings.dimensions or min(DIMENSIONS, teacher.config.hidden_size)
    student = static_student(
        teacher,
        dimensions=dimensions,
        sif=settings.sif or None,
        batch_size=settings.batch_size,
    )
    save_folder(student, student.tokenizer, settings.output, overwrite=settings.force)
    before, after = teacher.count_params(), student.count_params()
    report(
        f"A vector of {counted(dimensions, 'number')} for each of "
        f"{counted(len(student.tokenizer), 'token')}: {after:,} parameters. The teacher has "
        f"{before:,}."
    )
    return {"tokens": len(student.tokenizer), "dimensions": dimensions, "parameters": after}


def _check_embedder(teacher):
    if "text-vectors" not in teacher.OFFERS:
        raise InputError.naming(
            "{static} makes a student of a text embedder, and the teacher is of the task {}. Make "
            "one of an embedder, and give it to `keras_bert.finetune` (keras-bert finetune).",
            teacher.TASK_TYPE,
        )


def read_taught_data(settings, given, report) -> tuple[FinetuningData, DistillSettings]:
    """Reads and answers the texts that a student learns.

    Returns the `FinetuningData` of the runs, with its `Teaching`, and the settings with those of
    the teacher that are not given.

    Args:
        settings: the settings, of `distill_settings`.
        given: the caller's arguments by name.
        report: called with each line about the files, the teacher and the student.

    Raises InputError: see `distill`.
    """
    folder = find_model_folder(settings.teacher)
    teacher = load_task(folder)
    check_teachable(teacher, which="teacher")
    if settings.static:
        _check_embedder(teacher)
    if getattr(settings, "crf", False):
        raise InputError.naming(
            "{crf} gives probabilities for whole sequences only, of which a student learns none. "
            "Leave it out."
        )
    if getattr(settings, "class_weights", NO_WEIGHTS) != NO_WEIGHTS:
        raise InputError.naming(
            "{class_weights} is for labels, and a student learns probabilities. Leave it out."
        )
    start = starting_point(settings, folder, teacher)
    _check_width(start, teacher)
    kind = kind_of(teacher)
    settings.check_answers(
        have_labels=kind != VECTORS, are_probabilities=kind not in (SCORES, VECTORS)
    )
    train, dev = _read(settings, teacher, kind, report)
    report(f"The teacher is {name_of(folder)}: {teacher.config.described}.")
    answers, predictions = answers_of(teacher, train, batch_size=settings.batch_size)
    known = _known(train, kind)
    train = _labelled(teacher, train, predictions, kind)
    dev = _dev(teacher, dev, kind, settings, report)
    given, settings = _with_teachers(given, settings, teacher, start)
    inferred = _inferred(teacher, train, kind)
    data = read_data(settings, given, report, examples=(train, dev, inferred), start=start)
    teaching = Teaching(
        kind=kind,
        answers=answers,
        known=np.repeat(known, _rows_of(train, kind, len(answers))),
        output=teacher.TEACHES,
        temperature=settings.distillation_temperature,
        label_weight=settings.label_weight,
    )
    inputs = {**data.inputs, "teacher": fingerprint_of_folder(folder)}
    report(
        f"{counted(len(train), 'example')}, {int(known.sum()):,} of them with a label of their "
        f"own; {counted(len(dev), 'dev example')}."
    )
    return dataclasses.replace(data, teaching=teaching, inputs=inputs), settings


def _inferred(teacher, train, kind):
    """The arguments of a student that follow from its teacher, or from the teacher's answers."""
    inferred = dict(teacher.inferred_arguments)
    if kind == VECTORS:
        return {**inferred, "form": TEXTS}
    if kind == SCORES and teacher.activation is not None:
        return {**inferred, "activation": teacher.activation}
    if kind == SCORES:  # in the range of the scores
        return {**type(teacher).infer_arguments(train), **inferred}
    return inferred


def _read(settings, teacher, kind, report):
    """-> (training examples, dev examples), with labels or without."""
    teacher_class = type(teacher)
    reading = {**settings.columns}
    inferred = teacher.inferred_arguments if kind != VECTORS else {}

    def read(data, schema, **options):
        examples = []
        for path in files_of(data):
            source = teacher_class.read(
                path, schema=schema, inferred_arguments=inferred, **{**reading, **options}
            )
            report_source(source, report)
            file_examples = list(source)
            for note in dict.fromkeys(source.notes()):
                report(f"Note: {note}")
            if not file_examples:
                raise InputError(f"{source.name} contains no texts.")
            examples += file_examples
            schema = source.schema
        return examples, schema

    train, schema = read(settings.data, teacher.columns, labelled=False)
    dev = None
    if settings.dev is not None:
        dev, _ = read(settings.dev, schema if kind != VECTORS else None)
    if kind == VECTORS:
        train = _single_texts(train)
    if len(train) < 2:
        raise InputError(
            f"{train[0].source.name} has a single text, of which nothing can be held back. "
            "Training needs several."
        )
    check_known_labels(teacher, [e for e in train if _has_label(e, kind)])
    if dev is None:
        train, dev = held_back(train)
        report(line_on_held_back(train, dev))
    return train, dev


def _single_texts(examples):
    """An example for each different text."""
    if examples[0].form == RETRIEVAL:
        raise InputError(
            f"{examples[0].source.name} is a retrieval folder. Give its texts as a file, such as "
            "its corpus.jsonl."
        )
    texts = {}
    for example in examples:
        for text in example.texts:
            texts.setdefault(text, example)
    return [
        dataclasses.replace(example, form=TEXTS, texts=(text,), label=None)
        for text, example in texts.items()
    ]


def _has_label(example, kind):
    if kind == VECTORS:
        return False
    return (example.tags if hasattr(example, "tags") else example.label) is not None


def _known(examples, kind):
    return np.array([_has_label(example, kind) for example in examples], np.bool_)


def _labelled(teacher, examples, predictions, kind):
    """The examples, if they have no label with the teacher's answer."""
    if kind == VECTORS:
        return examples
    return [
        example if _has_label(example, kind) else teacher.with_answer(example, prediction)
        for example, prediction in zip(examples, predictions, strict=True)
    ]


def _rows_of(examples, kind, count):
    """How many answers each example has."""
    if count == len(examples):
        return 1
    return [len(example.words) for example in examples]


def _dev(teacher, dev, kind, settings, report):
    """The dev examples; those without a label have the teacher's answer as one."""
    if kind == VECTORS:
        if settings.dev is not None:
            return dev
        _, predictions = answers_of(teacher, dev, batch_size=settings.batch_size)
        pairs = [*pairwise(zip(dev, predictions, strict=True))]
        if len(pairs) < 3:
            raise InputError.naming(
                "{} has too few texts to compare the student with its teacher on some that are "
                "held back. Give more, or {dev}.",
                dev[0].source.name,
            )
        by = teacher.settings.similarity
        report(
            f"The metric is on {counted(len(pairs), 'pair')} of held-back texts, whose score is "
            "the similarity of the teacher's vectors."
        )
        return [
            dataclasses.replace(
                one,
                form=RATED,
                texts=(one.text, other.text),
                label=_similarity(first, second, by=by),
            )
            for (one, first), (other, second) in pairs
        ]
    known = _known(dev, kind)
    if known.all():
        return dev
    _, predictions = answers_of(teacher, dev, batch_size=settings.batch_size)
    report(
        f"Of {counted(len(dev), 'dev example')} {int((~known).sum()):,} have no label of their "
        "own: the metrics on these are the agreement with the teacher."
    )
    return _labelled(teacher, dev, predictions, kind)


def _similarity(first, second, *, by):
    """Returns the similarity of the vectors of two predictions."""
    vectors = (np.asarray(prediction["embedding"])[None] for prediction in (first, second))
    return float(pair_similarities(*vectors, by=by)[0])


def _with_teachers(given, settings, teacher, start):
    """The arguments and the settings with those of the teacher that are not given."""
    if start.is_teacher:
        return given, settings  # which continues with all of them
    named = {name for name, value in given.items() if value is not None}
    stored = teacher.stored_settings()
    changes = {
        name: getattr(teacher.settings, name)
        for name in _SETTINGS_OF_TEACHER
        if name in stored and name not in named and getattr(teacher.settings, name) is not None
    }
    longest = start.config.max_length
    if settings.static and "max_length" not in named:
        changes["max_length"] = LONGEST_STATIC
    if "max_length" in changes and longest is not None:
        changes["max_length"] = min(longest, changes["max_length"])
    if kind_of(teacher) == VECTORS and "dense" not in named:
        if start.config.hidden_size != teacher.width:
            changes["dense"] = [f"{teacher.width}:identity"]
    return {**given, **changes}, dataclasses.replace(settings, **changes)


def _check_width(start, teacher):
    """Raises InputError for a student that is wider than its teacher."""
    width, largest = start.config.hidden_size, teacher.config.hidden_size
    if width > largest:
        raise InputError(
            f"The student has the hidden size {width:,}, and its teacher {largest:,}. A student "
            "may not be wider than its teacher."
        )
