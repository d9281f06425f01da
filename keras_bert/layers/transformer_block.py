"""A Transformer layer, and its feed-forward layer (Vaswani et al. 2017, sections 3.1 and 3.3)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import activation, dense
from keras_bert.layers.elementwise import Dropout


@keras.saving.register_keras_serializable(package="keras_bert")
class FeedForward(Layer):
    """Two dense layers with an activation between them, and dropout, at each position.

    With a gate (Shazeer 2020) the activation of one half of the first layer's outputs is multiplied
    by the other half: (f(x W) ⊙ x V) U, where W and V are one dense layer (D, 2 I).

    Shapes: x (R, D) -> (R, D).

    Args:
        hidden_size: D.
        intermediate_size: I, the size of the inner layer.
        hidden_act: its activation, by Hugging Face's name.
        dropout: fraction of the output set to zero in training.
        initializer_range: standard deviation of new weights.
        use_bias: whether the dense layers have biases.
        has_gate: whether there is a gate.
        inner_dropout: fraction of the second dense layer's input set to zero in training.
    """

    def __init__(
        self,
        *,
        hidden_size,
        intermediate_size,
        hidden_act,
        dropout,
        initializer_range,
        use_bias=True,
        has_gate=False,
        inner_dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        weights = {
            "initializer_range": initializer_range,
            "use_bias": use_bias,
            "dtype": self.dtype_policy,
        }
        self.activation = activation(hidden_act)
        self.has_gate = has_gate
        self.dense_in = dense((1 + has_gate) * intermediate_size, name="dense_in", **weights)
        self.dense_out = dense(hidden_size, name="dense_out", **weights)
        self.dropout = Dropout(rate=dropout, name="dropout", dtype=self.dtype_policy)
        self.inner_dropout = None
        if inner_dropout:
            self.inner_dropout = Dropout(
                rate=inner_dropout, name="inner_dropout", dtype=self.dtype_policy
            )

    def build(self, x_shape=None):
        self.dense_in.build((None, self.settings["hidden_size"]))
        self.dense_out.build((None, self.settings["intermediate_size"]))
        self.built = True

    def call(self, x, training=None):
        x = self.dense_in(x)
        x, gate = ops.split(x, 2, axis=-1) if self.has_gate else (x, None)  # (R, I)
        x = self.activation(x, training=training)
        x = x if gate is None else x * gate
        if self.inner_dropout is not None:
            x = self.inner_dropout(x, training=training)
        return self.dropout(self.dense_out(x), training=training)


@keras.saving.register_keras_serializable(package="keras_bert")
class TransformerBlock(Layer):
    """Attention and then feed-forward, each with a residual connection and a norm.

    With the norm after each sub-layer, as in BERT and GPT: x = Norm(x + SubLayer(x)). With
    `norm_first`, as in GPT-2: x = x + SubLayer(Norm(x)). Dropout is the last step of a sub-layer.

    Shapes: x (R, D), the positions of the batch that `layout` works on -> (R, D), and with
    `return_probabilities` also the attention probabilities (B, N, S, S). With `cls_only` the output
    is that of each sequence's first token: -> (B, D), and (B, N, 1, S).

    Args:
        attention: a layer called as `SelfAttention` is.
        feed_forward: a layer from (R, D) to (R, D).
        attention_norm, feed_forward_norm: their norms. With `norm_first` the former may be None.
        norm_first: the norms come before the sub-layers.
    """

    def __init__(
        self,
        *,
        attention,
        feed_forward,
        attention_norm,
        feed_forward_norm,
        norm_first=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.attention = attention
        self.attention_norm = attention_norm
        self.feed_forward = feed_forward
        self.feed_forward_norm = feed_forward_norm
        self.norm_first = norm_first

    def build(self, x_shape):
        for part in (
            self.attention,
            self.attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            # (Keras builds the parts of a block that it loads.)
            if part is not None and not part.built:
                part.build(x_shape)
        self.built = True

    def call(self, x, layout, training=None, cls_only=False, return_probabilities=False):
        attended = self.attention(
            self._attention_input(x),
            layout=layout,
            training=training,
            cls_only=cls_only,
            return_probabilities=return_probabilities,
        )
        probabilities = None
        if return_probabilities:
            attended, probabilities = attended
        if cls_only:
            x = layout.first(x)  # (B, D)
        x = self._after_attention(x, attended, training=training)
        return (x, probabilities) if return_probabilities else x

    def _attention_input(self, x):
        return self.attention_norm(x) if self.norm_first and self.attention_norm else x

    def _after_attention(self, x, attended, *, training):
        x = x + attended
        if not self.norm_first:
            x = self.attention_norm(x)
        x = x + self.feed_forward(
            self.feed_forward_norm(x) if self.norm_first else x, training=training
        )
        return x if self.norm_first else self.feed_forward_norm(x)

    # One token at a time: see `SelfAttention`.

    def initial_cache(self, batch_size, max_length):
        return self.attention.initial_cache(batch_size, max_length)

    def cache_of(self, x, is_token, max_length):
        """The cache after whole sequences, of which x (B, S, D) is the block's input."""
        return self.attention.cache_of(self._attention_input(x), is_token, max_length)

    def step(self, x, cache, layout):
        """One new token of each sequence: x (B, D) -> (B, D), and the new cache."""
        attended, cache = self.attention.step(self._attention_input(x), cache, layout)
        return self._after_attention(x, attended, training=False), cache
