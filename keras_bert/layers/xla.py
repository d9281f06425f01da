"""Whether a layer's call becomes a part of a program that XLA compiles."""

import keras


def compiled_by_xla():
    """True on JAX; on TensorFlow while a `jit_compile` function or a TPU's step is traced.

    XLA wants shapes that do not vary, and joins element-wise operations itself.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.backend.backend() == "jax"
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
