"""Predictions of a fine-tuned task for any number of examples, in bounded memory."""

import dataclasses
from itertools import islice
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.settings import reader_settings, takes_of_model
from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.encoders.config import check_max_length
from keras_bert.inference import PredictSettings, export_version, predict_settings
from keras_bert.inference.table_files import PredictionRows, check_table_output, write_table
from keras_bert.inputs.batches import sorted_batches
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.glue import write_submission
from keras_bert.readers.sources import is_file
from keras_bert.tasks import settings_class
from keras_bert.tasks.task import Task
from keras_bert.text.vocabulary import note_on_unknown

# Examples that are sorted by length together; their token ids are what stays in memory.
_EXAMPLES_TOGETHER = 2048
# The attribute of a model with its traced functions.
_COMPUTATIONS = "_keras_bert_computations"


@takes_of_model(PredictSettings, predict_settings(settings_class("classifier")))
def predict(model=None, data=None, *, as_dataframe=False, report=None, **settings) -> Any:
    """Yields one dictionary per example, in order (see the task's `decode`).

    Where a file has labels, they are included as `expected`. Labels are strings, as
    `keras_bert.readers.labels` writes numbers and truth values. A row without a text is left out,
    counted and reported with its line. Of a folder of texts each has its `file`.

    Args:
        **settings: the fields of `PredictSettings`, and those of the model's task.
        as_dataframe: return a pandas DataFrame with a row per example, and with the index of `data`
            where that is a DataFrame or a Series: the columns of a table of texts, and those of the
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
    pandas = _pandas() if as_dataframe else None
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


def _pandas():
    try:
        import pandas
    except ModuleNotFoundError:
        raise InputError("`as_dataframe` needs pandas. Install it: pip install pandas.") from None
    return pandas


def _rounded_predictions(inference, source, report):
    """Yields (example, prediction), then reports what was left out."""
    for examples, predictions in inference.of_examples(source):
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


def check_task(task, classes, *, model, lacks, advice):
    """Raises InputError for a task of other classes than `classes`, or without a tokenizer.

    Args:
        task: the task of `model`, a folder or the task itself.
        classes: a class of tasks, or a union of them.
        lacks: what other tasks lack.
        advice: what to do, a sentence.
    """
    if not isinstance(task, classes):
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
    of_one = getattr(settings, "text", None) if "one_text" in settings.names() else None
    if (of_one is not None or getattr(settings, "one_text", False)) and not task.settings.one_text:
        if task is given["model"] or not isinstance(task, Task):
            raise InputError.naming(
                "The model scores pairs of texts. Make the task with {one_text=True} for single "
                "ones."
            )
        task.update_settings(one_text=True)
    if settings.max_length is not None and isinstance(task, Task):
        check_max_length(settings.max_length, task.config, task.tokenizer)
    return task, settings


def collected_outputs(model, count, batches):
    """The outputs of a model for N sequences by name, in the order of the sequences.

    Each is a float32 array (N, …), or, if an axis such as the tokens has no fixed size, a list of N
    arrays that are padded as in their batch.

    Args:
        model: a functional model with outputs by name.
        count: N.
        batches: pairs of the numbers of a batch's sequences and their outputs by name.
    """
    outputs = {
        name: [None] * count
        if None in output.shape[1:]
        else np.empty((count, *output.shape[1:]), np.float32)
        for name, output in model.output.items()
    }
    for numbers, batch in batches:
        for name, output in batch.items():
            for number, of_sequence in zip(numbers, np.asarray(output), strict=True):
                outputs[name][number] = of_sequence
    return outputs


class Outputs:
    """Computes a model's outputs for tokenized examples, in the order of the examples.

    Batches have sequences of similar lengths, the shortest first. The function of a batch is traced
    once for a model, which keeps it. (`task.predict` would trace the functions of a dataset again
    for every chunk of a stream, which costs more than a small model.)

    Args:
        model: a functional model with dictionaries in and out, such as a task.
        batch_size: sequences per batch.

    Raises InputError for outputs that are NaN or infinite.
    """

    def __init__(self, model, *, batch_size):
        self.model = model
        self.batch_size = batch_size

    def __call__(self, sequences):
        """`TokenizedExamples` -> outputs by name, as `collected_outputs`."""
        return collected_outputs(self.model, len(sequences), self.batches(sequences))

    def batches(self, sequences):
        """Yields (numbers of sequences, their outputs by name) for each batch; arrays (B, …)."""
        for numbers in sorted_batches(sequences.lengths, batch_size=self.batch_size):
            taken = sequences.take(numbers)
            compute = _computation(self.model, sequences, taken)
            outputs = {name: np.asarray(x, np.float32) for name, x in compute(*taken).items()}
            check_finite(outputs)
            yield numbers, outputs


def _computation(model, sequences, taken):
    """The traced function of the arguments of `sequences.inputs` to a model's outputs.

    The model keeps those that are traced. Another one is traced when the weights are others, such
    as those that `quantize` makes, and for other models of an average.
    """
    made = vars(model).get(_COMPUTATIONS, {})
    specs = tuple(map(_any_batch, taken))
    weights = (*map(id, model.variables), *map(id, getattr(model, "_members", ())))
    key = sequences.framing_key, specs, weights
    if key not in made:
        light = sequences.without_examples()
        if keras.backend.backend() != "tensorflow":  # which compiles batches of each shape itself
            return lambda *taken: model.predict_on_batch(
                {name: np.asarray(x) for name, x in light.inputs(*taken).items()}
            )

        # Without AutoGraph, which writes Python files into the temporary folder.
        @tf.function(input_signature=specs, autograph=False)
        def compute(*taken):
            inputs = light.inputs(*taken)
            batch = model({name: inputs[name] for name in model.input}, training=False)
            return {name: tf.cast(output, tf.float32) for name, output in batch.items()}

        # Not as Keras sets attributes, which it would track. Of older weights nothing is kept.
        made = {other: made[other] for other in made if other[-1] == weights}
        object.__setattr__(model, _COMPUTATIONS, {**made, key: compute})
        return compute
    return made[key]


class Inference:
    """A task and everything between examples and predictions, traced once.

    Args:
        task: a `Task` that reads examples, with a tokenizer.
        batch_size: sequences per batch.
        max_length: maximum sequence length; None is the task's own.

    Attributes: `outputs`, the `Outputs` of the task; `tokens` and `unknown`, how many tokens the
    examples so far had and how many of them were [UNK].
    """

    def __init__(self, task, *, batch_size, max_length=None):
        self.task = task
        self.batch_size = batch_size
        self.max_length = max_length
        self.unknown = self.tokens = 0
        self.outputs = Outputs(task, batch_size=batch_size)

    def of_sequences(self, sequences):
        """`TokenizedExamples` -> the list of predictions for its examples."""
        return self.task.decode(self.outputs(sequences), sequences)

    def of_examples(self, examples):
        """Yields (list of examples, list of predictions) for an iterable that `task.read` returned.

        A pipe is answered batch by batch; of any other source more examples are read together, so
        that batches have sequences of similar lengths.
        """
        count, context = self.batch_size, 0
        if not (examples.kind == "lines" and examples.name == "standard input"):
            count = max(_EXAMPLES_TOGETHER, count)
            context = self.task.context_size(max_length=self.max_length)
        for chunk, is_new in _chunks(examples, count, context=context):
            sequences = self.task.features(chunk, max_length=self.max_length)
            unknown, tokens = sequences.unknown
            self.unknown, self.tokens = self.unknown + unknown, self.tokens + tokens
            yield chunk[is_new], self.of_sequences(sequences)[is_new]


def _chunks(examples, count, *, context):
    """Yields (a list, the slice of it that is new), with `count` new examples at a time.

    Up to `context` examples on either side of the new ones are in the list again, for tasks that
    read an example with its neighbours.
    """
    iterator, held, first = iter(examples), [], 0
    while True:
        held += islice(iterator, first + count + context - len(held))
        last = min(first + count, len(held))
        if first == last:
            return
        yield held, slice(first, last)
        begin = max(0, last - context)
        held, first = held[begin:], last - begin


def _any_batch(value):
    """The `tf.TypeSpec` of a tensor, with any batch size."""
    if isinstance(value, tf.RaggedTensor):
        inner = value.flat_values.shape[1:]
        shape = [None] * (1 + value.ragged_rank) + inner.as_list()
        return tf.RaggedTensorSpec(shape, value.dtype, ragged_rank=value.ragged_rank)
    return tf.TensorSpec([None, *value.shape[1:]], value.dtype)


def check_finite(outputs):
    """Raises `InputError` if an array of a dictionary contains NaN or infinity.

    The weights of a folder are finite (checked when it is loaded), but may be as large as 1e38.
    """
    if not all(np.isfinite(output).all() for output in outputs.values()):
        raise InputError(
            "The model's outputs are NaN or infinite: its weights are too large to compute with."
        )
