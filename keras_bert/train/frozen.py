"""Training a head alone: what the encoder makes of each text is computed once, for all epochs."""

import math
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.input_pipeline.classification import TokenizedTexts
from keras_bert.input_pipeline.length_batches import sorted_batches
from keras_bert.tasks.mixed_encoder import MixedEncoder


def freeze(task):
    """Takes the embeddings and blocks of a task's encoder out of training.

    What is left to train is the head with the pooler, and the mix of a `MixedEncoder`.

    Returns a pair of models over the task's own weights: `features`, from the task's inputs to what
    the head reads, and `head`, from that to the task's outputs. Training the head trains the task.

    The features are by name hidden states (B batch, S tokens in a row, D width): `hidden_0` to
    `hidden_L` of a `MixedEncoder`, the embeddings first, and of any other encoder the last one.
    They are (B, S, D), or (B, 1, D), of [CLS] alone, where the head reads nothing but the pooler.

    Raises ValueError where the head reads inputs of the task beside the encoder's outputs.
    """
    names, cut = _cut_off_the_encoder(task)
    encoder = task.encoder
    mixed = isinstance(encoder, MixedEncoder)
    base = encoder.encoder if mixed else encoder
    for layer in (base.embeddings, *base.blocks):
        layer.trainable = False
    view = base.view(hidden_states=True)
    states = dict(enumerate(view.output["hidden_states"]))
    if not mixed:
        states = {len(base.blocks): states[len(base.blocks)]}
    if names == ["pooled_output"]:
        states = {k: keras.ops.expand_dims(state[:, 0], axis=1) for k, state in states.items()}
    features = keras.Model(
        view.input,
        {f"hidden_{k}": keras.ops.cast(state, "float32") for k, state in states.items()},
        name="features",
    )
    inputs = {
        name: keras.Input(state.shape[1:], name=name) for name, state in features.output.items()
    }
    if mixed:
        given = encoder.mix(list(inputs.values()))
    else:
        (last,) = inputs.values()
        given = {"sequence_output": last}
        if base.pooler is not None:
            given["pooled_output"] = base.pooler(last)
    head = keras.Model(inputs, cut([given[name] for name in names]), name="head")
    return features, head


def _cut_off_the_encoder(task):
    """-> the names of the encoder's outputs that are used, and a model from a list of them."""
    nodes = [node for level in task._nodes_by_depth.values() for node in level]
    (own,) = [node for node in nodes if node.operation is task.encoder]
    outputs = keras.tree.pack_sequence_as(task.encoder.output, own.output_tensors)
    read = {id(tensor) for node in nodes if node is not own for tensor in node.input_tensors}
    if any(id(tensor) in read for tensor in keras.tree.flatten(task.input)):
        raise ValueError(
            "Only a head that reads nothing but its encoder can be trained alone. "
            f"Received: {type(task).__name__}"
        )
    names = [name for name, tensor in outputs.items() if id(tensor) in read]
    return names, keras.Model([outputs[name] for name in names], task.output)


class FrozenTexts(TokenizedTexts):
    """Tokenized texts whose batches hold what a frozen encoder makes of them instead of ids.

    Batches are of the same rows as those of the `TokenizedTexts`. The features take 4 bytes a
    number (for a classifier D numbers a text) in a file without a name that is mapped into memory
    and goes with the process.

    Args:
        texts: the `TokenizedTexts`.
        features: the model that `freeze` gives.
        batch_size: rows in a step of the encoder.
        folder: where the file is to lie; None is the system's temporary folder.
        on_batch: a function that is called after each batch with the number of its rows.

    Raises:
        InputError: the disk has no room for the file.
    """

    def __init__(self, texts, features, *, batch_size, folder=None, on_batch=None):
        super().__init__(
            texts.tokens,
            texts.labels,
            label_names=texts.label_names,
            vocabulary=texts._vocabulary,
            max_length=texts._max_length,
        )
        # Features have a vector for every token of a row, or for its [CLS].
        of_tokens = any(state.shape[1] is None for state in features.output.values())
        self._sizes = self.lengths if of_tokens else np.ones_like(self.lengths)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._stores = {
            name: _mapped_array((int(self._sizes.sum()), state.shape[-1]), folder)
            for name, state in features.output.items()
        }
        features.jit_compile = False  # rows come in many shapes
        for rows in sorted_batches(self.lengths, batch_size=batch_size):
            inputs, _ = super()._batch(tf.constant(rows, tf.int32))
            found = features.predict_on_batch({name: x.numpy() for name, x in inputs.items()})
            for name, store in self._stores.items():
                for row, state in zip(rows, found[name], strict=True):
                    size = self._sizes[row]
                    store[self._starts[row] :][:size] = state[:size]
            if on_batch is not None:
                on_batch(len(rows))

    def _read(self, rows):
        """The features of some rows, a list of (B, S, D) in the order of names; padding is zero."""
        sizes = self._sizes[rows]
        found = []
        for store in self._stores.values():
            batch = np.zeros((len(rows), sizes.max(), store.shape[-1]), np.float32)
            for place, (start, size) in enumerate(zip(self._starts[rows], sizes, strict=True)):
                batch[place, :size] = store[start : start + size]
            found.append(batch)
        return found

    def _batch(self, rows):
        _, labels = super()._batch(rows)
        found = tf.numpy_function(self._read, [rows], [tf.float32] * len(self._stores))
        batch = {
            name: tf.ensure_shape(states, [None, None, store.shape[-1]])
            for (name, store), states in zip(self._stores.items(), found, strict=True)
        }
        return batch, labels


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
