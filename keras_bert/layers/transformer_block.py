"""A post-norm Transformer block (Vaswani et al. 2017, section 3.1)."""

import keras

from keras_bert.layers.activations import activation
from keras_bert.layers.attention_mask import check_attention_mask
from keras_bert.layers.dense import dense
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.fast.unpadding import NoUnpadding, unpadding_of
from keras_bert.layers.layer_norm import LayerNorm
from keras_bert.layers.self_attention import SelfAttention


@keras.saving.register_keras_serializable(package="keras_bert")
class TransformerBlock(keras.layers.Layer):
    """LayerNorm(x + Dropout(SubLayer(x))), for self-attention and then for a feed-forward layer.

    Shapes: hidden (B, S, D), attention_mask bool (B, 1, S or 1, S) -> (B, S, D), and with
    `return_probabilities` also the attention probabilities (B, N, S, S). The output at padding
    means nothing; it is 0 where padding is left out of the work. With `first_only` it is that of
    the first token alone: -> (B, 1, D), and (B, N, 1, S).

    Args:
        hidden_size: D.
        num_heads: N; divides D.
        intermediate_size: width of the feed-forward layer.
        hidden_act: its activation, by Hugging Face's name.
        dropout: share of each sub-layer's output set to zero in training.
        attention_dropout: share of the attention probabilities set to zero in training.
        layer_norm_eps: epsilon of both LayerNorms.
        initializer_range: standard deviation of new weights.
        joined: see `SelfAttention`.
    """

    def __init__(
        self,
        *,
        hidden_size,
        num_heads,
        intermediate_size,
        hidden_act,
        dropout,
        attention_dropout,
        layer_norm_eps,
        initializer_range,
        joined=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.settings = {
            "hidden_size": hidden_size,
            "num_heads": num_heads,
            "intermediate_size": intermediate_size,
            "hidden_act": hidden_act,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "layer_norm_eps": layer_norm_eps,
            "initializer_range": initializer_range,
            "joined": joined,
        }
        dtype = self.dtype_policy
        weights = {"initializer_range": initializer_range, "dtype": dtype}
        norm = {"epsilon": layer_norm_eps, "dtype": dtype}

        def after_sub_layer(name):
            return Dropout(rate=dropout, name=name, dtype=dtype)

        self.attention = SelfAttention(
            hidden_size=hidden_size,
            num_heads=num_heads,
            dropout=attention_dropout,
            joined=joined,
            name="attention",
            **weights,
        )
        self.attention_output_dropout = after_sub_layer("attention_output_dropout")
        self.attention_norm = LayerNorm(name="attention_norm", **norm)
        self.activation = activation(hidden_act)
        self.feedforward_in = dense(intermediate_size, name="feedforward_in", **weights)
        self.feedforward_out = dense(hidden_size, name="feedforward_out", **weights)
        self.feedforward_output_dropout = after_sub_layer("feedforward_output_dropout")
        self.feedforward_norm = LayerNorm(name="feedforward_norm", **norm)

    def build(self, hidden_shape, attention_mask_shape=None):
        narrow = (None, None, self.settings["hidden_size"])
        self.attention.build(narrow)
        self.attention_norm.build(narrow)
        self.feedforward_in.build(narrow)
        self.feedforward_out.build((None, None, self.settings["intermediate_size"]))
        self.feedforward_norm.build(narrow)
        self.built = True

    def call(
        self,
        hidden,
        attention_mask,
        training=None,
        return_probabilities=False,
        first_only=False,
    ):
        unpadding = unpadding_of(hidden, attention_mask)
        rows = unpadding.unpad(hidden)  # (R, D)
        attended = self.attention(
            rows,
            attention_mask,
            unpadding=unpadding,
            training=training,
            return_probabilities=return_probabilities,
            first_only=first_only,
        )
        probabilities = None
        if return_probabilities:
            attended, probabilities = attended
        if first_only:
            rows, unpadding = hidden[:, 0], NoUnpadding(1)  # (B, D)
        attended = self.attention_output_dropout(attended, training=training)
        rows = self.attention_norm(rows + attended)
        wide = self.activation(self.feedforward_in(rows), training=training)  # (R, intermediate)
        narrow = self.feedforward_output_dropout(self.feedforward_out(wide), training=training)
        hidden = unpadding.pad(self.feedforward_norm(rows + narrow))  # (B, S, D)
        return (hidden, probabilities) if return_probabilities else hidden

    def compute_output_spec(
        self,
        hidden,
        attention_mask,
        training=None,
        return_probabilities=False,
        first_only=False,
    ):
        # Else Keras traces all of `call` for it: three quarters of the time to make an encoder.
        check_attention_mask(attention_mask, length=hidden.shape[1])
        batch, length, width = hidden.shape
        queries = 1 if first_only else length
        output = keras.KerasTensor((batch, queries, width), dtype=self.compute_dtype)
        if not return_probabilities:
            return output
        shape = (batch, self.settings["num_heads"], queries, length)
        return output, keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), **self.settings}
