"""Language-model heads: from hidden states to logits over the tokens."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import activation, dense, logits_dtype
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.embeddings import embedding_table
from keras_bert.layers.kernels.gathering import at_positions


def tied_logits(x, *, token_embedding, bias, dtype):
    """Logits over the vocabulary: (N, D), an embedding (V, D) and bias (V,) or None -> (N, V).

    They are computed in `dtype`, from the table as it is stored.
    """
    table = embedding_table(token_embedding, dtype=dtype)  # (V, D)
    logits = ops.matmul(ops.cast(x, dtype), ops.transpose(table))
    return logits if bias is None else logits + bias


@keras.saving.register_keras_serializable(package="keras_bert")
class LMTransform(Layer):
    """A dense layer, an activation and a LayerNorm (google-research/bert `get_masked_lm_output`).

    Shapes: x (R, D) -> (R, D).

    Args:
        hidden_size: D.
        hidden_act: activation, by Hugging Face's name.
        layer_norm_eps: epsilon of the LayerNorm.
        initializer_range: standard deviation of new weights.
    """

    def __init__(self, *, hidden_size, hidden_act, layer_norm_eps, initializer_range, **kwargs):
        super().__init__(**kwargs)
        self.activation = activation(hidden_act)
        self.dense = dense(
            hidden_size,
            initializer_range=initializer_range,
            name="dense",
            dtype=self.dtype_policy,
        )
        self.layer_norm = LayerNorm(
            epsilon=layer_norm_eps, name="layer_norm", dtype=self.dtype_policy
        )

    def build(self, x_shape=None):
        shape = (None, self.settings["hidden_size"])
        self.dense.build(shape)
        self.layer_norm.build(shape)
        self.built = True

    def call(self, x, training=None):
        return self.layer_norm(self.activation(self.dense(x), training=training))


@keras.saving.register_keras_serializable(package="keras_bert")
class LMHead(Layer):
    """Predicts tokens at some positions, from the encoder's vectors there.

    The output embedding is the encoder's token embedding, shared (Press and Wolf 2017).

    Shapes: hidden (B, S, D), positions (B, P) int -> logits (B, P, V), float32 at least.

    Args:
        token_embedding: the encoder's `keras.layers.Embedding` (V, D).
        transform: a layer (R, D) -> (R, D) before the output embedding, such as an `LMTransform`,
            or None.
        use_bias: add a bias (V,).
        dtype: the encoder's policy; None is Keras's own setting.
    """

    def __init__(self, *, token_embedding, transform, use_bias, dtype=None, **kwargs):
        # The head itself computes logits, from the shared table as it is stored; its transform has
        # the policy of the encoder's layers.
        self.encoder_policy = keras.dtype_policies.get(dtype)
        super().__init__(dtype=logits_dtype(self.encoder_policy), autocast=False, **kwargs)
        self.token_embedding = token_embedding
        self.transform = transform
        self.use_bias = use_bias

    def build(self, hidden_shape, positions_shape=None):
        if not self.token_embedding.built:
            self.token_embedding.build()
        if self.transform is not None and not self.transform.built:
            self.transform.build((None, self.token_embedding.output_dim))
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(self.token_embedding.input_dim,), initializer="zeros", name="bias"
            )
        self.built = True

    def call(self, hidden, positions, training=None):
        x = at_positions(hidden, positions)  # (B * P, D)
        if self.transform is not None:
            x = self.transform(x, training=training)
        logits = tied_logits(
            x, token_embedding=self.token_embedding, bias=self.bias, dtype=self.compute_dtype
        )  # (B * P, V)
        return ops.reshape(logits, (*ops.shape(positions), self.token_embedding.input_dim))

    def compute_output_shape(self, hidden_shape, positions_shape):
        return (*positions_shape, self.token_embedding.input_dim)

    def forward_flops(self, predictions):
        """Floating-point operations for a number of predictions, an int or an array of them."""
        size, vocabulary = self.token_embedding.output_dim, self.token_embedding.input_dim
        transform = 0 if self.transform is None else 2 * size**2
        return predictions * (transform + 2 * size * vocabulary)

    def get_config(self):
        policy = keras.dtype_policies.serialize(self.encoder_policy)
        return {**super().get_config(), "dtype": policy}


def masked_lm_inputs():
    """The symbolic input of a task with masked positions, in addition to its encoder's: (B, P)."""
    return {"masked_lm_positions": keras.Input((None,), dtype="int32", name="masked_lm_positions")}


@keras.saving.register_keras_serializable(package="keras_bert")
class NextTokenPositions(keras.layers.Layer):
    """The positions from which an `LMHead` predicts the next token: all but the last.

    Shapes: input_ids (B, S) -> int32 (B, S - 1), 0 to S - 2 in every sequence.
    """

    def call(self, input_ids):
        zeros = ops.zeros_like(input_ids[:, 1:], dtype="int32")
        return zeros + ops.arange(ops.shape(zeros)[1], dtype="int32")[None]

    def compute_output_spec(self, input_ids):
        batch, length = input_ids.shape
        return keras.KerasTensor((batch, length and length - 1), dtype="int32")


@keras.saving.register_keras_serializable(package="keras_bert")
class NextTokenLoss(Layer):
    """Adds the next-token loss of a causal encoder to the loss of a task (Radford et al. 2018).

    In training the mean cross-entropy of the token after each position, in nats, is added with a
    weight: L = L_task + weight * L_LM (equation 5 of the paper, where it is 0.5). The output is
    `hidden` itself.

    Shapes: hidden (B, S, D), input_ids and input_mask (B, S) -> (B, S, D).

    Args:
        lm_head: an `LMHead`.
        weight: the weight of the loss.
    """

    def __init__(self, *, lm_head, weight, **kwargs):
        super().__init__(**kwargs)
        self.lm_head = lm_head
        self.weight = weight
        self.positions = NextTokenPositions(name="positions")

    def build(self, hidden_shape, input_ids_shape=None, input_mask_shape=None):
        if not self.lm_head.built:
            self.lm_head.build(hidden_shape)
        self.built = True

    def call(self, hidden, input_ids, input_mask, training=None):
        if training:
            logits = self.lm_head(hidden, self.positions(input_ids), training=training)
            nats = ops.sparse_categorical_crossentropy(input_ids[:, 1:], logits, from_logits=True)
            counts = ops.cast(input_mask[:, 1:], nats.dtype)
            self.add_loss(self.weight * ops.divide_no_nan(ops.sum(nats * counts), ops.sum(counts)))
        return hidden

    def compute_output_shape(self, hidden_shape, input_ids_shape, input_mask_shape):
        return hidden_shape
