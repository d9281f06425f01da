"""Multi-head self-attention (Vaswani et al. 2017, section 3.2)."""

import math

import keras
from keras import ops

from keras_bert.layers.attention_mask import check_attention_mask
from keras_bert.layers.dense import dense
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.places import AllPlaces

# Where ops.dot_product_attention reaches a fused kernel. On TensorFlow it has none, and no
# backend's has dropout.
_BACKENDS_WITH_FUSED_ATTENTION = ("jax", "torch")


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(keras.layers.Layer):
    """Every token looks at those that the mask lets it see.

    Shapes: hidden (B, S, D), attention_mask bool (B, 1, S or 1, S) -> (B, S, D), and with
    `return_probabilities` also (B, N, S, S), as they are before dropout. A query that may see
    nothing (padding in a packed row) takes the mean of all; its output means nothing. Given
    `where`, the places that `hidden` holds the rows of: hidden (R, D) -> (R, D).

    Args:
        hidden_size: D.
        num_heads: N; divides D.
        dropout: share of the attention probabilities set to zero in training.
        initializer_range: standard deviation of new weights.

    Raises:
        ValueError: N does not divide D, or the mask has another form.
    """

    def __init__(self, *, hidden_size, num_heads, dropout, initializer_range, **kwargs):
        super().__init__(**kwargs)
        if hidden_size % num_heads:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_heads`. "
                f"Received: hidden_size={hidden_size}, num_heads={num_heads}"
            )
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.head_size = hidden_size // num_heads
        self.dropout_rate = dropout
        self.initializer_range = initializer_range

        def projection(name):
            return dense(
                hidden_size,
                initializer_range=initializer_range,
                name=name,
                dtype=self.dtype_policy,
            )

        self.query = projection("query")
        self.key = projection("key")
        self.value = projection("value")
        self.projection = projection("projection")
        self.dropout = Dropout(rate=dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, hidden_shape, attention_mask_shape=None):
        for layer in (self.query, self.key, self.value, self.projection):
            layer.build((None, None, self.hidden_size))
        self.built = True

    def call(self, hidden, attention_mask, where=None, training=None, return_probabilities=False):
        alone = where is None
        if alone:
            check_attention_mask(attention_mask, length=hidden.shape[1])
            where = AllPlaces(ops.shape(hidden)[1])
            hidden = where.take(hidden)  # (R, D)
        # Scaling the query's kernel is the least work; but in prediction on a CPU TensorFlow joins
        # a scale of the scores, and the mask with it, to the product that makes them (float32).
        scale = 1 / math.sqrt(self.head_size)
        joined = not training and self.compute_dtype == "float32"
        query_scale, score_scale = (1.0, scale) if joined else (scale, 1.0)
        projected = where.put(self._project(hidden, query_scale))  # (B, S, 3 D)
        projected = ops.reshape(
            projected, (-1, ops.shape(projected)[1], 3, self.num_heads, self.head_size)
        )
        dropping = bool(training) and self.dropout_rate > 0
        fused = keras.backend.backend() in _BACKENDS_WITH_FUSED_ATTENTION
        probabilities = None
        if fused and not dropping and not return_probabilities:
            query, key, value = (projected[:, :, i] for i in range(3))  # (B, S, N, H)
            context = ops.dot_product_attention(
                query, key, value, mask=attention_mask, scale=score_scale
            )
        else:
            context, probabilities = self._attend(projected, attention_mask, training, score_scale)
        context = ops.reshape(context, (*ops.shape(context)[:2], self.hidden_size))  # (B, S, D)
        output = self.projection(where.take(context))
        if alone:
            output = where.put(output)
        return (output, probabilities) if return_probabilities else output

    def _project(self, rows, query_scale):
        """(R, D) -> query, key and value side by side (R, 3 D).

        One product with the three kernels side by side: it has one gradient for `rows` instead
        of three to add up. Rows are flat because a bias can then be joined to the product.
        """
        kernels = [self.query.kernel * query_scale, self.key.kernel, self.value.kernel]
        biases = [self.query.bias * query_scale, self.key.bias, self.value.bias]
        together = ops.matmul(rows, ops.concatenate(kernels, axis=1))
        return together + ops.concatenate(biases, axis=0)

    def _attend(self, projected, attention_mask, training, scale):
        """(B, S, 3, N, H) -> context (B, S, N, H), probabilities (B, N, S, S)."""
        query, key, value = ops.unstack(ops.transpose(projected, (2, 0, 3, 1, 4)), 3)
        scores = ops.matmul(query, ops.swapaxes(key, -1, -2))  # (B, N, S, H) x … -> (B, N, S, S)
        if scale != 1:
            scores = scores * scale
        # Adding is cheaper than choosing, and has no gradient. What is added is far below any
        # score, and finite, so that a row without any True is finite too.
        lowest = -3e4 if keras.backend.standardize_dtype(scores.dtype) == "float16" else -1e9
        scores = scores + ops.cast(ops.where(attention_mask, 0.0, lowest), scores.dtype)
        probabilities = ops.softmax(scores, axis=-1)
        context = ops.matmul(self.dropout(probabilities, training=training), value)
        return ops.transpose(context, (0, 2, 1, 3)), probabilities

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "dropout": self.dropout_rate,
            "initializer_range": self.initializer_range,
        }
