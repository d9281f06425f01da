"""The products of multi-head attention (Vaswani et al. 2017, section 3.2)."""

import keras
from keras import ops


def projections(rows, layers, *, scales, training):
    """The outputs of several dense layers with the same input, each times its scale: a list.

    In training one product with the kernels side by side has one gradient for `rows`, where each
    layer for itself has one of its own that must be added up. (Rows are flat because TensorFlow can
    then join the bias to the product.) In prediction only one short row notices a difference, and
    that the copying of all kernels (docs/performance.md, Serving). A quantized kernel is no matrix
    to multiply by.

    Shapes: rows (R, D) -> (R, units of the layer) each.
    """
    if not training or any(layer.quantization_mode for layer in layers):
        return [_scaled(layer(rows), scale) for layer, scale in zip(layers, scales, strict=True)]
    kernels = [_scaled(layer.kernel, scale) for layer, scale in zip(layers, scales, strict=True)]
    biases = [_scaled(layer.bias, scale) for layer, scale in zip(layers, scales, strict=True)]
    together = ops.matmul(rows, ops.concatenate(kernels, axis=1))
    return ops.split(together + ops.concatenate(biases, axis=0), len(layers), axis=-1)


def query_and_score_scale(scale, *, training, dtype):
    """Where Q Kᵀ · scale is scaled: two factors, of the queries and of the scores.

    Scaling the query's kernel is the least work; but in prediction on a CPU TensorFlow joins a
    scale of the scores, and the mask with it, to the product that makes them (in float32).
    """
    joined = not training and dtype == "float32"
    return (1, scale) if joined else (scale, 1)


def masked_scores(query, key, attention_mask, *, scale):
    """Q Kᵀ · scale, and -∞ where the mask is False.

    Adding to a score is cheaper than choosing, and has no gradient. What is added is far below any
    score, and finite, so that a row without any True is finite too.

    Shapes: query, key (B, N, S, H), attention_mask bool (B, 1, S or 1, S) -> (B, N, S, S).
    """
    scores = _scaled(ops.matmul(query, ops.swapaxes(key, -1, -2)), scale)
    lowest = -3e4 if keras.backend.standardize_dtype(scores.dtype) == "float16" else -1e9
    return scores + ops.cast(ops.where(attention_mask, 0.0, lowest), scores.dtype)


def _scaled(x, scale):
    return x if scale == 1 else x * scale
