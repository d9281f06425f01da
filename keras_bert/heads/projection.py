"""A dense layer over the vector of a text, as those of sentence-transformers after its pooling."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import Dense, or_zeros

ACTIVATIONS = {
    "identity": lambda x: x,
    "tanh": ops.tanh,
    "relu": ops.relu,
    "gelu": lambda x: ops.gelu(x, approximate=False),
    "sigmoid": ops.sigmoid,
    "silu": ops.silu,
}


@keras.saving.register_keras_serializable(package="keras_bert")
class Projection(Layer):
    """activation(x W + b), and with a residual plus x, or plus x R if the sizes differ.

    Shapes: x (…, D) -> (…, U).

    Args:
        units: U.
        activation: a name of ACTIVATIONS.
        use_bias: whether there is b.
        use_residual: whether x is added.
    """

    def __init__(self, *, units, activation, use_bias, use_residual, **kwargs):
        super().__init__(**kwargs)
        self.units, self.activation = units, activation
        self.use_bias, self.use_residual = use_bias, use_residual
        self.linear = self._dense("linear", use_bias=use_bias)
        self.residual = None

    def _dense(self, name, *, use_bias):
        uniform = or_zeros(keras.initializers.GlorotUniform())
        options = {"use_bias": use_bias, "kernel_initializer": uniform}
        return Dense(self.units, **options, name=name, dtype=self.dtype_policy)

    def build(self, x_shape):
        self.linear.build(x_shape)
        if self.use_residual and x_shape[-1] != self.units:
            self.residual = self._dense("residual", use_bias=False)
            self.residual.build(x_shape)
        self.built = True

    def call(self, x):
        y = ACTIVATIONS[self.activation](self.linear(x))
        if not self.use_residual:
            return y
        return y + (x if self.residual is None else self.residual(x))

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-1], self.units)
