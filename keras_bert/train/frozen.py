"""Training a head alone: what the encoder makes of each row is computed once, for all epochs."""

import math
import os
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_bert.errors import InputError
from keras_bert.input_pipeline.batches import RowBatches
from keras_bert.input_pipeline.length_batches import sorted_batches
from keras_bert.terminal import shows_bars

_SECONDS_BETWEEN_LINES = 10


def freeze(task):
    """Takes the embeddings and blocks of a task's encoder out of training.

    What is left to train is the head with the pooler, and the mix of a `MixedEncoder`.

    Returns a pair of models over the task's own weights: `features`, from the task's inputs to what
    the head reads of the encoder, and `head`, from that (and the inputs that the head reads itself)
    to the task's outputs. Training the head trains the task.

    The features are by name hidden states (B batch, S tokens in a row, D width): `hidden_0` to
    `hidden_L` of a `MixedEncoder`, the embeddings first, and of any other encoder the last one.
    They are (B, S, D), or of [CLS] alone (B, 1, D), where the head reads nothing but the pooler;
    of examples of several rows, each row's [CLS], (B, n, D).
    """
    encoder = task.encoder
    for layer in (encoder.base().embeddings, *encoder.base().blocks):
        layer.trainable = False
    view = encoder.base().view(hidden_states=True)
    inputs = task.feature_inputs()
    found = view({name: task.to_rows(x) for name, x in inputs.items()})["hidden_states"]
    states = {f"hidden_{k}": found[k] for k in encoder.states_read}
    of_tokens = "sequence_output" in task.READS
    if not of_tokens:
        rows = {k: keras.ops.expand_dims(state[:, 0], axis=1) for k, state in states.items()}
        states = {k: task.to_examples(state, inputs) for k, state in rows.items()}
    features = keras.Model(
        inputs,
        {name: keras.ops.cast(state, "float32") for name, state in states.items()},
        name="features",
    )
    read = {k: keras.Input(state.shape[1:], name=k) for k, state in states.items()}
    others = {
        name: keras.Input(given.shape[1:], dtype=given.dtype, name=name)
        for name, given in task.input.items()
        if name in task.READS
    }
    hidden = list(read.values())
    if not of_tokens:
        hidden = [keras.ops.reshape(state, (-1, 1, state.shape[-1])) for state in hidden]
    outputs = task.connect(encoder.from_states(hidden), others)
    return features, keras.Model({**read, **others}, outputs, name="head")


class FrozenRows(RowBatches):
    """Rows whose batches hold what a frozen encoder makes of them.

    Batches are of the same rows as those of the rows that are given. The features take 4 bytes a
    number (for a classifier D numbers a row) in a file without a name that is mapped into memory
    and goes with the process.

    Args:
        rows: `TokenizedExamples`.
        features, head: the models that `freeze` gives.
        batch_size: rows in a step of the encoder.
        folder: where the file is to lie; None is the system's temporary folder.
        on_batch: a function that is called after each batch with the number of its rows.

    Raises:
        InputError: the disk has no room for the file.
    """

    def __init__(self, rows, features, head, *, batch_size, folder=None, on_batch=None):
        super().__init__(rows.lengths)
        self._rows = rows
        self._others = [name for name in head.input if name not in features.output]
        # Features have a vector for every token of a row, or for the [CLS] of it or its parts.
        several = any(state.shape[1] is None for state in features.output.values())
        of_tokens = several and len(features.input["input_ids"].shape) == 2
        self._several = several
        self._sizes = self.lengths if of_tokens else rows.encoder_rows
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._stores = {
            name: _mapped_array((int(self._sizes.sum()), state.shape[-1]), folder)
            for name, state in features.output.items()
        }
        read = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in features.input.items()}
        # Not `predict`, in which each replica of a strategy would compute the same.
        compute = tf.function(
            lambda inputs: features(inputs, training=False), [read], autograph=False
        )
        for numbers in sorted_batches(self.lengths, batch_size=batch_size):
            inputs = rows.inputs(*rows.take(tf.constant(numbers, tf.int32)))
            found = compute({name: inputs[name] for name in read})
            for name, store in self._stores.items():
                for row, state in zip(numbers, found[name].numpy(), strict=True):
                    size = self._sizes[row]
                    store[self._starts[row] :][:size] = state[:size]
            if on_batch is not None:
                on_batch(len(numbers))

    @property
    def weight_totals(self):
        return self._rows.weight_totals

    def batch(self, rows):
        batch, width = {}, tf.constant(1)
        if self._several or self._others:
            inputs = self._rows.inputs(*self._rows.take(rows))
            batch = {name: inputs[name] for name in self._others}
            if self._several:
                width = tf.shape(inputs["input_ids"])[1]
        found = tf.numpy_function(self._read, [rows, width], [tf.float32] * len(self._stores))
        batch |= {
            name: tf.ensure_shape(states, [None, None, store.shape[-1]])
            for (name, store), states in zip(self._stores.items(), found, strict=True)
        }
        return batch, *self._rows.targets(rows)

    def _read(self, rows, width):
        """The features of some rows, a list of (B, S, D) in the order of names; padding is zero."""
        found = []
        for store in self._stores.values():
            batch = np.zeros((len(rows), width, store.shape[-1]), np.float32)
            sizes = self._sizes[rows]
            for place, (start, size) in enumerate(zip(self._starts[rows], sizes, strict=True)):
                batch[place, :size] = store[start : start + size]
            found.append(batch)
        return found


def computed_once(splits, features, head, *, batch_size, folder):
    """The `FrozenRows` of several `TokenizedExamples`, with a bar on standard error."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tqdm(
        total=sum(len(rows) for rows in splits),
        desc="computing features",
        unit=" rows",
        mininterval=0.1 if shows_bars() else _SECONDS_BETWEEN_LINES,
        dynamic_ncols=True,
        file=sys.stderr,
    ) as bar:
        return [
            FrozenRows(
                rows, features, head, batch_size=batch_size, folder=folder, on_batch=bar.update
            )
            for rows in splits
        ]


def _mapped_array(shape, folder):
    """A float32 array in a file without a name."""
    size = 4 * math.prod(shape)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            # Taken now: a full disk under a mapped file would end the process without a word.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise InputError(
                f"There is no room for {size / 2**20:,.0f} MiB of a frozen encoder's outputs in "
                f"{folder or tempfile.gettempdir()}: {error.strerror}."
            ) from error
        return np.memmap(file, np.float32, mode="w+", shape=shape)
