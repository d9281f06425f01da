"""LayerNorm (Ba et al. 2016) and dropout (Srivastava et al. 2014)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.kernels.elementwise import dropout, normalise


@keras.saving.register_keras_serializable(package="keras_bert")
class LayerNorm(Layer):
    """Shifts and scales each vector to mean 0 and variance 1, then by learned gamma and beta.

    The same function as `keras.layers.LayerNormalization`, computed in float32 at least.

    Shapes: x (…, D) -> (…, D). Weights gamma (D,), beta (D,).

    Args:
        epsilon: added to the variance.
        use_bias: whether there is a beta.
    """

    def __init__(self, *, epsilon, use_bias=True, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.use_bias = use_bias
        # Whatever the compute dtype, the statistics are computed in float32.
        self.autocast = False

    def build(self, input_shape):
        size = (input_shape[-1],)
        self.gamma = self.add_weight(shape=size, initializer="ones", autocast=False, name="gamma")
        self.beta = None
        if self.use_bias:
            self.beta = self.add_weight(
                shape=size, initializer="zeros", autocast=False, name="beta"
            )
        self.built = True

    def call(self, x):
        dtype = keras.backend.result_type(x.dtype, "float32")
        # A cast reads the variables: the gradient needs tensors.
        gamma = ops.cast(self.gamma, dtype)
        beta = ops.zeros_like(gamma) if self.beta is None else ops.cast(self.beta, dtype)
        return ops.cast(normalise(x, gamma, beta, epsilon=self.epsilon), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape


@keras.saving.register_keras_serializable(package="keras_bert")
class Dropout(Layer):
    """Sets elements to zero in training and scales the others up by 1 / (1 - rate).

    Shapes: any -> the same.

    Args:
        rate: probability of an element to be set to zero, in [0, 1), a multiple of 1/65536.
        seed: seed of the layer's own generator; None is Keras's global one.
    """

    def __init__(self, *, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be in [0, 1). Received: rate={rate}.")
        self.rate = rate
        if rate:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, x, training=None):
        if not training or not self.rate:
            return x
        return dropout(x, rate=self.rate, seed_generator=self.seed_generator)

    def compute_output_shape(self, input_shape):
        return input_shape


@keras.saving.register_keras_serializable(package="keras_bert")
class VariationalDropout(Dropout):
    """Dropout with one mask for all positions of a sequence (Gal and Ghahramani 2016).

    Shapes: x (B, S, D) -> the same.

    Arguments are those of `Dropout`.
    """

    def call(self, x, training=None):
        return x * super().call(ops.ones_like(x[:, :1]), training=training)  # (B, 1, D) to each
