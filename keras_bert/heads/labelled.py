"""What every head that gives labels is made of."""

import keras

from keras_bert.layers.dense import logits_layer


def check_labels(labels, *, least):
    """The labels as a tuple; ValueError unless they are at least so many, and each once."""
    if isinstance(labels, str):  # which would be a label a character
        raise ValueError(f"`labels` must be a list of names. Received: {labels!r}")
    labels = tuple(labels)
    if len(labels) < least or len(set(labels)) < len(labels):
        count = {1: "one", 2: "two"}[least]
        raise ValueError(f"`labels` must be {count} or more different ones. Received: {labels}")
    return labels


def labelled_head(encoder, units, *, dropout):
    """The dropout and the linear layer, one logit a label, that Hugging Face's classes have.

    Args:
        encoder: the encoder that the head stands on.
        units: number of logits.
        dropout: fraction of what the head reads that is dropped in training. None is the config's
            `head_dropout`.

    Returns:
        The `Dropout` and the `Dense`.
    """
    policy = encoder.layer_policy
    if dropout is None:
        dropout = encoder.config.head_dropout
    classifier = logits_layer(
        units,
        initializer_range=encoder.config.head_initializer_range,
        name="classifier",
        dtype=policy,
    )
    return keras.layers.Dropout(dropout, dtype=policy, name="dropout"), classifier
