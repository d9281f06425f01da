"""Multi-head self-attention (Vaswani et al. 2017, section 3.2)."""

import math

import keras
from keras import ops

from keras_bert.layers.attention_mask import check_attention_mask
from keras_bert.layers.dense import dense
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.fast.attention import (
    heads,
    masked_scores,
    projections,
    query_and_score_scale,
    scaled,
)
from keras_bert.layers.fast.program import has_fused_attention
from keras_bert.layers.fast.transposition import transposed
from keras_bert.layers.fast.unpadding import NoUnpadding


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(keras.layers.Layer):
    """Every token looks at those that the mask lets it see: softmax(Q Kᵀ / √H) V in every head.

    Shapes: hidden (B, S, D), attention_mask bool (B, 1, S or 1, S) -> (B, S, D), and with
    `return_probabilities` also (B, N, S, S), as they are before dropout. A query that may see
    nothing (padding in a packed row) takes the mean of all; its output means nothing. Given the
    `unpadding` that made rows of `hidden`: hidden (R, D) -> (R, D). With `first_only` the first
    token alone looks: -> (B, D), and (B, N, 1, S).

    Args:
        hidden_size: D.
        num_heads: N; divides D.
        dropout: share of the attention probabilities set to zero in training.
        initializer_range: standard deviation of new weights.
        joined: query, key and value are one dense layer, `query_key_value` (D, 3 D). A model that
            is exported has it so: see `projections`.

    Raises:
        ValueError: N does not divide D, or the mask has another form.
    """

    def __init__(
        self, *, hidden_size, num_heads, dropout, initializer_range, joined=False, **kwargs
    ):
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
        self.joined = joined

        def projection(name, units=hidden_size):
            return dense(
                units,
                initializer_range=initializer_range,
                name=name,
                dtype=self.dtype_policy,
            )

        if joined:
            self.query_key_value = projection("query_key_value", units=3 * hidden_size)
        else:
            self.query = projection("query")
            self.key = projection("key")
            self.value = projection("value")
        self.projection = projection("projection")
        self.dropout = Dropout(rate=dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, hidden_shape, attention_mask_shape=None):
        for layer in (*self._projections(), self.projection):
            layer.build((None, None, self.hidden_size))
        self.built = True

    def _projections(self):
        """The dense layers whose outputs, side by side, are queries, keys and values."""
        return (self.query_key_value,) if self.joined else (self.query, self.key, self.value)

    def call(
        self,
        hidden,
        attention_mask,
        unpadding=None,
        training=None,
        return_probabilities=False,
        first_only=False,
    ):
        alone = unpadding is None
        if alone:
            check_attention_mask(attention_mask, length=hidden.shape[1])
            unpadding = NoUnpadding(ops.shape(hidden)[1])
            hidden = unpadding.unpad(hidden)  # (R, D)
        fused = has_fused_attention() and not return_probabilities
        fused = fused and not (training and self.dropout_rate > 0)
        query_scale, score_scale = query_and_score_scale(
            1 / math.sqrt(self.head_size), training=training, dtype=self.compute_dtype
        )
        projected = projections(hidden, self._projections(), training=training)
        query, key, value = heads(
            [unpadding.pad(x) for x in projected],
            num_heads=self.num_heads,
            heads_first=not fused,
            training=training,
        )  # each (B, N, S, H); for a fused kernel (B, S, N, H)
        if first_only:
            query = query[:, :1] if fused else query[:, :, :1]
            attention_mask = attention_mask[:, :, :1]
        probabilities = None
        if fused:
            context = ops.dot_product_attention(
                query, key, value, mask=attention_mask, scale=score_scale * query_scale
            )
        else:
            scores = masked_scores(
                scaled(query, query_scale), key, attention_mask, scale=score_scale
            )  # (B, N, S, S)
            probabilities = ops.softmax(scores, axis=-1)
            context = ops.matmul(self.dropout(probabilities, training=training), value)
            context = transposed(context, (0, 2, 1, 3), training=training)  # (B, S, N, H)
        context = self._join_heads(context)
        output = self.projection(context[:, 0] if first_only else unpadding.unpad(context))
        if alone and not first_only:
            output = unpadding.pad(output)
        return (output, probabilities) if return_probabilities else output

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
            "joined": self.joined,
        }
