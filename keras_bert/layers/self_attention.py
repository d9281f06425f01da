"""Multi-head self-attention (Vaswani et al. 2017, section 3.2)."""

import math

import keras
from keras import ops

from keras_bert.layers.attention_mask import check_attention_mask
from keras_bert.layers.dense import dense
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.fast.attention import (
    masked_scores,
    projections,
    query_and_score_scale,
)
from keras_bert.layers.fast.program import has_fused_attention
from keras_bert.layers.fast.unpadding import NoUnpadding


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(keras.layers.Layer):
    """Every token looks at those that the mask lets it see: softmax(Q Kᵀ / √H) V in every head.

    Shapes: hidden (B, S, D), attention_mask bool (B, 1, S or 1, S) -> (B, S, D), and with
    `return_probabilities` also (B, N, S, S), as they are before dropout. A query that may see
    nothing (padding in a packed row) takes the mean of all; its output means nothing. Given the
    `unpadding` that made rows of `hidden`: hidden (R, D) -> (R, D).

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

    def call(
        self, hidden, attention_mask, unpadding=None, training=None, return_probabilities=False
    ):
        alone = unpadding is None
        if alone:
            check_attention_mask(attention_mask, length=hidden.shape[1])
            unpadding = NoUnpadding(ops.shape(hidden)[1])
            hidden = unpadding.unpad(hidden)  # (R, D)
        query_scale, score_scale = query_and_score_scale(
            1 / math.sqrt(self.head_size), training=training, dtype=self.compute_dtype
        )
        projected = projections(  # 3 of (R, D)
            hidden,
            (self.query, self.key, self.value),
            scales=(query_scale, 1, 1),
            training=training,
        )
        query, key, value = (self._split_heads(unpadding.pad(x)) for x in projected)
        dropping = bool(training) and self.dropout_rate > 0
        probabilities = None
        if has_fused_attention() and not dropping and not return_probabilities:
            context = ops.dot_product_attention(
                query, key, value, mask=attention_mask, scale=score_scale
            )
        else:
            query, key, value = (ops.transpose(x, (0, 2, 1, 3)) for x in (query, key, value))
            scores = masked_scores(query, key, attention_mask, scale=score_scale)  # (B, N, S, S)
            probabilities = ops.softmax(scores, axis=-1)
            context = ops.matmul(self.dropout(probabilities, training=training), value)
            context = ops.transpose(context, (0, 2, 1, 3))  # (B, S, N, H)
        output = self.projection(unpadding.unpad(self._join_heads(context)))  # (R, D)
        if alone:
            output = unpadding.pad(output)
        return (output, probabilities) if return_probabilities else output

    def _split_heads(self, projected):
        """(B, S, D) -> (B, S, N, H)."""
        length = ops.shape(projected)[1]
        return ops.reshape(projected, (-1, length, self.num_heads, self.head_size))

    def _join_heads(self, context):
        """(B, S, N, H) -> (B, S, D)."""
        return ops.reshape(context, (*ops.shape(context)[:2], self.hidden_size))

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "dropout": self.dropout_rate,
            "initializer_range": self.initializer_range,
        }
