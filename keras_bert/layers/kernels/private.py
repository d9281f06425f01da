"""Names of TensorFlow and Keras that are not public; a test names each that is gone.

Each function has a plain form to fall back to, and says once that it does.
"""

import functools
import warnings

import keras


@functools.cache
def _say_once(name, instead):
    warnings.warn(
        f"{name} was not found in this version. {instead} Please report it with your versions.",
        RuntimeWarning,
        stacklevel=3,
    )


def in_xla_context():
    """Whether the TensorFlow graph in which operations are made is compiled by XLA."""
    import tensorflow as tf

    try:
        from tensorflow.python.ops import control_flow_util

        return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
    except (ImportError, AttributeError):
        _say_once(
            "TensorFlow's `control_flow_util.GraphOrParentsInXlaContext`",
            "Steps that XLA compiles are traced as others are, and may be slower.",
        )
        return False


def stored(variable):
    """The tensor of a variable in the type that it is stored in; of a tensor, the tensor.

    In a layer of a shorter type Keras casts a variable when it is read, so that its gradient
    arrives in the shorter type.
    """
    try:
        from keras.src.backend.common.variables import AutocastScope

        scope = AutocastScope(None)
    except (ImportError, TypeError):
        _say_once(
            "Keras's `AutocastScope`", "Gradients of embeddings are summed in the compute dtype."
        )
        return _tensor(variable)
    with scope:
        return _tensor(variable)


def set_mask(x, mask):
    """Gives a tensor the mask that layers of Keras read: bool, of its first axes, or None."""
    try:
        from keras.src.backend import set_keras_mask
    except ImportError:
        _say_once(
            "Keras's `set_keras_mask`", "Layers of Keras over an encoder's outputs read padding."
        )
        return
    set_keras_mask(x, mask)


def _tensor(variable):
    """The tensor of a variable, or of a tensor, in the type that Keras gives it now."""
    value = variable.value if isinstance(variable, keras.Variable) else variable
    if keras.backend.backend() != "tensorflow":
        return keras.ops.convert_to_tensor(value)
    import tensorflow as tf

    return tf.convert_to_tensor(value)  # a `tf.Variable` is a tensor to Keras
