"""Who may attend to whom, and the one place where a mask's form is checked."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class AttentionMask(keras.layers.Layer):
    """Makes the boolean attention mask of a batch from its padding.

    Shapes: input_mask (B, S), 1 or True at tokens and 0 at padding -> bool (B, 1, 1, S), or
    (B, 1, S, S) if `causal`. True where the query (third axis) may see the key (last axis).

    Args:
        causal: each position sees only itself and those before it.
    """

    def __init__(self, *, causal, **kwargs):
        super().__init__(**kwargs)
        self.causal = causal

    def call(self, input_mask):
        mask = ops.expand_dims(ops.cast(input_mask, "bool"), axis=(1, 2))  # (B, 1, 1, S)
        if self.causal:
            mask = ops.logical_and(mask, causal_mask(ops.shape(input_mask)[1]))
        return mask

    def compute_output_spec(self, input_mask):
        batch, length = input_mask.shape
        return keras.KerasTensor((batch, 1, length if self.causal else 1, length), dtype="bool")

    def get_config(self):
        return {**super().get_config(), "causal": self.causal}


def causal_mask(length):
    """Bool (1, 1, S, S): True where the key is not after the query."""
    positions = ops.arange(length)
    return (positions[:, None] >= positions[None, :])[None, None]


def check_attention_mask(mask, *, length):
    """Refuses a mask that attention would broadcast wrongly.

    A mask is boolean (B, 1, S or 1, S). One of shape (B, S, S) would line its batch up with the
    heads without a word, and an integer mask would be added instead of chosen by.

    Args:
        mask: a tensor.
        length: S, the number of tokens, or None where it is not known yet.

    Raises:
        ValueError: the type, the rank or an axis is wrong.
    """
    shape = tuple(mask.shape)
    good = (
        len(shape) == 4
        and shape[1] == 1
        and (None in (shape[3], length) or shape[3] == length)
        and (None in (shape[2], length) or shape[2] in (1, length))
    )
    if not good or keras.backend.standardize_dtype(mask.dtype) != "bool":
        raise ValueError(
            "`attention_mask` must be boolean (B, 1, S or 1, S), True where the query may see the "
            f"key. Received: shape={shape}, dtype={keras.backend.standardize_dtype(mask.dtype)}, "
            f"S={length}"
        )
