"""Span-boundary head (SpanBERT, Joshi et al. 2020, section 3.2)."""

import keras
from keras import ops

from keras_bert.heads.lm_head import tied_logits
from keras_bert.layers import Layer
from keras_bert.layers.dense import activation, dense, initializer, logits_dtype
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.embeddings import embedded
from keras_bert.layers.kernels.gathering import at_positions

# Size of the embedding of an offset, whatever the model's own, as in the authors' program.
OFFSET_WIDTH = 200


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanBoundary(Layer):
    """Predicts each masked token from the tokens next to its span, and from its offset in it.

    The encoder's vectors of the tokens just left and right of the span and an embedding of the
    token's offset are concatenated and passed through two layers, each dense, activation and
    LayerNorm, and the encoder's token embedding, shared, with a bias (V,) of its own.

    Shapes: hidden (B, S, D), and per prediction the positions `left` and `right` and the `offset`
    in the span, from 1, (B, P) int each -> logits (B, P, V), float32 at least.

    As in the authors' program (facebookresearch/SpanBERT, `BertPairTargetPredictionHead`), the last
    layer's outputs are read, and the size of both layers is D.

    Args:
        token_embedding: the encoder's `keras.layers.Embedding` (V, D).
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
        max_span_length,
        offset_width,
        hidden_act,
        layer_norm_eps,
        initializer_range,
        dtype=None,
        **kwargs,
    ):
        self.parts_policy = keras.dtype_policies.get(dtype)
        super().__init__(dtype=logits_dtype(self.parts_policy), autocast=False, **kwargs)
        self.token_embedding = token_embedding
        self.activation = activation(hidden_act)
        self.offset_embedding = keras.layers.Embedding(
            max_span_length,
            offset_width,
            embeddings_initializer=initializer(initializer_range),
            name="offset_embedding",
            dtype=self.parts_policy,
        )
        self.dense_layers = [
            dense(
                token_embedding.output_dim,
                initializer_range=initializer_range,
                name=f"{number}_dense",
                dtype=self.parts_policy,
            )
            for number in ("first", "second")
        ]
        self.layer_norms = [
            LayerNorm(epsilon=layer_norm_eps, name=f"{number}_layer_norm", dtype=self.parts_policy)
            for number in ("first", "second")
        ]

    def build(self, hidden_shape, left_shape=None, right_shape=None, offset_shape=None):
        if not self.token_embedding.built:
            self.token_embedding.build()
        size = self.token_embedding.output_dim
        self.offset_embedding.build()
        input_size = 2 * size + self.settings["offset_width"]
        for layer, norm in zip(self.dense_layers, self.layer_norms, strict=True):
            layer.build((None, input_size))
            norm.build((None, size))
            input_size = size
        self.bias = self.add_weight(
            shape=(self.token_embedding.input_dim,), initializer="zeros", name="bias"
        )
        self.built = True

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
            x = norm(self.activation(layer(x), training=training))  # (B * P, D)
        logits = tied_logits(
            x, token_embedding=self.token_embedding, bias=self.bias, dtype=self.compute_dtype
        )  # (B * P, V)
        return ops.reshape(logits, (*ops.shape(left), self.token_embedding.input_dim))

    def compute_output_shape(self, hidden_shape, left_shape, right_shape, offset_shape):
        return (*left_shape, self.token_embedding.input_dim)

    def forward_flops(self, predictions):
        """Floating-point operations for a number of predictions, an int or an array of them."""
        size, vocabulary = self.token_embedding.output_dim, self.token_embedding.input_dim
        first = 2 * (2 * size + self.settings["offset_width"]) * size
        return predictions * (first + 2 * size**2 + 2 * size * vocabulary)

    def get_config(self):
        policy = keras.dtype_policies.serialize(self.parts_policy)
        return {**super().get_config(), "dtype": policy}


def span_boundary_head(encoder, *, max_span_length):
    """The head of an encoder, sharing its token embedding."""
    return SpanBoundary(
        token_embedding=encoder.token_embedding,
        max_span_length=max_span_length,
        offset_width=OFFSET_WIDTH,
        hidden_act=encoder.config.head_activation,
        layer_norm_eps=encoder.config.head_layer_norm_eps,
        initializer_range=encoder.config.head_initializer_range,
        dtype=encoder.layer_policy,
        name="span_boundary",
    )


def span_boundary_inputs():
    """The symbolic inputs of a task with this head, in addition to its encoder's: (B, P) each."""
    names = ("span_left", "span_right", "span_offset")
    return {name: keras.Input((None,), dtype="int32", name=name) for name in names}
