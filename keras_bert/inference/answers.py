"""A trained task's answers to any number of examples, in bounded memory."""

import dataclasses
from itertools import islice

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.inputs.batches import sorted_batches
from keras_bert.inputs.framing import check_max_length
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
        self.unknown = self.tokens = 0  # of the examples so far, the first as [UNK]
        self._outputs = None

    def outputs(self, rows):
        """`TokenizedExamples` -> what the model gives by the output's name, in the order of rows.

        A float32 array with a row each; where the output has another axis without a fixed size
        (tokens, say), a list of arrays, each a row with the padding that it had in its batch.
        """
        found = room_for(self.task.output, len(rows))
        for numbers in sorted_batches(rows.lengths, batch_size=self.batch_size):
            put(self._answer(rows, rows.take(numbers)), numbers, into=found)
        return found

    def of_sequences(self, rows):
        """`TokenizedExamples` -> the answers to its examples, a list."""
        return self.task.decode(self.outputs(rows), rows)

    def of_examples(self, examples):
        """Yields (list of examples, list of answers) over an iterable that `task.read` gave.

        Lines of a pipe are answered a batch at a time; of anything else, more are read together, so
        that batches of about one length can be made of them.
        """
        together, beside = self.batch_size, 0
        if not (examples.kind == "lines" and examples.name == "standard input"):
            together = max(_EXAMPLES_TOGETHER, together)
            beside = self.task.context_size(max_length=self.max_length)
        for chunk, own in _chunks(examples, together, beside=beside):
            rows = self.task.features(chunk, max_length=self.max_length)
            unknown, tokens = rows.unknown
            self.unknown, self.tokens = self.unknown + unknown, self.tokens + tokens
            yield chunk[own], self.of_sequences(rows)[own]

    def _answer(self, rows, taken):
        if self._outputs is None:
            # AutoGraph, which we have no use for, writes Python files into the temporary folder.
            @tf.function(input_signature=[_any_batch(value) for value in taken], autograph=False)
            def outputs(*taken):
                found = self.task(rows.inputs(*taken), training=False)
                return {name: tf.cast(values, tf.float32) for name, values in found.items()}

            self._outputs = outputs
        found = {name: values.numpy() for name, values in self._outputs(*taken).items()}
        check_numbers(found)
        return found


def _chunks(examples, count, *, beside):
    """Yields (a list, the slice of it that is new), the new ones `count` at a time.

    Up to so many examples `beside` them, before and after, are in the list again, so that what is
    read in the context of others has it at the edges of a chunk, too.
    """
    iterator, held, first = iter(examples), [], 0
    while True:
        held += islice(iterator, first + count + beside - len(held))
        last = min(first + count, len(held))
        if first == last:
            return
        yield held, slice(first, last)
        begin = max(0, last - beside)
        held, first = held[begin:], last - begin


def room_for(outputs, count):
    """The place of a model's outputs, symbolic tensors by name, for so many rows.

    A float32 array with a row each, or where the output has another axis without a fixed size, a
    list.
    """
    return {
        name: [None] * count
        if None in output.shape[1:]
        else np.empty((count, *output.shape[1:]), np.float32)
        for name, output in outputs.items()
    }


def put(batch, numbers, *, into):
    """Puts a batch's outputs, (B, …) by name, in the place of its rows, given by their numbers."""
    for name, values in batch.items():
        for row, value in zip(numbers, np.asarray(values), strict=True):
            into[name][row] = value


def _any_batch(value):
    """The spec of what a batch of any size has in the place of `value`."""
    spec = tf.type_spec_from_value(value)
    if isinstance(value, tf.RaggedTensor):
        inner = value.flat_values.shape[1:]
        shape = [None] * (1 + value.ragged_rank) + inner.as_list()
        return tf.RaggedTensorSpec(shape, value.dtype, ragged_rank=value.ragged_rank)
    return tf.TensorSpec([None, *spec.shape[1:]], value.dtype)


def check_numbers(outputs):
    """Raises `InputError` where an array of a dictionary, by name, holds NaN or infinity.

    The weights of a folder are finite, which loading it sees to, but may be as large as 1e38.
    """
    if not all(np.isfinite(values).all() for values in outputs.values()):
        raise InputError(
            "The model's answers are NaN or infinite: its weights are too large to compute with."
        )


def opened(base, settings_of, values):
    """The task of the settings' `model`, and all settings.

    `model` is a task, a model folder, or the output of a training run.

    Args:
        base: the settings class of the call, whose values are checked before the model is loaded.
        settings_of: the function from the settings class of a kind of task to that of the call.
        values: the settings by name.

    Raises:
        InputError: a setting cannot be, or the model is none that reads labelled files.
    """
    names = {field.name for field in dataclasses.fields(base)}
    base.of({name: value for name, value in values.items() if name in names})
    model = values["model"]
    task = model if isinstance(model, Task) else load_task(find_model_folder(model))
    if task.SETTINGS is None:
        raise InputError(
            f"{model} holds a model of the task {task.KIND}, which reads no labelled files; "
            "fine-tune it first."
        )
    settings = settings_of(task.SETTINGS).of(values)
    if settings.max_length is not None:
        check_max_length(settings.max_length, task.config, task.tokenizer)
    return task, settings
