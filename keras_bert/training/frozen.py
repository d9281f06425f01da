"""Training a head alone: a frozen encoder's outputs are computed once, for all epochs and runs."""

import math
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.progress import ProgressBar
from keras_bert.heads.reader import WithoutMasks
from keras_bert.inputs.batches import SequenceBatches, kept_by_dataset
from keras_bert.tasks.outputs import Outputs


def freeze(task):
    """Freezes a task's encoder; returns the models `features` and `head` over the task's weights.

    What remains to train is the head with everything that belongs to it, such as the pooler or a
    layer mix. `features` maps the task's inputs to what the head reads of the encoder, and `head`
    maps that (and the inputs that the head reads itself) to the task's outputs. Training the head
    trains the task.

    The features are hidden states by name (B batch, S sequence, D hidden size): `hidden_K` of each
    layer K of a learned mix, 0 being the embeddings, otherwise one: that of the task's choice of
    layers, which may be 4 D wide. They are (B, S, D), or
    (B, 1, D) if the head reads the first token alone; for examples of several sequences
    (B, n, S, D) or (B, n, 1, D).
    """
    encoder = task.encoder
    for group in encoder.layer_groups:
        for layer in group:
            layer.trainable = False
    inputs = task.feature_inputs()
    sequences = {name: task.to_sequences(x) for name, x in inputs.items()}
    outputs = task.encoder_outputs
    if "sequence_output" in outputs:  # which contains the first token, too
        outputs = ("sequence_output",)
    encoded = task.reader.select(WithoutMasks()(encoder(sequences, outputs=outputs)))
    reads_tokens = task.reader.reads_vectors or "sequence_output" in task.ENCODER_OUTPUTS
    states = encoded.get("hidden_states")
    if states is None and reads_tokens:
        states = [encoded["sequence_output"]]
    elif states is None:
        states = [keras.ops.expand_dims(encoded["first_output"], axis=1)]  # (B, 1, D)
    elif not reads_tokens:
        # Not `[:, :1]`, whose length Keras does not infer before there is a batch.
        states = [keras.ops.expand_dims(state[:, 0], axis=1) for state in states]
    numbers = task.reader.numbers if len(states) > 1 else [max(task.reader.numbers)]
    states = {
        f"hidden_{number}": task.to_examples(state, inputs)
        for number, state in zip(numbers, states, strict=True)
    }
    features = keras.Model(
        inputs,
        {name: keras.ops.cast(state, "float32") for name, state in states.items()},
        name="features",
    )
    read = {k: keras.Input(state.shape[1:], name=k) for k, state in states.items()}
    others = {
        name: keras.Input(x.shape[1:], dtype=x.dtype, name=name)
        for name, x in task.input.items()
        if name in task.inputs_of_head
    }
    hidden = [task.to_sequences(state) for state in read.values()]  # (R, S, D) each
    encoded = {"hidden_states": hidden}
    if task.reader.scalar_mix is None:
        encoded = {"sequence_output": hidden[0], "first_output": hidden[0][:, 0]}
    outputs = task.head(encoded, others)
    return features, keras.Model({**read, **others}, outputs, name="head")


class FrozenExamples(SequenceBatches):
    """Examples whose batches contain a frozen encoder's outputs for them.

    Batches have the same sequences as those of the examples given. The features take 4 bytes per
    number (for a classifier D numbers per sequence), in an unnamed file that is mapped into memory
    and disappears with the process.

    Args:
        examples: `TokenizedExamples`.
        features, head: the models that `freeze` gives.
        batch_size: sequences in a step of the encoder.
        folder: where the file is made; None is the system's temporary folder.
        on_batch: a function that is called after each batch with the number of its sequences.

    Raises:
        InputError: the disk has no room for the file.
    """

    def __init__(self, examples, features, head, *, batch_size, folder=None, on_batch=None):
        super().__init__(examples.lengths)
        self._examples = examples
        self._others = [name for name in head.input if name not in features.output]
        # Stored per sequence of the encoder: a vector for every token, or for [CLS] alone. An
        # example of several sequences has an axis for them.
        shape = next(iter(features.output.values())).shape  # (B, S, D) or (B, n, S, D)
        self._has_tokens = shape[-2] is None
        vectors = examples.lengths if self._has_tokens else np.ones_like(examples.lengths)
        axes = [examples.encoder_sequences, vectors]
        self._shapes = np.stack(axes[4 - len(shape) :], axis=1)  # (N, 1 or 2)
        self._sizes = self._shapes.prod(axis=1)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._stores = {
            name: mapped_array((int(self._sizes.sum()), state.shape[-1]), folder)
            for name, state in features.output.items()
        }
        for numbers, states in Outputs(features, batch_size=batch_size).batches(examples):
            for name, store in self._stores.items():
                for number, state in zip(numbers, states[name], strict=True):
                    vectors = state[self._inside(number)].reshape(-1, store.shape[-1])
                    store[self._starts[number] :][: len(vectors)] = vectors
            if on_batch is not None:
                on_batch(len(numbers))

    @property
    def weight_totals(self):
        return self._examples.weight_totals

    @property
    def has_labels(self):
        return self._examples.has_labels

    def check_trainable(self):
        self._examples.check_trainable()

    def epoch_batches(self, *, count, seed, epoch):
        return self._examples.epoch_batches(count=count, seed=seed, epoch=epoch)

    def batch(self, numbers):
        axes = self._shapes.shape[1]
        batch, shape = {}, tf.constant([1])
        if self._has_tokens or axes > 1 or self._others:
            inputs = self._examples.inputs(*self._examples.take(numbers))
            batch = {name: inputs[name] for name in self._others}
            shape = tf.shape(inputs["input_ids"])[1:]  # (S,) or (n, S)
            if not self._has_tokens:
                shape = tf.concat([shape[:-1], [1]], axis=0)
        targets = self._examples.targets(numbers) if self.has_labels else ()
        return {**batch, **self._states(numbers, shape)}, *targets

    def _states(self, numbers, shape):
        """The features by name, padded to a shape."""
        read = tf.numpy_function(
            kept_by_dataset(self._read), [numbers, shape], [tf.float32] * len(self._stores)
        )
        axes = self._shapes.shape[1]
        return {
            name: tf.ensure_shape(states, [None] * (1 + axes) + [store.shape[-1]])
            for (name, store), states in zip(self._stores.items(), read, strict=True)
        }

    def _read(self, numbers, shape):
        """A list of (B, S, D) or (B, n, S, D), in the order of names; 0 at padding."""
        batches = []
        for store in self._stores.values():
            batch = np.zeros((len(numbers), *shape, store.shape[-1]), np.float32)
            for padded, number in zip(batch, numbers, strict=True):
                vectors = store[self._starts[number] :][: self._sizes[number]]
                padded[self._inside(number)] = vectors.reshape(*self._shapes[number], -1)
            batches.append(batch)
        return batches

    def _inside(self, number):
        """The slices of an example's padded array that are not padding."""
        return tuple(map(slice, self._shapes[number]))


def compute_once(shared, key, splits, features, head, *, batch_size, folder):
    """The `FrozenExamples` of several `TokenizedExamples`, with a progress bar.

    Args:
        shared: those of the earlier runs of a series by their keys, a dictionary; the new ones are
            added, and those of another first part of the key are dropped, since each takes the disk
            space of its features.
        key: what they depend on: the layers and the sample, the seed of random weights, and the
            batch size, since sums over other batches differ by rounding.
        splits, features, head, batch_size, folder: see `FrozenExamples`.
    """
    for other in [other for other in shared if other[0] != key[0]]:
        del shared[other]
    if key in shared:
        return shared[key]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    total = sum(len(examples) for examples in splits)
    with ProgressBar("computing features", unit="examples", total=total, line_seconds=10) as bar:
        shared[key] = [
            FrozenExamples(
                examples,
                features,
                head,
                batch_size=batch_size,
                folder=folder,
                on_batch=lambda count: bar.update(advance=count),
            )
            for examples in splits
        ]
    return shared[key]


def mapped_array(shape, folder):
    """A float32 array in an unnamed file."""
    size = 4 * math.prod(shape)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            # Taken now: a full disk under a mapped file would end the process without a message.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise InputError(
                f"Could not reserve {size / 2**20:,.0f} MiB for a frozen encoder's outputs in "
                f"{folder or tempfile.gettempdir()}: {error.strerror}."
            ) from error
        return np.memmap(file, np.float32, mode="w+", shape=shape)
