"""Names of TensorFlow and Keras that are not public; a test names each that is gone.

Each function has a plain form to fall back to, and says once that it does.
"""

import functools
import warnings
import weakref

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


def custom_gradient(function):
    """Works as `keras.ops.custom_gradient`; what it keeps of a graph ends with the graph.

    TensorFlow registers a gradient for each call in a graph. It holds the graph, and with that the
    weights which the graph reads, as long as the process lives: four times a model's size for each
    training. Here the graph itself holds it.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.ops.custom_gradient(function)
    import tensorflow as tf

    with_gradient = tf.custom_gradient(function)

    @functools.wraps(function)
    def call(*args):
        result = with_gradient(*args)
        if not tf.executing_eagerly():
            _move_last_gradient(tf.compat.v1.get_default_graph())
        return result

    return call


def _move_last_gradient(graph):
    """Moves the gradient that was registered last to the graph that it is of."""
    try:
        from tensorflow.python.framework import ops

        registered = ops.gradient_registry._registry
        name = next(reversed(registered))
        gradient = registered[name]["type"]
    except (ImportError, AttributeError, KeyError, TypeError):
        _say_once("TensorFlow's `gradient_registry`", "Each training keeps some memory.")
        return
    graph.add_to_collection(name, gradient)
    registered[name]["type"] = functools.partial(_gradient_in, weakref.ref(graph), name)


def _gradient_in(graph, name, *args):
    (gradient,) = graph().get_collection(name)
    return gradient(*args)


def without_sum_over_replicas(optimizer):
    """An optimizer for one device, which leaves Keras's sum over the replicas out.

    In TensorFlow it would keep the graph of the step, as `custom_gradient` has it.
    """
    if keras.backend.backend() != "tensorflow":
        return optimizer
    if not hasattr(optimizer, "_all_reduce_sum_gradients"):
        _say_once("Keras's `_all_reduce_sum_gradients`", "Each training keeps some memory.")
        return optimizer
    optimizer._all_reduce_sum_gradients = lambda gradients_and_variables: gradients_and_variables
    return optimizer


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


@functools.cache
def assign_without_communication():
    """From now on a process of several on JAX may assign a variable alone, or in another order.

    Keras places a value on the devices of all processes by a function of JAX that compares it with
    theirs, for which it waits for them.
    """
    import jax
    import numpy as np

    try:
        from keras.src.backend.jax import distribution_lib

        place = distribution_lib.distribute_tensor
    except (ImportError, AttributeError):
        _say_once("Keras's `distribute_tensor`", "Runs of several processes on JAX may not end.")
        return

    def place_here(tensor, layout):
        sharding = getattr(layout, "backend_layout", layout)
        if isinstance(tensor, jax.core.Tracer) or sharding.is_fully_addressable:
            return place(tensor, layout)
        if getattr(tensor, "sharding", None) == sharding:
            return tensor
        value = np.asarray(tensor)
        return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])

    distribution_lib.distribute_tensor = place_here


def _tensor(variable):
    """The tensor of a variable, or of a tensor, in the type that Keras gives it now."""
    value = variable.value if isinstance(variable, keras.Variable) else variable
    if keras.backend.backend() != "tensorflow":
        return keras.ops.convert_to_tensor(value)
    import tensorflow as tf

    return tf.convert_to_tensor(value)  # a `tf.Variable` is a tensor to Keras
