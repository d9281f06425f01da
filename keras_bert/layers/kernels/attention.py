"""Scaled dot-product attention in every head (Vaswani et al. 2017, section 3.2).

The plain form, from one dense layer's output (B, S, 3 D) that holds queries, keys and values:

    query, key, value = split into N heads of size H = D / N            each (B, N, S, H)
    query, key = their positions encoded, if these are rotary        (B, N, S, H)
    scores = query keyᵀ / √H, and -∞ where the mask is False            (B, N, S, S)
    scores = scores + a bias for positions, if there is one          (B, N, S, S)
    context = dropout(softmax(scores)) value                            (B, N, S, H)

With positions whose bias has terms of the scores' size, H is multiplied by the number of terms.
"""

import math

import keras
import numpy as np
from keras import ops

from keras_bert.layers.kernels.fused_attention import fused_attention, knows_windows
from keras_bert.layers.kernels.private import custom_gradient
from keras_bert.layers.kernels.program import (
    device,
    has_fused_attention,
    is_for_litert,
    is_unfused,
)


def attend(
    query_key_value,
    layout,
    *,
    num_heads,
    positions,
    window,
    dropout,
    training,
    project=None,
    cls_only=False,
    return_probabilities=False,
):
    """The formula above, by the fastest kernel of the backend.

    JAX and PyTorch have it as one operation, without dropout and the probabilities, and a GPU as
    one kernel (see `fused_attention`). Elsewhere axes are moved at once, and scale and mask are
    where a CPU fuses them with the product. With a window, long rows are cut into blocks, to which
    the formula applies as to rows (see `Blocks`).

    Shapes: query_key_value (B, S, 3 D) -> context (B, S, D), and float (B, N, S, S) probabilities
    before dropout, or None. With `cls_only` the first token is the only query: (B, 1, D) and
    (B, N, 1, S).

    Args:
        layout: the batch's `Layout`, or its `Blocks`.
        positions: the `Positions`.
        window: see `Layout.mask`.
        dropout: the `Dropout` layer of the probabilities.
        project: the dense layer, for positions that attend as tokens do.
    """
    fused = has_fused_attention() and not return_probabilities
    fused = fused and not (training and dropout.rate > 0) and not positions.HAS_BIAS
    batch, length = ops.shape(query_key_value)[:2]
    size = query_key_value.shape[-1] // (3 * num_heads)
    whole = cls_only or return_probabilities or positions.HAS_BIAS
    whole = whole or (fused and knows_windows(layout, query_key_value.dtype, size))
    blocks = None if whole else layout.blocks(window)
    if blocks is not None:
        options = {"positions": positions, "dropout": dropout, "training": training}
        options |= {"num_heads": num_heads, "window": window}
        context, _ = attend(blocks.cut(query_key_value), blocks, **options)
        return blocks.joined(context), None
    mask = layout.mask(window, cls_only=cls_only)  # (B, 1, S or 1, S)
    places = layout.positions  # (B or 1, S)
    query_places = places[:, :1] if cls_only else places
    split = ops.reshape(query_key_value, (batch, length, 3, num_heads, size))
    if fused:
        query, key, value = ops.unstack(split, 3, axis=2)  # (B, S, N, H)
        if cls_only:
            query = query[:, :1]
        query = positions.encode(query, query_places[:, :, None])
        key = positions.encode(key, places[:, :, None])
        key, value = (layout.with_neighbors(x, axis=1) for x in (key, value))
        context = None
        if not cls_only:  # a single query is cheap
            context = fused_attention(query, key, value, layout, window=window)
        if context is None:
            context = ops.dot_product_attention(
                query, key, value, mask=mask, scale=1 / math.sqrt(size), **_keras_options()
            )
        return _joined(context), None
    moved = _transposed(split, (2, 0, 3, 1, 4), training=training)
    query, key, value = ops.unstack(moved, 3, axis=0)  # (B, N, S, H)
    if cls_only:
        query = query[:, :, 0][:, :, None]  # (B, N, 1, H), which `:1` is only when there is a batch
    query = positions.encode(query, query_places[:, None])
    key = positions.encode(key, places[:, None])
    key, value = (layout.with_neighbors(x, axis=2) for x in (key, value))  # (B, N, S, H)
    scale = _scale_of(positions, size)
    scores = _masked_scores(query, key, mask, scale=scale, training=training)  # (B, N, S, S)
    if positions.HAS_BIAS:
        options = {"project": project, "training": training}
        scores = scores + _position_bias(positions, query, key, query_places, layout, **options)
    probabilities = ops.softmax(scores, axis=-1)
    context = ops.matmul(dropout(probabilities, training=training), value)
    context = _joined(_transposed(context, (0, 2, 1, 3), training=training))
    return context, probabilities if return_probabilities else None


def _keras_options():
    """On a GPU Keras would try cuDNN again, and print its error for every layer."""
    on_jax = keras.backend.backend() == "jax"
    return {"flash_attention": False} if on_jax and device() != "tpu" else {}


def _scale_of(positions, size):
    """The factor of the scores of heads of that size."""
    return 1 / math.sqrt(positions.num_terms * size)


def _position_bias(positions, query, key, query_positions, layout, **options):
    """`Positions.bias`, computed once for all layers that share it: (B or 1, N, Q, K)."""

    def compute():
        return positions.bias(query, key, query_positions, layout.key_positions, **options)

    if not positions.BIAS_IS_SHARED:
        return compute()
    return layout.once(("bias", positions, query.shape[2]), compute)


def attend_step(query_key_value, cache, layout, *, num_heads, positions, window, project=None):
    """The formula above for one new token of each sequence, over those before it and itself.

    The cache is of M positions, of which those after the token are masked, and hold zeros: a token
    costs the same anywhere.

    Shapes: query_key_value (B, 3 D), cache a pair of keys and values (B, N, M, H) -> context
    (B, D), and the cache with the token's key and value.
    """
    batch = ops.shape(query_key_value)[0]
    size = query_key_value.shape[-1] // (3 * num_heads)
    split = ops.reshape(query_key_value, (batch, 3, num_heads, size))
    query, key, value = ops.unstack(split, 3, axis=1)  # (B, N, H)
    query, key = (positions.encode(x, layout.positions) for x in (query, key))
    cached_keys, cached_values = (
        _with_rows(old, layout.cache_indices, ops.reshape(new, (-1, size)))
        for old, new in zip(cache, (key, value), strict=True)
    )
    query = query[:, :, None]  # (B, N, 1, H)
    scale = _scale_of(positions, size)
    scores = _product_of_rows(query * scale, cached_keys, transpose=True)  # (B, N, 1, M)
    scores = scores + _mask_bias(layout.mask(window), scores.dtype)
    if positions.HAS_BIAS:
        scores = scores + _position_bias(
            positions, query, cached_keys, layout.positions, layout, project=project, training=False
        )
    probabilities = _softmax_of_rows(scores)
    context = _product_of_rows(probabilities, cached_values)  # (B, N, 1, H)
    return ops.reshape(context, (batch, num_heads * size)), (cached_keys, cached_values)


def _with_rows(x, indices, rows):
    """Computes `ops.scatter_update` of zeros: x (B, N, M, H), rows (B N, H).

    On a CPU TensorFlow copies x for it. This operation alone overwrites an x that has no other use,
    such as that of a loop.
    """
    if not is_unfused() or is_for_litert():
        return ops.scatter_update(x, indices, rows)
    import tensorflow as tf

    return tf.raw_ops.ScatterNdNonAliasingAdd(input=x, indices=indices, updates=rows)


def _product_of_rows(x, y, *, transpose=False):
    """Multiplies single rows (B, N, 1, K) with (B, N, K, M), or transposed (B, N, M, K).

    On a CPU, `tf.matmul` calls oneDNN, which takes a hundred microseconds or more for the smallest
    products. `BatchMatMulV3` is computed by TensorFlow itself, in ten. On a CPU it does not support
    float16.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    if dtype == "float16" or not is_unfused() or is_for_litert():
        return ops.matmul(x, ops.swapaxes(y, -1, -2) if transpose else y)
    import tensorflow as tf

    return tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=x.dtype, adj_y=transpose)


def _softmax_of_rows(x):
    """Computes the softmax of few numbers: oneDNN's takes as long as the products (see above)."""
    if not is_unfused() or is_for_litert():
        return ops.softmax(x, axis=-1)
    powers = ops.exp(x - ops.max(x, axis=-1, keepdims=True))
    return powers / ops.sum(powers, axis=-1, keepdims=True)


def keys_and_values(query_key_value, is_token, *, num_heads, positions, max_length):
    """The cache of `attend_step` with the keys and values of whole sequences at its beginning.

    Shapes: query_key_value (B, S, 3 D), is_token bool (B, S) -> keys and values (B, N, M, H), M
    being `max_length`.
    """
    batch, length = ops.shape(query_key_value)[:2]
    size = query_key_value.shape[-1] // (3 * num_heads)
    at_tokens = ops.where(is_token[:, :, None], query_key_value, 0)
    split = ops.reshape(at_tokens, (batch, length, 3, num_heads, size))
    moved = ops.transpose(split[:, :, 1:], (2, 0, 3, 1, 4))  # (2, B, N, S, H)
    key, value = ops.unstack(moved, 2, axis=0)
    key = positions.encode(key, ops.arange(length, dtype="int32")[None, None])
    padding = [(0, 0), (0, 0), (0, max_length - length), (0, 0)]
    return ops.pad(key, padding), ops.pad(value, padding)


def _mask_bias(mask, dtype):
    """0 where a bool mask is True; elsewhere a number far below any score, and finite."""
    lowest = -3e4 if keras.backend.standardize_dtype(dtype) == "float16" else -1e9
    return ops.cast(ops.where(mask, 0.0, lowest), dtype)


def _joined(context):
    """(B, S, N, H) -> (B, S, D)."""
    batch, length, heads, size = ops.shape(context)
    return ops.reshape(context, (batch, length, heads * size))


def _masked_scores(query, key, attention_mask, *, scale, training):
    """Q Kᵀ times a scale, and -∞ where the mask is False.

    Scaling the queries is the least work; but in prediction on a CPU TensorFlow fuses a scale of
    the scores, and the mask, with the product before them (in float32). Adding to a score is
    cheaper than `where`, and has no gradient. A row without any True is finite too.

    Shapes: query, key (B, N, S, H), attention_mask bool (B, 1, S or 1, S) -> (B, N, S, S).
    """
    dtype = keras.backend.standardize_dtype(query.dtype)
    scale_scores = not training and dtype == "float32"
    if not scale_scores:
        query = query * scale
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
    if scale_scores:
        scores = scores * scale
    return scores + _mask_bias(attention_mask, scores.dtype)


def _transposed(x, axes, *, training):
    """Transposes as `ops.transpose` does.

    On a CPU TensorFlow leaves floats to oneDNN, which takes 40 microseconds for the smallest
    tensor; integers of the same bits it transposes itself, in five, and large ones no slower. In
    training no tensor is so small.
    """
    if training or not is_unfused() or is_for_litert():
        return ops.transpose(x, axes)
    import tensorflow as tf

    bits = {2: tf.uint16, 4: tf.uint32, 8: tf.uint64}[x.dtype.size]
    back = np.argsort(axes)

    @custom_gradient  # a cast of bits has none
    def moved(x):
        def gradient(upstream):
            return _transposed(upstream, back, training=training)

        return tf.bitcast(tf.transpose(tf.bitcast(x, bits), axes), x.dtype), gradient

    return moved(x)
