"""From the vectors of tokens to those of words."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class WordMeans(keras.layers.Layer):
    """The mean of each word's tokens, or its last token.

    Shapes: hidden (B, S, D); starts, ends (B, W) int -> (B, W, D). A word's tokens are those from
    its start on and before its end; a word without a token, such as padding, has the vector 0.

    Args:
        last: take the last token, which in a causal encoder is the one that sees the whole word.
    """

    def __init__(self, *, last=False, **kwargs):
        super().__init__(**kwargs)
        self.last = last

    def call(self, hidden, starts, ends):
        token = ops.arange(ops.shape(hidden)[1], dtype="int32")  # (S,)
        starts, ends = ops.cast(starts, "int32"), ops.cast(ends, "int32")
        if self.last:
            starts = ops.maximum(starts, ends - 1)  # not before a word without a token
        inside = (token >= starts[..., None]) & (token < ends[..., None])  # (B, W, S)
        share = 1.0 / ops.cast(ops.maximum(ends - starts, 1), hidden.dtype)  # (B, W)
        return ops.matmul(ops.cast(inside, hidden.dtype) * share[..., None], hidden)

    def compute_output_shape(self, hidden_shape, starts_shape, ends_shape):
        return (*starts_shape, hidden_shape[-1])

    def get_config(self):
        return {**super().get_config(), "last": self.last}
