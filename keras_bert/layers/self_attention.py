"""Multi-head self-attention (Vaswani et al. 2017, section 3.2)."""

import math

import keras
from keras import ops

from keras_bert.layers.attention_mask import check_attention_mask
from keras_bert.layers.dense import dense
from keras_bert.layers.dropout import Dropout

# Where ops.dot_product_attention reaches a fused kernel. On TensorFlow it has none, and no
# backend's has dropout.
_BACKENDS_WITH_FUSED_ATTENTION = ("jax", "torch")


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(keras.layers.Layer):
    """Every token looks at those that the mask lets it see.

    Shapes: hidden (B, S, D), attention_mask bool (B, 1, S or 1, S) -> (B, S, D), and with
    `return_probabilities` also (B, N, S, S), as they are before dropout. A query that may see
    nothing (padding in a packed row) takes the mean of all; its output means nothing.

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

    def call(self, hidden, attention_mask, training=None, return_probabilities=False):
        length = ops.shape(hidden)[1]
        check_attention_mask(attention_mask, length=hidden.shape[1])

        def heads(x):
            return ops.reshape(x, (-1, length, self.num_heads, self.head_size))

        query, key, value = (heads(x) for x in self._project(hidden))  # (B, S, N, H)
        dropping = bool(training) and self.dropout_rate > 0
        fused = keras.backend.backend() in _BACKENDS_WITH_FUSED_ATTENTION
        probabilities = None
        if fused and not dropping and not return_probabilities:
            context = ops.dot_product_attention(query, key, value, mask=attention_mask, scale=1.0)
        else:
            context, probabilities = self._attend(query, key, value, attention_mask, training)
        context = ops.reshape(context, (-1, self.hidden_size))  # (B * S, D)
        output = ops.reshape(self.projection(context), (-1, length, self.hidden_size))
        return (output, probabilities) if return_probabilities else output

    def _project(self, hidden):
        """-> query, key and value (B * S, D), the query scaled by the root of the head's width.

        One product with the three kernels side by side: it has one gradient for `hidden` instead
        of three to add up, and scaling a kernel is cheaper than scaling every query. Rows are
        flat because a bias can then be joined to the product.
        """
        scale = 1 / math.sqrt(self.head_size)
        kernels = [self.query.kernel * scale, self.key.kernel, self.value.kernel]
        biases = [self.query.bias * scale, self.key.bias, self.value.bias]
        flat = ops.reshape(hidden, (-1, self.hidden_size))
        together = ops.matmul(flat, ops.concatenate(kernels, axis=1))  # (B * S, 3 D)
        return ops.split(together + ops.concatenate(biases, axis=0), 3, axis=-1)

    def _attend(self, query, key, value, attention_mask, training):
        """-> context (B, S, N, H), probabilities (B, N, S, S)."""
        query = ops.transpose(query, (0, 2, 1, 3))  # (B, N, S, H)
        key = ops.transpose(key, (0, 2, 1, 3))
        value = ops.transpose(value, (0, 2, 1, 3))
        scores = ops.matmul(query, ops.swapaxes(key, -1, -2))  # (B, N, S, S)
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
