"""Predictions of a fine-tuned task for any number of examples, in bounded memory."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.settings import reader_settings, takes_of_model
from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.encoders.config import check_max_length
from keras_bert.inference.settings import PredictSettings, export_version, predict_settings
from keras_bert.inference.table_files import (
    PredictionRows,
    check_table_output,
    import_pandas,
    write_table,
)
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.glue import write_submission
from keras_bert.readers.sources import is_file
from keras_bert.tasks import settings_class
from keras_bert.tasks.outputs import Inference
from keras_bert.tasks.task import Task
from keras_bert.text.vocabulary import note_on_unknown


@takes_of_model(PredictSettings, predict_settings(settings_class("classifier")))
def predict(model=None, data=None, *, as_dataframe=False, report=None, **settings) -> Any:
    """Yields one dictionary per example, in order (see the task's `decode`).

    If a file has labels, they are included as `expected`. Labels are strings, as
    `keras_bert.readers.labels` writes numbers and truth values. A row without a text is left out,
    counted and reported with its line. Of a folder of texts each has its `file`.

    Args:
        **settings: the fields of `PredictSettings`, and those of the model's task.
        as_dataframe: return a pandas DataFrame with a row per example, and with the index of `data`
            if that is a DataFrame or a Series: the columns of a table of texts, and those of the
            prediction (see `PredictionRows`).
        report: a function that is called with a line on how the file was read, and at the end with
            others on what was left out, and if the vocabulary does not fit the text. Without it,
            what was left out, and a choice of columns by their content, are warnings.

    `model` may also be a task, and `data` a table in memory (a pandas DataFrame, a
    `datasets.Dataset`, a list of dictionaries), a `tf.data.Dataset`, or a sequence of texts. These
    are the arguments for a classifier; other tasks have their own in place of `text` and of those
    on how a file is read (see `keras_bert.inference.predict_settings`).

    Returns:
        An iterator, with `as_dataframe` a DataFrame, or with `output` the number of rows written.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """
    pandas = import_pandas() if as_dataframe else None
    settings = with_positional(settings, model=model, data=data)
    output = settings.get("output")
    if output is not None and settings.get("glue") is None:
        given = [settings.get(name) for name in ("model", "data")]
        inputs = [path for path in given if is_file(path)]
        check_table_output(output, inputs=inputs, force=settings.get("force", False))
    task, settings = open_task(PredictSettings, predict_settings, settings)
    data = settings.data
    if data is None:
        names = task.SETTINGS.EXAMPLE_FIELDS
        names = ("text",) if getattr(settings, "text", None) is not None else names
        texts = [getattr(settings, name) for name in names]
        data = texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))
    source = task.read(
        data,
        inferred_arguments=task.inferred_arguments,
        schema=task.columns,
        labelled=False,
        **settings.part(reader_settings(task.SETTINGS)),
    )
    report_source(source, report)
    inference = open_inference(task, settings)
    if hasattr(source, "row_of") and (pandas is not None or output is not None):
        source.keep_rows()
    pairs = _rounded_predictions(inference, source, report)
    if output is not None and getattr(settings, "glue", None) is not None:
        return write_submission(settings.glue, (prediction for _, prediction in pairs), output)
    if output is not None:
        return write_table(PredictionRows(source, pairs), output)
    if pandas is None and getattr(source, "location", "") == "file":
        return ({"file": example.line, **prediction} for example, prediction in pairs)
    if pandas is None:
        return (prediction for _, prediction in pairs)
    rows = PredictionRows(source, pairs)
    table = pandas.DataFrame(rows)
    if isinstance(data, pandas.DataFrame | pandas.Series):  # without the rows that are left out
        table.index = data.index[[line - 1 for line in rows.lines]]
    return table


def _rounded_predictions(inference, source, report):
    """Yields (example, prediction), then reports what was left out."""
    for examples, predictions in inference.predict_examples(source):
        for example, prediction in zip(examples, predictions, strict=True):
            yield example, rounded(prediction)
    report_notes(source, report)
    note = note_on_unknown(inference.unknown, inference.tokens)
    if note and report is not None:
        report(f"Note: {note}")


def rounded(value):
    """JSON-like values with six decimals, the precision of float32."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    if isinstance(value, np.ndarray):  # a vector
        return value.astype(np.float64).round(6).tolist()
    return round(value, 6) if isinstance(value, float) else value


def as_task(model):
    """The given task, or that of a model folder or of a training run's output."""
    return model if isinstance(model, Task) else load_task(find_model_folder(model))


def open_export_or_task(model):
    """The `ExportedTask` of a folder with a SavedModel; of anything else `as_task`."""
    version = export_version(model) if is_file(model) else None
    if version is not None and not Path(model, "config.json").exists():
        from keras_bert.inference.exported_task import ExportedTask

        return ExportedTask(version)
    return as_task(model)


def open_inference(task, settings):
    """The `Inference` of a task and the settings of a call, or that of an export."""
    max_length = getattr(settings, "max_length", None)
    if isinstance(task, Task):
        return Inference(task, batch_size=settings.batch_size, max_length=max_length)
    from keras_bert.inference.exported_task import ExportedInference

    if max_length is not None:
        raise InputError.naming("An export has its own {max_length}. Leave it out.")
    return ExportedInference(task, batch_size=settings.batch_size)


def check_task(task, *abilities, model, lacks, advice):
    """Raises InputError for a task that offers none of `abilities`, or without a tokenizer.

    Args:
        task: the task of `model`, a folder or the task itself.
        abilities: of those of `Task.OFFERS`.
        lacks: what other tasks lack.
        advice: what to do, a sentence.
    """
    if not set(abilities) & set(task.OFFERS):
        raise InputError(
            f"{model} contains a model of the task {task.TASK_TYPE}, which has no {lacks}. {advice}"
        )
    if task.tokenizer is None:
        raise InputError(f"{model} has no supported tokenizer, so it cannot read text.")


def with_positional(settings, **given):
    """The settings of a call by name, with those that were given by position."""
    return {name: value for name, value in given.items() if value is not None} | settings


def open_task(base, settings_of, given):
    """Returns the task of the setting `model` and the `Settings` of a call.

    Args:
        base: the settings class of the call, which is checked before the model is loaded.
        settings_of: a function from the settings class of a task to that of the call.
        given: the settings by name.

    Raises:
        InputError: a setting is invalid, or the task does not read labelled files.
    """
    names = {field.name for field in dataclasses.fields(base)}
    base.of({name: value for name, value in given.items() if name in names})
    task = open_export_or_task(given["model"])
    if not task.reads_files():
        raise InputError(
            f"{given['model']} contains a model of the task {task.TASK_TYPE}, which does not read "
            "labelled files. Fine-tune it first."
        )
    settings = settings_of(task.SETTINGS).of(given)
    text_field = getattr(settings, "text", None) if "one_text" in settings.names() else None
    if (
        text_field is not None or getattr(settings, "one_text", False)
    ) and not task.settings.one_text:
        if task is given["model"] or not isinstance(task, Task):
            raise InputError.naming(
                "The model scores pairs of texts. Make the task with {one_text=True} for single "
                "ones."
            )
        task.update_settings(one_text=True)
    if settings.max_length is not None and isinstance(task, Task):
        check_max_length(settings.max_length, task.config, task.tokenizer)
    return task, settings
