"""The products of multi-head attention (Vaswani et al. 2017, section 3.2)."""

import keras
from keras import ops

from keras_bert.layers.fast.transposition import transposed


def projections(rows, layers, *, training):
    """The outputs of several dense layers with the same input: a list, of one where it is joined.

    In training one product with the kernels side by side has one gradient for `rows`, where each
    layer for itself has one of its own that must be added up. (Rows are flat because TensorFlow can
    then join the bias to the product.) In prediction the kernels would have to be copied each time:
    an export has them side by side for good, in one layer. A quantized kernel is no matrix to
    multiply by.

    Shapes: rows (R, D) -> (R, units of the layer) each, or (R, all units).
    """
    if not training or len(layers) == 1 or any(layer.quantization_mode for layer in layers):
        return [layer(rows) for layer in layers]
    together = ops.matmul(rows, ops.concatenate([layer.kernel for layer in layers], axis=1))
    return [together + ops.concatenate([layer.bias for layer in layers], axis=0)]


def heads(projected, *, num_heads, heads_first, training):
    """What `projections` gives, padded, -> queries, keys and values, by heads.

    What is in one tensor is moved in one go.

    Shapes: 3 of (B, S, D), or one (B, S, 3 D) -> 3 of (B, N, S, H), or of (B, S, N, H) where
    `heads_first` is False.
    """
    batch, length = ops.shape(projected[0])[:2]
    if len(projected) == 1:
        (together,) = projected
        size = together.shape[-1] // (3 * num_heads)
        split = ops.reshape(together, (batch, length, 3, num_heads, size))
        if not heads_first:
            return ops.unstack(split, 3, axis=2)
        return ops.unstack(transposed(split, (2, 0, 3, 1, 4), training=training), 3, axis=0)
    split = [ops.reshape(x, (batch, length, num_heads, -1)) for x in projected]
    if not heads_first:
        return split
    return [transposed(x, (0, 2, 1, 3), training=training) for x in split]


def query_and_score_scale(scale, *, training, dtype):
    """Where Q Kᵀ · scale is scaled: two factors, of the queries and of the scores.

    Scaling the queries is the least work; but in prediction on a CPU TensorFlow joins a scale of
    the scores, and the mask with it, to the product that makes them (in float32).
    """
    joined = not training and dtype == "float32"
    return (1, scale) if joined else (scale, 1)


def masked_scores(query, key, attention_mask, *, scale):
    """Q Kᵀ · scale, and -∞ where the mask is False.

    Adding to a score is cheaper than choosing, and has no gradient. What is added is far below any
    score, and finite, so that a row without any True is finite too.

    Shapes: query, key (B, N, S, H), attention_mask bool (B, 1, S or 1, S) -> (B, N, S, S).
    """
    scores = scaled(ops.matmul(query, ops.swapaxes(key, -1, -2)), scale)
    lowest = -3e4 if keras.backend.standardize_dtype(scores.dtype) == "float16" else -1e9
    return scores + ops.cast(ops.where(attention_mask, 0.0, lowest), scores.dtype)


def scaled(x, scale):
    """x · scale."""
    return x if scale == 1 else x * scale
