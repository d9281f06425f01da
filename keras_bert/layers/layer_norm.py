"""LayerNorm (Ba et al. 2016)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.kernels.elementwise import normalise


@keras.saving.register_keras_serializable(package="keras_bert")
class LayerNorm(Layer):
    """Shifts and scales each vector to mean 0 and variance 1, then by learned gamma and beta.

    The same function as `keras.layers.LayerNormalization`, computed in float32 at least.

    Shapes: x (…, D) -> (…, D). Weights gamma (D,), beta (D,).

    Args:
        epsilon: added to the variance.
    """

    def __init__(self, *, epsilon, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        # Whatever the compute dtype, the statistics are computed in float32.
        self.autocast = False

    def build(self, input_shape):
        size = (input_shape[-1],)
        self.gamma = self.add_weight(shape=size, initializer="ones", autocast=False, name="gamma")
        self.beta = self.add_weight(shape=size, initializer="zeros", autocast=False, name="beta")
        self.built = True

    def call(self, x):
        x = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
        # A cast reads the variables: the gradient needs tensors.
        gamma, beta = ops.cast(self.gamma, x.dtype), ops.cast(self.beta, x.dtype)
        return ops.cast(normalise(x, gamma, beta, epsilon=self.epsilon), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape
