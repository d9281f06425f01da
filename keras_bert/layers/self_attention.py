"""Multi-head self-attention (Vaswani et al. 2017, section 3.2)."""

import keras

from keras_bert.layers import Layer
from keras_bert.layers.dense import Dense, dense, initializer
from keras_bert.layers.elementwise import Dropout
from keras_bert.layers.kernels.attention import attend, attend_step, keys_and_values
from keras_bert.layers.positions import NO_POSITIONS


@keras.saving.register_keras_serializable(package="keras_bert")
class SideBySide(keras.initializers.Initializer):
    """Concatenated kernels (D, D), each drawn by an initializer of its own: (D, n D)."""

    def __init__(self, initializers):
        self.initializers = initializers

    def __call__(self, shape, dtype=None):
        size = shape[-1] // len(self.initializers)
        parts = [draw((*shape[:-1], size), dtype=dtype) for draw in self.initializers]
        return keras.ops.concatenate(parts, axis=-1)

    def get_config(self):
        return {"initializers": [keras.saving.serialize_keras_object(i) for i in self.initializers]}

    @classmethod
    def from_config(cls, config):
        return cls([keras.saving.deserialize_keras_object(i) for i in config["initializers"]])


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(Layer):
    """Every token attends to those that the layout allows: softmax(Q Kᵀ / √H) V in every head.

    Query, key and value are one dense layer, `query_key_value` (D, 3 D), in that order; each of the
    three parts is drawn as a kernel (D, D) of its own.

    Shapes: x (R, D), the positions of the batch that `layout` works on -> (R, D), and with
    `return_probabilities` also (B, N, S, S), before dropout. With `cls_only` the first token of
    each sequence is the only query: -> (B, D), and (B, N, 1, S). A query without a key (padding in
    a packed row) gets the mean of all values.

    Args:
        hidden_size: D.
        num_heads: N; divides D.
        dropout: fraction of the attention probabilities set to zero in training.
        output_dropout: fraction of the output set to zero in training.
        initializer_range: standard deviation of new weights.
        use_bias: whether the dense layers have biases.
        positions: None, or the `Positions` of encoders whose positions are part of attention. Its
            weights are the encoder's, which builds it: layers may share it.
        window: how many positions away a token sees; None is any number.

    Raises:
        ValueError: N does not divide D.
    """

    def __init__(
        self,
        *,
        hidden_size,
        num_heads,
        dropout,
        output_dropout,
        initializer_range,
        use_bias=True,
        positions=None,
        window=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if hidden_size % num_heads:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_heads`. "
                f"Received: hidden_size={hidden_size}, num_heads={num_heads}."
            )
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.head_size = hidden_size // num_heads
        self.window = window
        self.query_key_value = Dense(
            3 * hidden_size,
            use_bias=use_bias,
            kernel_initializer=SideBySide([initializer(initializer_range) for _ in range(3)]),
            name="query_key_value",
            dtype=self.dtype_policy,
        )
        self.projection = dense(
            hidden_size,
            initializer_range=initializer_range,
            name="projection",
            dtype=self.dtype_policy,
            use_bias=use_bias,
        )
        self.dropout = Dropout(rate=dropout, name="dropout", dtype=self.dtype_policy)
        self.output_dropout = Dropout(
            rate=output_dropout, name="output_dropout", dtype=self.dtype_policy
        )

    def build(self, x_shape=None):
        self.query_key_value.build((None, self.hidden_size))
        if not self.query_key_value.quantization_mode:  # of a quantized kernel this is a copy
            self.query_key_value.kernel.num_parts = 3  # see `LAMB`
        self.projection.build((None, self.hidden_size))
        self.built = True

    @property
    def positions(self):
        """The argument, which is not tracked as a part of this layer, or `NO_POSITIONS`."""
        return self.settings["positions"] or NO_POSITIONS

    def call(self, x, layout, training=None, cls_only=False, return_probabilities=False):
        context, probabilities = attend(
            layout.pad(self.query_key_value(x)),  # (B, S, 3 D)
            layout,
            num_heads=self.num_heads,
            positions=self.positions,
            window=self.window,
            project=self.query_key_value,
            dropout=self.dropout,
            training=training,
            cls_only=cls_only,
            return_probabilities=return_probabilities,
        )  # (B, S, D)
        output = self.projection(context[:, 0] if cls_only else layout.unpad(context))
        output = self.output_dropout(output, training=training)
        return (output, probabilities) if return_probabilities else output

    # One token at a time.

    def initial_cache(self, batch_size, max_length):
        """Keys and values of no token yet: two of zeros (B, N, `max_length`, H)."""
        shape = (batch_size, self.num_heads, max_length, self.head_size)
        return tuple(keras.ops.zeros(shape, dtype=self.compute_dtype) for _ in range(2))

    def cache_of(self, x, is_token, max_length):
        """Keys and values of whole sequences, as the steps would have made them.

        Shapes: x (B, S, D), is_token bool (B, S).
        """
        return keys_and_values(
            self.query_key_value(x),
            is_token,
            num_heads=self.num_heads,
            positions=self.positions,
            max_length=max_length,
        )

    def step(self, x, cache, layout):
        """One new token of each sequence: x (B, D) -> (B, D), and the new cache.

        `layout` is a `StepLayout`.
        """
        context, cache = attend_step(
            self.query_key_value(x),
            cache,
            layout,
            num_heads=self.num_heads,
            positions=self.positions,
            window=self.window,
            project=self.query_key_value,
        )
        return self.projection(context), cache
