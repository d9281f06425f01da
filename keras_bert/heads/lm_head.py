"""Language-model heads: from hidden states to logits over the tokens."""

import contextlib
import contextvars

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import activation, dense, initializer, logits_dtype
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.embeddings import embedded, embedding_table
from keras_bert.layers.kernels.cross_entropy import cross_entropies, loss_is_by_blocks, projected
from keras_bert.layers.kernels.gathering import at_positions
from keras_bert.layers.kernels.private import stored

_AS_VECTORS = contextvars.ContextVar("as_vectors", default=False)


@contextlib.contextmanager
def vectors_for_the_loss():
    """Within this context, heads return what they multiply by the table: (B, P, E).

    `TiedHead.cross_entropies` takes these vectors: for a GPU or TPU it computes the loss with its
    gradient, and all logits of a batch are never written.
    """
    token = _AS_VECTORS.set(True)
    try:
        yield
    finally:
        _AS_VECTORS.reset(token)


class TiedHead(Layer):
    """A layer that ends in logits by the encoder's token embedding, shared (Press and Wolf 2017).

    It computes them in float32 at least, from the table as it is stored. Its other parts have
    `encoder_policy`, the `dtype` of the constructor.
    """

    def __init__(self, *, token_embedding, dtype, **kwargs):
        self.encoder_policy = keras.dtype_policies.get(dtype)
        super().__init__(dtype=logits_dtype(self.encoder_policy), autocast=False, **kwargs)
        self.token_embedding = token_embedding

    def build_logits(self, *, use_bias):
        if not self.token_embedding.built:
            self.token_embedding.build()
        self.bias = None
        if use_bias:
            self.bias = self.add_weight(
                shape=(self.token_embedding.input_dim,), initializer="zeros", name="bias"
            )
        self.built = True

    def logits(self, x, positions):
        """(B * P, E) at positions (B, P) -> (B, P, V)."""
        if _AS_VECTORS.get():
            return ops.reshape(x, (*ops.shape(positions), x.shape[-1]))
        table = embedding_table(self.token_embedding, dtype=self.compute_dtype)  # (V, E)
        logits = projected(x, table, dtype=self.compute_dtype)
        if self.bias is not None:
            logits = logits + self.bias
        return ops.reshape(logits, (*ops.shape(positions), self.token_embedding.input_dim))

    def loss_is_by_blocks(self, *inputs):
        """Whether the loss of a step with these inputs is to be that of `cross_entropies`."""
        is_quantized = self.token_embedding.quantization_mode
        return loss_is_by_blocks(self.compute_dtype, *inputs) and not is_quantized

    def cross_entropies(self, x, labels):
        """The cross-entropies of labels, and whether they are most probable, of vectors.

        Shapes: x (B, P, E), as within `vectors_for_the_loss`, and labels (B, P) -> float32 (B, P)
        nats, and float32 (B, P) of 1 and 0. Called if `loss_is_by_blocks`.
        """
        # Outside of the layer's call a variable may be cast when it is read.
        table = stored(self.token_embedding.embeddings)
        nats, is_correct = cross_entropies(
            ops.reshape(ops.cast(x, self.encoder_policy.compute_dtype), (-1, x.shape[-1])),
            table,
            None if self.bias is None else stored(self.bias),
            ops.reshape(labels, (-1,)),
        )
        return ops.reshape(nats, labels.shape), ops.reshape(is_correct, labels.shape)

    def get_config(self):
        policy = keras.dtype_policies.serialize(self.encoder_policy)
        return {**super().get_config(), "dtype": policy}


@keras.saving.register_keras_serializable(package="keras_bert")
class LMTransform(Layer):
    """A dense layer, an activation and a LayerNorm (google-research/bert `get_masked_lm_output`).

    Shapes: x (…, D) -> (…, E).

    Args:
        hidden_size: D.
        output_size: E, the size of the output embedding; None is D.
        hidden_act: activation, by Hugging Face's name.
        layer_norm_eps: epsilon of the LayerNorm.
        initializer_range: standard deviation of new weights.
        use_bias, norm_has_bias: whether the dense layer and the LayerNorm have biases.
    """

    def __init__(
        self,
        *,
        hidden_size,
        output_size=None,
        hidden_act,
        layer_norm_eps,
        initializer_range,
        use_bias=True,
        norm_has_bias=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.activation = activation(hidden_act)
        self.output_size = output_size or hidden_size
        self.dense = dense(
            self.output_size,
            initializer_range=initializer_range,
            name="dense",
            dtype=self.dtype_policy,
            use_bias=use_bias,
        )
        self.layer_norm = LayerNorm(
            epsilon=layer_norm_eps,
            use_bias=norm_has_bias,
            name="layer_norm",
            dtype=self.dtype_policy,
        )

    def build(self, x_shape=None):
        self.dense.build((None, self.settings["hidden_size"]))
        self.layer_norm.build((None, self.output_size))
        self.built = True

    def call(self, x, training=None):
        return self.layer_norm(self.activation(self.dense(x), training=training))


@keras.saving.register_keras_serializable(package="keras_bert")
class LMHead(TiedHead):
    """Predicts tokens at some positions, from the encoder's vectors there.

    Shapes: hidden (B, S, D), positions (B, P) int -> logits (B, P, V), float32 at least.

    Args:
        token_embedding: the encoder's `keras.layers.Embedding` (V, E).
        transform: a layer (R, D) -> (R, E) before the output embedding, such as an `LMTransform`,
            or None if E is D.
        use_bias: add a bias (V,).
        dtype: the encoder's policy; None is Keras's own setting.
    """

    def __init__(self, *, token_embedding, transform, use_bias, dtype=None, **kwargs):
        super().__init__(token_embedding=token_embedding, dtype=dtype, **kwargs)
        self.transform = transform
        self.use_bias = use_bias

    def build(self, hidden_shape, positions_shape=None):
        if self.transform is not None and not self.transform.built:
            self.transform.build((None, hidden_shape[-1]))
        self.build_logits(use_bias=self.use_bias)

    def call(self, hidden, positions, training=None):
        x = at_positions(hidden, positions)  # (B * P, D)
        if self.transform is not None:
            x = self.transform(x, training=training)
        return self.logits(x, positions)

    def compute_output_shape(self, hidden_shape, positions_shape):
        return (*positions_shape, self.token_embedding.input_dim)

    def forward_flops(self, predictions):
        """Floating-point operations for a number of predictions, an int or an array of them."""
        size, vocabulary = self.token_embedding.output_dim, self.token_embedding.input_dim
        hidden_size = 0 if self.transform is None else self.transform.settings["hidden_size"]
        return predictions * (2 * hidden_size * size + 2 * size * vocabulary)


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanBoundary(TiedHead):
    """Predicts each masked token from the tokens next to its span, and from its offset in it
    (SpanBERT, Joshi et al. 2020, section 3.2).

    The encoder's vectors of the tokens just left and right of the span and an embedding of the
    token's offset are concatenated and passed through two layers, each dense, activation and
    LayerNorm, and the encoder's token embedding, shared, with a bias (V,) of its own.

    Shapes: hidden (B, S, D), and per prediction the positions `left` and `right` and the `offset`
    in the span, from 1, (B, P) int each -> logits (B, P, V), float32 at least.

    As in the authors' program (facebookresearch/SpanBERT, `BertPairTargetPredictionHead`), the last
    layer's outputs are read, and the size of both layers is that of the token embedding.

    Args:
        token_embedding: the encoder's `keras.layers.Embedding` (V, E).
        hidden_size: D.
        max_span_length: number of offsets that have an embedding. A larger offset has that of the
            last: such tokens should have no weight in the loss.
        offset_width: size of an offset's embedding.
        hidden_act: activation, by Hugging Face's name.
        layer_norm_eps: epsilon of the LayerNorms.
        initializer_range: standard deviation of new weights.
        dtype: the encoder's policy; None is Keras's own setting.
    """

    def __init__(
        self,
        *,
        token_embedding,
        hidden_size,
        max_span_length,
        offset_width,
        hidden_act,
        layer_norm_eps,
        initializer_range,
        dtype=None,
        **kwargs,
    ):
        super().__init__(token_embedding=token_embedding, dtype=dtype, **kwargs)
        self.activation = activation(hidden_act)
        self.offset_embedding = keras.layers.Embedding(
            max_span_length,
            offset_width,
            embeddings_initializer=initializer(initializer_range),
            name="offset_embedding",
            dtype=self.encoder_policy,
        )
        self.dense_layers = [
            dense(
                token_embedding.output_dim,
                initializer_range=initializer_range,
                name=f"{number}_dense",
                dtype=self.encoder_policy,
            )
            for number in ("first", "second")
        ]
        self.layer_norms = [
            LayerNorm(
                epsilon=layer_norm_eps, name=f"{number}_layer_norm", dtype=self.encoder_policy
            )
            for number in ("first", "second")
        ]

    def build(self, hidden_shape, left_shape=None, right_shape=None, offset_shape=None):
        size = self.token_embedding.output_dim
        self.offset_embedding.build()
        input_size = 2 * self.settings["hidden_size"] + self.settings["offset_width"]
        for layer, norm in zip(self.dense_layers, self.layer_norms, strict=True):
            layer.build((None, input_size))
            norm.build((None, size))
            input_size = size
        self.build_logits(use_bias=True)

    def call(self, hidden, left, right, offset, training=None):
        # The offset of padding is 0.
        index = ops.clip(offset, 1, self.settings["max_span_length"]) - 1
        x = ops.concatenate(
            [
                at_positions(hidden, left),
                at_positions(hidden, right),
                embedded(self.offset_embedding, ops.reshape(index, (-1,)), dtype=hidden.dtype),
            ],
            axis=-1,
        )  # (B * P, 2 D + offset_width)
        for layer, norm in zip(self.dense_layers, self.layer_norms, strict=True):
            x = norm(self.activation(layer(x), training=training))  # (B * P, E)
        return self.logits(x, left)

    def compute_output_shape(self, hidden_shape, left_shape, right_shape, offset_shape):
        return (*left_shape, self.token_embedding.input_dim)

    def forward_flops(self, predictions):
        """Floating-point operations for a number of predictions, an int or an array of them."""
        size, vocabulary = self.token_embedding.output_dim, self.token_embedding.input_dim
        first = 2 * (2 * self.settings["hidden_size"] + self.settings["offset_width"]) * size
        return predictions * (first + 2 * size**2 + 2 * size * vocabulary)


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
            nats = self._nats(hidden, input_ids)
            counts = ops.cast(input_mask[:, 1:], nats.dtype)
            self.add_loss(self.weight * ops.divide_no_nan(ops.sum(nats * counts), ops.sum(counts)))
        return hidden

    def _nats(self, hidden, input_ids):
        """The cross-entropy of the token after each position in training: -> (B, S - 1)."""
        positions, labels = self.positions(input_ids), input_ids[:, 1:]
        if self.lm_head.loss_is_by_blocks(input_ids):
            with vectors_for_the_loss():
                vectors = self.lm_head(hidden, positions, training=True)
            nats, _ = self.lm_head.cross_entropies(vectors, labels)
            return nats
        logits = self.lm_head(hidden, positions, training=True)
        return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)

    def compute_output_shape(self, hidden_shape, input_ids_shape, input_mask_shape):
        return hidden_shape
