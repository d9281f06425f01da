"""LayerNorm (Ba et al. 2016) with its gradient written out."""

import keras
from keras import ops

from keras_bert.layers.xla import compiled_by_xla


@keras.saving.register_keras_serializable(package="keras_bert")
class LayerNorm(keras.layers.Layer):
    """Shifts and scales each vector to mean 0 and variance 1, then by learned gamma and beta.

    The same function as `keras.layers.LayerNormalization`, computed in float32 at least. Where a
    backend does not fuse element-wise operations, the derived gradient goes over the tensor about
    twice as often as it has to, so it is written out here.

    Shapes: x (…, D) -> (…, D). Weights gamma (D,), beta (D,).

    Args:
        epsilon: added to the variance.
    """

    def __init__(self, *, epsilon, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        # Whatever the compute dtype, the statistics are taken in float32.
        self.autocast = False

    def build(self, input_shape):
        width = (input_shape[-1],)
        self.gamma = self.add_weight(shape=width, initializer="ones", autocast=False, name="gamma")
        self.beta = self.add_weight(shape=width, initializer="zeros", autocast=False, name="beta")
        self.built = True

    def call(self, x):
        x = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
        # A cast reads the variables: the gradient wants tensors.
        gamma, beta = ops.cast(self.gamma, x.dtype), ops.cast(self.beta, x.dtype)
        y = _normalise(self.epsilon)(x, gamma, beta)
        return ops.cast(y, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}


def _normalise(epsilon):
    @ops.custom_gradient
    def normalise(x, gamma, beta):
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        inverse = ops.rsqrt(variance + epsilon)
        unit = centred * inverse  # (…, D), mean 0 and variance 1

        def gradient(upstream):
            d_gamma, d_beta = _column_sums(upstream * unit), _column_sums(upstream)
            d_unit = upstream * gamma
            along_mean = ops.mean(d_unit, axis=-1, keepdims=True)
            along_unit = ops.mean(d_unit * unit, axis=-1, keepdims=True)
            d_x = (d_unit - along_mean - unit * along_unit) * inverse
            return d_x, d_gamma, d_beta

        return unit * gamma + beta, gradient

    return normalise


def _column_sums(x):
    """(…, D) -> (D,)."""
    flat = ops.reshape(x, (-1, x.shape[-1]))
    if compiled_by_xla():
        # As a product it made the time of a compiled step grow faster than the number of blocks.
        return ops.sum(flat, axis=0)
    # As a matrix product: TensorFlow's own sum over rows is several times slower.
    return ops.matmul(ops.ones((1, ops.shape(flat)[0]), dtype=x.dtype), flat)[0]
