"""A trained task's answers to any number of examples, in bounded memory."""

import dataclasses
from itertools import islice

import numpy as np
import tensorflow as tf

from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.errors import InputError
from keras_bert.input_pipeline.framing import check_max_length
from keras_bert.input_pipeline.length_batches import sorted_batches
from keras_bert.settings import reading, together
from keras_bert.tasks.task import Task

# So many examples are sorted by length together; their ids are what stays in memory.
_EXAMPLES_TOGETHER = 2048


class Inference:
    """A task with everything that comes before its outputs, traced once.

    `task.predict` over a dataset would trace the dataset's functions again for every chunk of a
    stream, which costs more than a small model.

    Args:
        task: a `Task` that reads examples, with a tokenizer.
        batch_size: rows at a time.
        max_length: tokens in a row; None is the task's own.
    """

    def __init__(self, task, *, batch_size, max_length=None):
        self.task = task
        self.batch_size = batch_size
        self.max_length = max_length
        self._outputs = None

    def outputs(self, rows):
        """`TokenizedExamples` -> float32 arrays by the output's name, in the order of the rows."""
        found = {}
        for numbers in sorted_batches(rows.lengths, batch_size=self.batch_size):
            batch = self._answer(rows, rows.take(numbers))
            for name, values in batch.items():
                into = found.setdefault(name, np.empty((len(rows), *values.shape[1:]), np.float32))
                into[numbers] = values
        return found

    def of_rows(self, rows):
        """`TokenizedExamples` -> the answers to its examples, a list."""
        return self.task.decode(self.outputs(rows), rows.examples)

    def of_examples(self, examples):
        """Yields (list of examples, list of answers) over an iterable that `task.read` gave.

        Lines of a pipe are answered a batch at a time; of anything else, more are read together, so
        that batches of about one length can be made of them.
        """
        together = self.batch_size
        if not (examples.kind == "lines" and examples.name == "standard input"):
            together = max(_EXAMPLES_TOGETHER, together)
        iterator = iter(examples)
        while chunk := list(islice(iterator, together)):
            yield chunk, self.of_rows(self.task.features(chunk, max_length=self.max_length))

    def _answer(self, rows, segments):
        if self._outputs is None:
            signature = [tf.RaggedTensorSpec([None, None], tf.int32)] * len(segments)

            @tf.function(input_signature=signature)
            def outputs(*segments):
                found = self.task(rows.inputs(*segments), training=False)
                return {name: tf.cast(values, tf.float32) for name, values in found.items()}

            self._outputs = outputs
        found = {name: values.numpy() for name, values in self._outputs(*segments).items()}
        check_numbers(found)
        return found


def check_numbers(outputs):
    """Raises `InputError` where an array of a dictionary, by name, holds NaN or infinity.

    The weights of a folder are finite, which loading it sees to, but may be as large as 1e38.
    """
    if not all(np.isfinite(values).all() for values in outputs.values()):
        raise InputError(
            "The model's answers are NaN or infinite: its weights are too large to compute with."
        )


def opened(settings_class, values):
    """The task of the settings' `model`, the class of its reading settings, and all settings.

    `model` is a task, a model folder, or the output of a training run.

    Raises:
        InputError: a setting cannot be, or the model is none that reads labelled files.
    """
    names = {field.name for field in dataclasses.fields(settings_class)}
    settings_class.of({name: value for name, value in values.items() if name in names})
    model = values["model"]
    task = model if isinstance(model, Task) else load_task(find_model_folder(model))
    if task.SETTINGS is None:
        raise InputError(
            f"{model} holds a model of the task {task.KIND}, which reads no labelled files; "
            "fine-tune it first."
        )
    columns = reading(task.SETTINGS)
    settings = together(columns, settings_class).of(values)
    if settings.max_length is not None:
        check_max_length(settings.max_length, task.config)
    return task, columns, settings
