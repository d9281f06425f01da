"""What every head that gives labels is made of."""

import keras
from keras import ops

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
        dropout: share of what the head reads that is dropped in training. None is the config's
            `classifier_dropout`, or where that is None its `hidden_dropout_prob`.

    Returns:
        The `Dropout` and the `Dense`.
    """
    config = encoder.config
    if dropout is None:
        dropout = config.classifier_dropout
    if dropout is None:
        dropout = config.hidden_dropout_prob
    policy = encoder.layer_policy
    classifier = logits_layer(
        units, initializer_range=config.initializer_range, name="classifier", dtype=policy
    )
    return keras.layers.Dropout(dropout, dtype=policy, name="dropout"), classifier


def pooled(encoded, inputs, *, pooling):
    """One vector per text, of what a task READS: (B, D), or (B, n D) for n poolings.

    * `cls`: the pooler over [CLS], as in BERT. A masked LM alone trains neither.
    * `mean`: the mean over all that is no padding: [CLS], the text's tokens and each [SEP], as
      `embed` and sentence-transformers take it, so that a text without a word has one, too.
    * `both`: the two side by side.
    * `last`: the last token that is not padding, the only one of a causal encoder that has seen the
      whole text (Radford et al. 2018).
    * `max`: the greatest value of each feature over the tokens that are not padding.
    * `last+max+mean`: the three side by side (Howard & Ruder 2018, section 3.3).
    """
    names = ("cls", "mean") if pooling == "both" else pooling.split("+")
    vectors = [
        encoded["pooled_output"]
        if name == "cls"
        else _POOLED[name](encoded["sequence_output"], inputs["input_mask"])
        for name in names
    ]
    return vectors[0] if len(vectors) == 1 else ops.concatenate(vectors, axis=-1)


def _last(hidden, mask):
    """(B, S, D), (B, S) -> (B, D)."""
    mask = ops.cast(mask, "int32")
    count = ops.cumsum(mask, axis=1)
    highest = ops.max(count, axis=1, keepdims=True)
    is_last = ops.logical_and(mask > 0, ops.equal(count, highest))
    return _mean(hidden, is_last)


def _max(hidden, mask):
    """(B, S, D), (B, S) -> (B, D); 0 for a row without tokens."""
    at_tokens = ops.expand_dims(ops.cast(mask, "bool"), axis=-1)  # (B, S, 1)
    highest = ops.max(ops.where(at_tokens, ops.cast(hidden, "float32"), -1e9), axis=1)
    return ops.cast(ops.where(ops.any(at_tokens, axis=1), highest, 0.0), hidden.dtype)


def _mean(hidden, mask):
    """(B, S, D), (B, S) -> (B, D), summed in float32."""
    at_tokens = ops.expand_dims(ops.cast(mask, "float32"), axis=-1)  # (B, S, 1)
    total = ops.sum(ops.cast(hidden, "float32") * at_tokens, axis=1)
    count = ops.maximum(ops.sum(at_tokens, axis=1), 1.0)  # (B, 1)
    return ops.cast(total / count, hidden.dtype)


_POOLED = {"last": _last, "max": _max, "mean": _mean}
