"""From the vectors of tokens to those of words."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class WordMeans(keras.layers.Layer):
    """The mean of each word's tokens.

    Shapes: hidden (B, S, D); starts, ends (B, W) int -> (B, W, D). A word's tokens are those from
    its start on and before its end; a word without a token, such as padding, has the vector 0.
    """

    def call(self, hidden, starts, ends):
        token = ops.arange(ops.shape(hidden)[1], dtype="int32")  # (S,)
        starts, ends = ops.cast(starts, "int32"), ops.cast(ends, "int32")
        inside = (token >= starts[..., None]) & (token < ends[..., None])  # (B, W, S)
        share = 1.0 / ops.cast(ops.maximum(ends - starts, 1), hidden.dtype)  # (B, W)
        return ops.matmul(ops.cast(inside, hidden.dtype) * share[..., None], hidden)

    def compute_output_shape(self, hidden_shape, starts_shape, ends_shape):
        return (*starts_shape, hidden_shape[-1])
