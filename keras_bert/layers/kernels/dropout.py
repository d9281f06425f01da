"""Dropout's formula (Srivastava et al. 2014) from 16 random bits an element."""

import math

import keras
from keras import ops

_STEPS = 1 << 16
_PHILOX = 1  # as TensorFlow's operations number generators


def dropout(x, *, rate, seed_generator):
    """x / (1 - p) where a uniform number from [0, 1) is at least the rate p, and 0 elsewhere.

    Drawing a 32-bit number for every element is most of the cost of Keras's dropout on a CPU; two
    neighbours share one here. With 16 bits the rate is a multiple of 1/65536; the scale is that of
    the rate that is used, so that the expectation is exact. The gradient is written out, which is
    the same function of the upstream one, so that nothing but the choice is kept for it.

    Shapes: any -> the same, of x's type.

    Args:
        rate: p.
        seed_generator: a `keras.random.SeedGenerator`.
    """
    dropped = round(rate * _STEPS)
    keep = _uniform_uint16(x, seed_generator) >= ops.cast(dropped, "uint16")
    scale = _STEPS / (_STEPS - dropped)

    def drop(x):
        return ops.where(keep, x * ops.cast(scale, x.dtype), ops.zeros((), x.dtype))

    return ops.custom_gradient(lambda x: (drop(x), drop))(x)


def _uniform_uint16(like, seed_generator):
    """Uniform numbers from 0 to 65535, in the shape of `like`."""
    if keras.backend.backend() == "tensorflow":
        return _of_tensorflow(like, seed_generator)
    shape = ops.shape(like)
    size = math.prod(shape)
    draws = keras.random.randint(
        ((size + 1) // 2, 1), -(2**31), 2**31 - 1, dtype="int32", seed=seed_generator
    )
    return ops.reshape(ops.reshape(ops.view(draws, dtype="uint16"), (-1,))[:size], shape)


def _of_tensorflow(like, seed_generator):
    """In few operations: a block has three dropouts, and each operation takes time to trace."""
    import tensorflow as tf

    size = tf.size(like)
    shape = [(size + 1) // 2]
    state = seed_generator.next()  # (2,): seed, and how often it was asked
    if tf.config.list_logical_devices("TPU"):
        seed = tf.cast(state % (2**31 - 1), tf.int32)
        draws = tf.random.stateless_uniform(shape, seed, None, None, tf.int32)
    else:
        # The generator that TensorFlow chooses is Philox on a CPU, but for XLA it is one that takes
        # a hundred times as long there.
        key = tf.bitcast(tf.cast(state, tf.uint32), tf.uint64)[None]
        draws = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=shape, key=key, counter=tf.zeros(2, tf.uint64), alg=_PHILOX, dtype=tf.int32
        )
    bits = tf.reshape(tf.bitcast(draws, tf.uint16), [-1])
    return tf.reshape(bits[:size], tf.shape(like))
