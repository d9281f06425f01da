"""What a layer's call becomes a part of: which backend, compiled or not, for which processor."""

import contextlib
import contextvars

import keras

_FOR_LITERT = contextvars.ContextVar("for_litert", default=False)
_FOR_SERVERS = contextvars.ContextVar("for_servers", default=False)
# The devices on which work is spared by shapes that depend on the values.
_SPARING = ("CPU",)


@contextlib.contextmanager
def for_litert():
    """While it lasts, what is traced has only operations that LiteRT has."""
    token = _FOR_LITERT.set(True)
    try:
        yield
    finally:
        _FOR_LITERT.reset(token)


@contextlib.contextmanager
def for_servers():
    """While it lasts, what is traced is the same whatever devices this process has.

    It will run on servers of any kind, so that what is worthwhile on one kind alone is chosen when
    it runs (`on_cpu`), and what runs on one kind alone is left out.
    """
    token = _FOR_SERVERS.set(True)
    try:
        yield
    finally:
        _FOR_SERVERS.reset(token)


def is_for_servers():
    """Whether `for_servers` lasts."""
    return _FOR_SERVERS.get()


def on_cpu(compute, otherwise):
    """What `compute()` gives, or in a graph for servers on another device than a CPU `otherwise()`.

    Both give the same structure of tensors, and only one of them is computed.
    """
    if not is_for_servers():
        return compute()
    import tensorflow as tf

    index = tf.raw_ops.DeviceIndex(device_names=list(_SPARING))
    return tf.cond(index < len(_SPARING), compute, otherwise)


def is_for_litert():
    """Whether `for_litert` lasts."""
    return _FOR_LITERT.get()


def compiled_by_xla():
    """True on JAX; on TensorFlow while a `jit_compile` function or a TPU's step is traced.

    XLA wants shapes that do not vary, and joins element-wise operations itself.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.backend.backend() == "jax"
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def shapes_may_vary():
    """Whether a shape may depend on the values: on TensorFlow outside XLA and LiteRT, on a CPU.

    With an accelerator the host would wait until the values are known. In a graph for servers of
    any kind they may vary in what `on_cpu` computes.
    """
    return is_unfused() and not is_for_litert()


def is_unfused():
    """Whether every operation is a pass over memory: on TensorFlow outside XLA, on a CPU.

    What is for servers of any kind has the forms for a CPU, which are as right on others.
    """
    if keras.backend.backend() != "tensorflow" or compiled_by_xla():
        return False
    if is_for_servers():
        return True
    import tensorflow as tf

    return not any(map(tf.config.list_logical_devices, ("GPU", "TPU")))


def use_cudnn():
    """What a `keras.layers.LSTM` is to have as `use_cudnn`: False in a graph for servers.

    cuDNN's operation runs on a GPU alone.
    """
    return False if is_for_servers() else "auto"


def has_fused_attention():
    """Whether `ops.dot_product_attention` reaches a fused kernel; none of them has dropout."""
    return keras.backend.backend() in ("jax", "torch")
