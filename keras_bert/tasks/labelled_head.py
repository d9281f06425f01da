"""What every head that gives labels is made of."""

import keras

from keras_bert.layers.dense import dense


def labelled_head(encoder, labels, *, dropout):
    """The dropout and the linear layer, one logit a label, that Hugging Face's classes have.

    Args:
        encoder: the encoder that the head stands on.
        labels: the names of the labels in the order of the logits, each once; at least two.
        dropout: share of what the head reads that is dropped in training. None is the config's
            `classifier_dropout`, or where that is None its `hidden_dropout_prob`.

    Returns:
        The labels as a tuple, the `Dropout` and the `Dense`.

    Raises:
        ValueError: the labels are fewer than two or not unique.
    """
    labels = tuple(labels)
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ValueError(f"`labels` must be two or more different ones. Received: {labels}")
    config = encoder.config
    if dropout is None:
        dropout = config.classifier_dropout
    if dropout is None:
        dropout = config.hidden_dropout_prob
    policy = encoder.token_embedding.dtype_policy
    classifier = dense(
        len(labels),
        initializer_range=config.initializer_range,
        name="classifier",
        dtype=policy,
    )
    return labels, keras.layers.Dropout(dropout, dtype=policy, name="dropout"), classifier
