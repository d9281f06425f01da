"""Several texts in one row: each sees only itself, and its positions start anew."""

import keras
from keras import ops

from keras_bert.layers.attention_mask import causal_mask


@keras.saving.register_keras_serializable(package="keras_bert")
class PackedRows(keras.layers.Layer):
    """Makes the block-diagonal attention mask and the positions of packed rows.

    Shapes: text_numbers (B, S) int -> mask bool (B, 1, S, S), positions (B, S) int32.
    `text_numbers` is 0 at padding and the same number at all tokens of one text, which stand
    together; a position counts from 0 at its text's first token.

    Args:
        causal: each position sees only itself and those before it in its text.
    """

    def __init__(self, *, causal, **kwargs):
        super().__init__(**kwargs)
        self.causal = causal

    def call(self, text_numbers):
        same = text_numbers[:, :, None] == text_numbers[:, None, :]  # (B, S, S)
        # argmax gives the first True: where the token's text begins.
        starts = ops.argmax(ops.cast(same, "int32"), axis=-1)  # (B, S)
        index = ops.arange(ops.shape(text_numbers)[1], dtype="int32")
        positions = index[None, :] - ops.cast(starts, "int32")
        mask = ops.logical_and(same, (text_numbers != 0)[:, None, :])[:, None]  # (B, 1, S, S)
        if self.causal:
            mask = ops.logical_and(mask, causal_mask(ops.shape(text_numbers)[1]))
        return mask, positions

    def compute_output_spec(self, text_numbers):
        batch, length = text_numbers.shape
        return (
            keras.KerasTensor((batch, 1, length, length), dtype="bool"),
            keras.KerasTensor((batch, length), dtype="int32"),
        )

    def get_config(self):
        return {**super().get_config(), "causal": self.causal}
