"""Random numbers for dropout: 16 bits an element."""

import keras
from keras import ops


def uniform_uint16(shape, seed_generator):
    """Uniform numbers from 0 to 65535.

    Drawing a 32-bit number for every element is most of the cost of Keras's dropout on a CPU; two
    neighbours on the last axis share one here.
    """
    *others, last = shape
    pairs = (last + 1) // 2
    draws = _uniform_int32((*others, pairs, 1), seed_generator)
    bits = ops.reshape(ops.view(draws, dtype="uint16"), (*others, 2 * pairs))
    return bits[..., :last]


def _uniform_int32(shape, seed_generator):
    if keras.backend.backend() != "tensorflow":
        return keras.random.randint(shape, -(2**31), 2**31 - 1, dtype="int32", seed=seed_generator)
    import tensorflow as tf

    # The generator that TensorFlow chooses is Philox on a CPU, but for XLA it is one that takes
    # a hundred times as long there.
    alg = "auto_select" if tf.config.list_logical_devices("TPU") else "philox"
    seed = ops.cast(seed_generator.next() % (2**31 - 1), "int32")
    return tf.random.stateless_uniform(shape, seed, None, None, "int32", alg=alg)
