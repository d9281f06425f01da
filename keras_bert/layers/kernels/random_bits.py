"""Random numbers for dropout: 16 bits an element."""

import math

import keras
from keras import ops

_PHILOX = 1  # as TensorFlow's operations number generators


def uniform_uint16(like, seed_generator):
    """Uniform numbers from 0 to 65535, in the shape of `like`.

    Drawing a 32-bit number for every element is most of the cost of Keras's dropout on a CPU; two
    neighbours share one here.
    """
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
