"""Training a head alone: what the encoder makes of each row is computed once, for all epochs."""

import math
import os
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_bert.base.errors import InputError
from keras_bert.base.terminal import drawn_on, shows_bars
from keras_bert.inputs.batches import SequenceBatches, sorted_batches

_SECONDS_BETWEEN_LINES = 10


def freeze(task):
    """Takes the embeddings and blocks of a task's encoder out of training.

    What is left to train is the head with all that belongs to it, such as the pooler or a mix of
    layers.

    Returns a pair of models over the task's own weights: `features`, from the task's inputs to what
    the head reads of the encoder, and `head`, from that (and the inputs that the head reads itself)
    to the task's outputs. Training the head trains the task.

    The features are by name hidden states (B batch, S sequence, D hidden size): `hidden_0` to
    `hidden_L` for a mix of layers, the embeddings first, and otherwise the last one. They are
    (B, S, D), or of the first token alone (B, 1, D), where the head reads nothing else; of examples
    of several sequences (B, n, S, D) or (B, n, 1, D).
    """
    encoder = task.encoder
    for group in encoder.layer_groups:
        for layer in group:
            layer.trainable = False
    inputs = task.feature_inputs()
    rows = {name: task.to_sequences(x) for name, x in inputs.items()}
    outputs = task.encoder_outputs
    if "sequence_output" in outputs:  # which holds the first token, too
        outputs = ("sequence_output",)
    found = encoder(rows, outputs=outputs)
    if "hidden_states" in found:
        states = {f"hidden_{k}": state for k, state in enumerate(found["hidden_states"])}
        reads_tokens = task.bilstm_layer is not None or "sequence_output" in task.ENCODER_OUTPUTS
        if not reads_tokens:
            # Not `[:, :1]`, whose length Keras does not tell before there is a batch.
            states = {k: keras.ops.expand_dims(x[:, 0], axis=1) for k, x in states.items()}
    else:
        (name,) = found
        state = found[name]
        if name == "first_output":
            state = keras.ops.expand_dims(state, axis=1)  # (B, 1, D)
        states = {f"hidden_{encoder.config.num_hidden_states - 1}": state}
    states = {k: task.to_examples(state, inputs) for k, state in states.items()}
    features = keras.Model(
        inputs,
        {name: keras.ops.cast(state, "float32") for name, state in states.items()},
        name="features",
    )
    read = {k: keras.Input(state.shape[1:], name=k) for k, state in states.items()}
    others = {
        name: keras.Input(given.shape[1:], dtype=given.dtype, name=name)
        for name, given in task.input.items()
        if name in task.inputs_of_head
    }
    hidden = [task.to_sequences(state) for state in read.values()]  # (R, S, D) each
    encoded = {"hidden_states": hidden}
    if outputs != ("hidden_states",):
        encoded = {"sequence_output": hidden[0], "first_output": hidden[0][:, 0]}
    outputs = task.head(encoded, others)
    return features, keras.Model({**read, **others}, outputs, name="head")


class FrozenExamples(SequenceBatches):
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
        # What is stored for each row: a vector for every token, or for [CLS] alone, of each of the
        # encoder's rows, of which an example of several rows has an axis.
        shape = next(iter(features.output.values())).shape  # (B, S, D) or (B, n, S, D)
        self._of_tokens = shape[-2] is None
        axes = [
            rows.encoder_sequences,
            rows.lengths if self._of_tokens else np.ones_like(rows.lengths),
        ]
        self._blocks = np.stack(axes[4 - len(shape) :], axis=1)  # (N, 1 or 2)
        self._sizes = self._blocks.prod(axis=1)
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
                    vectors = state[self._inside(row)].reshape(-1, store.shape[-1])
                    store[self._starts[row] :][: len(vectors)] = vectors
            if on_batch is not None:
                on_batch(len(numbers))

    @property
    def weight_totals(self):
        return self._rows.weight_totals

    def batch(self, rows):
        axes = self._blocks.shape[1]
        batch, shape = {}, tf.constant([1])
        if self._of_tokens or axes > 1 or self._others:
            inputs = self._rows.inputs(*self._rows.take(rows))
            batch = {name: inputs[name] for name in self._others}
            shape = tf.shape(inputs["input_ids"])[1:]  # (S,) or (n, S)
            if not self._of_tokens:
                shape = tf.concat([shape[:-1], [1]], axis=0)
        found = tf.numpy_function(self._read, [rows, shape], [tf.float32] * len(self._stores))
        batch |= {
            name: tf.ensure_shape(states, [None] * (1 + axes) + [store.shape[-1]])
            for (name, store), states in zip(self._stores.items(), found, strict=True)
        }
        return batch, *self._rows.targets(rows)

    def _read(self, rows, shape):
        """The features of some rows in the order of names; padding is zero.

        A list of (B, S, D), or of (B, n, S, D).
        """
        found = []
        for store in self._stores.values():
            batch = np.zeros((len(rows), *shape, store.shape[-1]), np.float32)
            for place, row in zip(batch, rows, strict=True):
                held = store[self._starts[row] :][: self._sizes[row]]
                place[self._inside(row)] = held.reshape(*self._blocks[row], -1)
            found.append(batch)
        return found

    def _inside(self, row):
        """Where a row's vectors are in its place of a batch."""
        return tuple(map(slice, self._blocks[row]))


def computed_once(splits, features, head, *, batch_size, folder):
    """The `FrozenExamples` of several `TokenizedExamples`, with a bar on standard error."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tqdm(
        total=sum(len(rows) for rows in splits),
        desc="computing features",
        unit=" rows",
        mininterval=0.1 if shows_bars() else _SECONDS_BETWEEN_LINES,
        dynamic_ncols=True,
        file=drawn_on(sys.stderr),
    ) as bar:
        return [
            FrozenExamples(
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
