"""Masked-LM head (Devlin et al. 2018, section 3.1; google-research/bert `get_masked_lm_output`)."""

import keras
from keras import ops

from keras_bert.heads.tied_output import tied_logits
from keras_bert.layers.activations import activation
from keras_bert.layers.dense import dense, logits_dtype
from keras_bert.layers.fast.rows import at_positions
from keras_bert.layers.layer_norm import LayerNorm


@keras.saving.register_keras_serializable(package="keras_bert")
class MaskedLMHead(keras.layers.Layer):
    """Predicts the token at each masked position.

    Shapes: hidden (B, S, D), positions (B, P) int -> logits (B, P, V), float32 at least. The output
    embedding is the encoder's token embedding, shared; only the bias (V,) is the head's own.

    Args:
        token_embedding: the encoder's `keras.layers.Embedding` (V, D).
        hidden_act: activation, by Hugging Face's name.
        layer_norm_eps: epsilon of the LayerNorm.
        initializer_range: standard deviation of new weights.
        dtype: the encoder's policy; None is Keras's own setting.
    """

    def __init__(
        self,
        *,
        token_embedding,
        hidden_act,
        layer_norm_eps,
        initializer_range,
        dtype=None,
        **kwargs,
    ):
        # The head itself gives logits, from the shared table as it is stored; its dense layer
        # computes as the encoder's do.
        self.parts_policy = keras.dtype_policies.get(dtype)
        super().__init__(dtype=logits_dtype(self.parts_policy), autocast=False, **kwargs)
        self.token_embedding = token_embedding
        self.hidden_act = hidden_act
        self.layer_norm_eps = layer_norm_eps
        self.initializer_range = initializer_range
        self.activation = activation(hidden_act)
        self.dense = dense(
            token_embedding.output_dim,
            initializer_range=initializer_range,
            name="dense",
            dtype=self.parts_policy,
        )
        self.layer_norm = LayerNorm(
            epsilon=layer_norm_eps, name="layer_norm", dtype=self.parts_policy
        )

    def build(self, hidden_shape, positions_shape=None):
        if not self.token_embedding.built:
            self.token_embedding.build()
        width = self.token_embedding.output_dim
        self.dense.build((None, None, width))
        self.layer_norm.build((None, None, width))
        self.bias = self.add_weight(
            shape=(self.token_embedding.input_dim,), initializer="zeros", name="bias"
        )
        self.built = True

    def call(self, hidden, positions, training=None):
        x = at_positions(hidden, positions)  # (B * P, D)
        x = self.layer_norm(self.activation(self.dense(x), training=training))  # (B * P, D)
        logits = tied_logits(
            x, token_embedding=self.token_embedding, bias=self.bias, dtype=self.compute_dtype
        )  # (B * P, V)
        return ops.reshape(logits, (*ops.shape(positions), self.token_embedding.input_dim))

    def compute_output_shape(self, hidden_shape, positions_shape):
        return (*positions_shape, self.token_embedding.input_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "dtype": keras.dtype_policies.serialize(self.parts_policy),
            "token_embedding": keras.saving.serialize_keras_object(self.token_embedding),
            "hidden_act": self.hidden_act,
            "layer_norm_eps": self.layer_norm_eps,
            "initializer_range": self.initializer_range,
        }

    @classmethod
    def from_config(cls, config):
        config["token_embedding"] = keras.saving.deserialize_keras_object(config["token_embedding"])
        return cls(**config)


def masked_lm_head(encoder):
    """The head of an encoder, sharing its token embedding."""
    return MaskedLMHead(
        token_embedding=encoder.token_embedding,
        hidden_act=encoder.config.hidden_act,
        layer_norm_eps=encoder.config.layer_norm_eps,
        initializer_range=encoder.config.initializer_range,
        dtype=encoder.layer_policy,
        name="masked_lm_head",
    )


def masked_lm_inputs():
    """The symbolic input of a task with this head, beside its encoder's: the positions (B, P)."""
    return {"masked_lm_positions": keras.Input((None,), dtype="int32", name="masked_lm_positions")}
