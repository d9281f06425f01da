"""Where a causal LM predicts: at every position but the last."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class NextTokenPositions(keras.layers.Layer):
    """The positions that a next token is predicted from, as a `MaskedLMHead` takes them.

    Shapes: input_ids (B, S) -> int32 (B, S - 1), 0 to S - 2 in every row.
    """

    def call(self, input_ids):
        zeros = ops.zeros_like(input_ids[:, 1:], dtype="int32")
        return zeros + ops.arange(ops.shape(zeros)[1], dtype="int32")[None]

    def compute_output_spec(self, input_ids):
        batch, length = input_ids.shape
        return keras.KerasTensor((batch, length and length - 1), dtype="int32")
