"""Dropout (Srivastava et al. 2014) from 16 random bits an element."""

import keras
from keras import ops

_STEPS = 1 << 16


@keras.saving.register_keras_serializable(package="keras_bert")
class Dropout(keras.layers.Layer):
    """Sets a share of the elements to zero in training and scales the others up to make it good.

    Keras's own layer draws a 32-bit number for every element, and on a CPU drawing is most of its
    cost; two elements share one here. The share is therefore a multiple of 1/65536, and the scale
    is that of the share which is really dropped, so that the expectation is exact.

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
        keep = self._bits(ops.shape(x)) >= ops.cast(self.dropped, "uint16")
        scale = _STEPS / (_STEPS - self.dropped)
        return ops.where(keep, x * ops.cast(scale, x.dtype), ops.zeros((), x.dtype))

    def _bits(self, shape):
        """Uniform uint16 of that shape: each 32-bit draw gives two neighbours on the last axis."""
        *others, last = shape
        pairs = (last + 1) // 2
        draws = _draw((*others, pairs, 1), self.seed_generator)
        bits = ops.reshape(ops.view(draws, dtype="uint16"), (*others, 2 * pairs))
        return bits[..., :last]

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}


def _draw(shape, seed_generator):
    """Uniform int32 of that shape."""
    if keras.backend.backend() != "tensorflow":
        return keras.random.randint(shape, -(2**31), 2**31 - 1, dtype="int32", seed=seed_generator)
    import tensorflow as tf

    # The generator that TensorFlow chooses is Philox on a CPU, but for XLA it is one that takes
    # a hundred times as long there.
    alg = "auto_select" if tf.config.list_logical_devices("TPU") else "philox"
    seed = ops.cast(seed_generator.next() % (2**31 - 1), "int32")
    return tf.random.stateless_uniform(shape, seed, None, None, "int32", alg=alg)
