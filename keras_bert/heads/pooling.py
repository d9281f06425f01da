"""Poolings: one vector per text, from the vectors of its tokens; and what is over the first one."""

import keras
from keras import ops

from keras_bert.heads import POOLINGS as POOLINGS
from keras_bert.heads import parts_of
from keras_bert.layers import Layer
from keras_bert.layers.dense import activation as activation_of
from keras_bert.layers.dense import dense


def encoder_outputs(pooling):
    """The names of the encoder's outputs that a pooling needs."""
    parts = parts_of(pooling)
    first = ("first_output",) if "cls" in parts else ()
    return (*first, "sequence_output") if set(parts) - {"cls"} else first


def pooled(encoded, mask, *, pooling, transform, skipped=None):
    """One vector per text: (B, D), or (B, n D) for n parts.

    * `cls`: the first token, through the task's `transform`, as BERT's pooler over [CLS]. A masked
      LM alone trains neither.
    * `mean`: the mean over all tokens that are not padding: [CLS], the text's tokens and each
      [SEP], as sentence-transformers computes it, so that a text without a word has one, too.
    * `both`: the two concatenated.
    * `last`: the last token that is not padding, the only one of a causal encoder that has seen the
      whole text (Radford et al. 2018).
    * `max`: the greatest value of each feature over the tokens that are not padding.
    * `last+max+mean`: the three concatenated (Howard and Ruder 2018, section 3.3).
    * `mean-sqrt-length`: the sum over the tokens, divided by the root of their number.
    * `weighted-mean`: the mean in which the token at position k from 1 has the weight k
      (Muennighoff 2022).

    Args:
        encoded: the encoder's outputs by name (see `encoder_outputs`).
        mask: (B, S), 1 at tokens; None if `pooling` is "cls".
        pooling: see `parts_of`.
        transform: a layer (B, D) -> (B, D), or None.
        skipped: int (B,), how many tokens at the beginning of each sequence are left out, which
            keep their positions, or None. The first token is then the first one after them,
            and `sequence_output` is needed.
    """
    vectors, counted = [], mask
    if skipped is not None:
        is_after = positions_of(mask) > ops.cast(skipped, "int32")[:, None]
        counted = ops.cast(mask, "int32") * ops.cast(is_after, "int32")
    for part in parts_of(pooling):
        if part == "cls" and skipped is not None:
            vectors.append(_first(encoded["sequence_output"], counted))
        elif part == "cls":
            first = encoded["first_output"]
            vectors.append(first if transform is None else transform(first))
        elif part == "weighted-mean":
            vectors.append(_weighted_mean(encoded["sequence_output"], mask, counted))
        else:
            vectors.append(_POOLED[part](encoded["sequence_output"], counted))
    return vectors[0] if len(vectors) == 1 else ops.concatenate(vectors, axis=-1)


def positions_of(mask):
    """The position of each token in its sequence, from 1; int32, shaped like `mask` (B, S)."""
    return ops.cumsum(ops.cast(mask, "int32"), axis=1)


def unit_vectors(x):
    """Vectors (…, D) divided by their Euclidean norms; a vector of zeros stays one."""
    squares = ops.sum(ops.square(x), axis=-1, keepdims=True)
    # Not the root of 0, whose gradient is infinite.
    return x / ops.sqrt(ops.maximum(squares, 1e-24))


def _first(hidden, mask):
    """(B, S, D), (B, S) -> (B, D)."""
    position = positions_of(mask)
    return _mean(hidden, ops.logical_and(ops.cast(mask, "bool"), ops.equal(position, 1)))


def _last(hidden, mask):
    """(B, S, D), (B, S) -> (B, D)."""
    mask = ops.cast(mask, "int32")
    count = ops.cumsum(mask, axis=1)
    highest = ops.max(count, axis=1, keepdims=True)
    is_last = ops.logical_and(mask > 0, ops.equal(count, highest))
    return _mean(hidden, is_last)


def _max(hidden, mask):
    """(B, S, D), (B, S) -> (B, D); 0 for a sequence without tokens."""
    at_tokens = ops.expand_dims(ops.cast(mask, "bool"), axis=-1)  # (B, S, 1)
    highest = ops.max(ops.where(at_tokens, ops.cast(hidden, "float32"), -1e9), axis=1)
    return ops.cast(ops.where(ops.any(at_tokens, axis=1), highest, 0.0), hidden.dtype)


def _mean(hidden, mask):
    """(B, S, D), (B, S) -> (B, D), summed in float32."""
    at_tokens = ops.expand_dims(ops.cast(mask, "float32"), axis=-1)  # (B, S, 1)
    total = ops.sum(ops.cast(hidden, "float32") * at_tokens, axis=1)
    count = ops.maximum(ops.sum(at_tokens, axis=1), 1.0)  # (B, 1)
    return ops.cast(total / count, hidden.dtype)


def _mean_sqrt_length(hidden, mask):
    """(B, S, D), (B, S) -> (B, D), summed in float32."""
    count = ops.maximum(ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True), 1.0)
    mean = _mean(ops.cast(hidden, "float32"), mask)
    return ops.cast(mean * ops.sqrt(count), hidden.dtype)


def _weighted_mean(hidden, mask, counted):
    """(B, S, D), (B, S), (B, S) -> (B, D): positions are those of `mask`, summed in float32."""
    weights = ops.cast(positions_of(mask) * ops.cast(counted, "int32"), "float32")[..., None]
    total = ops.sum(ops.cast(hidden, "float32") * weights, axis=1)
    return ops.cast(total / ops.maximum(ops.sum(weights, axis=1), 1e-9), hidden.dtype)


_POOLED = {"last": _last, "max": _max, "mean": _mean, "mean-sqrt-length": _mean_sqrt_length}


@keras.saving.register_keras_serializable(package="keras_bert")
class Pooler(Layer):
    """A dense layer with an activation over the vector of the first token, as BERT's pooler.

    Shapes: first (…, D) -> (…, D).

    Args:
        hidden_size: D.
        activation: "tanh", as in BERT, or a name of `keras_bert.layers.dense.ACTIVATIONS`.
        initializer_range: standard deviation of new weights.
    """

    def __init__(self, *, hidden_size, activation, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.activation = None if activation == "tanh" else activation_of(activation)
        self.dense = dense(
            hidden_size, initializer_range=initializer_range, name="dense", dtype=self.dtype_policy
        )

    def build(self, first_shape=None):
        self.dense.build((None, self.hidden_size))
        self.built = True

    def call(self, first, training=None):
        x = self.dense(first)
        return ops.tanh(x) if self.activation is None else self.activation(x, training=training)
