"""Heads with one logit per label, the next-sentence head (Devlin et al. 2018, section 3.1), and
examples of several sequences.
"""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import logits_layer
from keras_bert.readers.labels import is_missing, named_labels, one_label
from keras_bert.readers.sources import plain


def check_labels(labels, *, least):
    """The labels as a tuple of strings; ValueError unless there are `least` or more, each once.

    Values of numpy and pandas may be among them; a missing one is no label.
    """
    if isinstance(labels, str):  # whose characters would be the labels
        raise ValueError(f"`labels` must be a list of names. Received: {labels!r}.")
    labels = [label for label in map(plain, labels) if not is_missing(label, na=False)]
    names = named_labels([one_label(label) for label in labels if not isinstance(label, str)])
    labels = tuple(label if isinstance(label, str) else names[one_label(label)] for label in labels)
    if len(labels) < least or len(set(labels)) < len(labels):
        count = {1: "one", 2: "two"}[least]
        raise ValueError(f"`labels` must be {count} or more different ones. Received: {labels}.")
    return labels


def labelled_head(encoder, units, *, dropout, use_bias=True):
    """The `Dropout` and the linear layer (`units` logits) of Hugging Face's classes."""
    policy = encoder.layer_policy
    classifier = logits_layer(
        units,
        initializer_range=encoder.config.head_initializer_range,
        name="classifier",
        dtype=policy,
        use_bias=use_bias,
    )
    return keras.layers.Dropout(dropout, dtype=policy, name="dropout"), classifier


@keras.saving.register_keras_serializable(package="keras_bert")
class HiddenLayers(Layer):
    """Dense layers with ReLU and dropout after each, between what a head reads and its logits.

    Shapes: x (B, D) -> (B, U).

    New weights are Glorot and Bengio's (2010): with the encoder's small ones, stacked layers learn
    too slowly at the learning rates of an encoder.

    Args:
        count: the number of layers.
        units: U.
        dropout: the dropout rate.
    """

    def __init__(self, *, count, units, dropout, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        policy = self.dtype_policy
        names = [f"dense_{number}" for number in range(count)]
        self.layers = [
            keras.layers.Dense(units, activation="relu", name=name, dtype=policy) for name in names
        ]
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype=policy)

    def build(self, x_shape):
        size = x_shape[-1]
        for layer in self.layers:
            layer.build((None, size))
            size = self.units
        self.built = True

    def call(self, x, training=None):
        for layer in self.layers:
            x = self.dropout(layer(x), training=training)
        return x

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-1], self.units)


@keras.saving.register_keras_serializable(package="keras_bert")
class NextSentenceHead(Layer):
    """Predicts whether the second segment follows the first.

    Shapes: pooled (B, D) -> logits (B, 2), float32 at least: column 0 is "follows", 1 is "random",
    as in BERT.

    Args:
        initializer_range: standard deviation of new weights.
    """

    def __init__(self, *, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.dense = logits_layer(
            2, initializer_range=initializer_range, name="dense", dtype=self.dtype_policy
        )

    def build(self, pooled_shape):
        self.dense.build(pooled_shape)
        self.built = True

    def call(self, pooled):
        return self.dense(pooled)


@keras.saving.register_keras_serializable(package="keras_bert")
class FlattenChoices(keras.layers.Layer):
    """One axis of all sequences of examples, such as choices. Shapes: (B, n, …) -> (B n, …)."""

    def call(self, x):
        return ops.reshape(x, (-1, *ops.shape(x)[2:]))

    def compute_output_shape(self, shape):
        return (None, *shape[2:])


@keras.saving.register_keras_serializable(package="keras_bert")
class GroupChoices(keras.layers.Layer):
    """Undoes `FlattenChoices`. Shapes: (B n, …) and any tensor (B, n, …) -> (B, n, …)."""

    def call(self, x, grouped):
        return ops.reshape(x, (*ops.shape(grouped)[:2], *ops.shape(x)[1:]))

    def compute_output_shape(self, x_shape, grouped_shape):
        return (*grouped_shape[:2], *x_shape[1:])
