"""Dropout (Srivastava et al. 2014) from 16 random bits an element."""

import keras
from keras import ops

from keras_bert.layers.kernels.random_bits import uniform_uint16

_STEPS = 1 << 16


@keras.saving.register_keras_serializable(package="keras_bert")
class Dropout(keras.layers.Layer):
    """Sets a share of the elements to zero in training and scales the others up to make it good.

    With 16 bits an element (Keras's own layer draws 32) the share is a multiple of 1/65536; the
    scale is that of the share which is really dropped, so that the expectation is exact.

    Shapes: any -> the same.

    Args:
        rate: share of the elements set to zero, in [0, 1).
        seed: seed of the layer's own generator; None is Keras's global one.
    """

    def __init__(self, *, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be in [0, 1). Received: rate={rate}")
        self.rate = rate
        self.seed = seed
        self.dropped = round(rate * _STEPS)  # of 65536
        if self.dropped:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, x, training=None):
        if not training or not self.dropped:
            return x
        bits = uniform_uint16(x, self.seed_generator)
        keep = bits >= ops.cast(self.dropped, "uint16")
        scale = _STEPS / (_STEPS - self.dropped)

        def drop(x):
            return ops.where(keep, x * ops.cast(scale, x.dtype), ops.zeros((), x.dtype))

        return ops.custom_gradient(lambda x: (drop(x), drop))(x)  # linear: its own gradient

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
