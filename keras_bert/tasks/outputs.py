"""The outputs of a task's model for any number of examples, and its predictions, traced once."""

from itertools import islice

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.batches import sorted_batches
from keras_bert.programs import COMPILES_EACH_SHAPE, compiled, rows_of_program

# Examples that are sorted by length together; their token ids are what stays in memory.
_EXAMPLES_TOGETHER = 2048
# The attribute of a model with its traced functions.
_COMPUTATIONS = "_keras_bert_computations"


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
            for number, sequence_output in zip(numbers, np.asarray(output), strict=True):
                outputs[name][number] = sequence_output
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
        sequences = sequences.in_fixed_lengths() if COMPILES_EACH_SHAPE else sequences
        for numbers in sorted_batches(sequences.lengths, batch_size=self.batch_size):
            taken = sequences.take(np.resize(numbers, rows_of_program(len(numbers))))
            compute = _computation(self.model, sequences, taken)
            outputs = {
                name: np.asarray(x, np.float32)[: len(numbers)]
                for name, x in compute(*taken).items()
            }
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
        framing_only = sequences.without_examples()

        def inputs(*taken):
            inputs = framing_only.inputs(*taken)
            return ({name: inputs[name] for name in model.input},)

        def outputs(inputs):
            batch = model(inputs, training=False)
            return {name: keras.ops.cast(output, "float32") for name, output in batch.items()}

        compute = compiled(
            outputs,
            prepared=inputs,
            signature=specs,
            reads=(model, *getattr(model, "_members", ())),
        )
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

    def predict_sequences(self, sequences):
        """`TokenizedExamples` -> the list of predictions for its examples."""
        return self.task.decode(self.outputs(sequences), sequences)

    def predict_examples(self, examples):
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
            yield chunk[is_new], self.predict_sequences(sequences)[is_new]


def _chunks(examples, count, *, context):
    """Yields (a list, the slice of it that is new), with `count` new examples at a time.

    Up to `context` examples on either side of the new ones are in the list again, for tasks that
    read an example with its neighbours.
    """
    iterator, window, first = iter(examples), [], 0
    while True:
        window += islice(iterator, first + count + context - len(window))
        last = min(first + count, len(window))
        if first == last:
            return
        yield window, slice(first, last)
        begin = max(0, last - context)
        window, first = window[begin:], last - begin


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
