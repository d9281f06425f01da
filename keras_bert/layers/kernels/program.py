"""The program that a layer's call is part of: its backend, compiled or not, its processor."""

import contextlib
import contextvars

import keras

from keras_bert.layers.kernels.private import in_xla_context

_FOR_LITERT = contextvars.ContextVar("for_litert", default=False)
_FOR_SERVERS = contextvars.ContextVar("for_servers", default=False)
_PRETENDED = contextvars.ContextVar("pretended", default=None)
# The devices on which shapes that depend on the values save work.
_SPARING = ("CPU",)


@contextlib.contextmanager
def _set(variable, value=True):
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def for_litert():
    """Within this context, graphs are traced with operations of LiteRT alone."""
    return _set(_FOR_LITERT)


def for_servers():
    """Within this context, graphs are traced alike whatever devices this process has.

    They will run on servers of any kind: what pays off on one kind alone is chosen when they run
    (`on_cpu`), and what runs on one kind alone is left out.
    """
    return _set(_FOR_SERVERS)


def for_gpu():
    """Within this context, what XLA compiles is traced for a GPU, whatever devices there are.

    So the program of a GPU can be read, lowered and compared on a machine without one.
    """
    return _set(_PRETENDED, "gpu")


def for_tpu():
    """The same for a TPU."""
    return _set(_PRETENDED, "tpu")


def on_cpu(compute, otherwise):
    """`compute()`, or in a graph for servers, on another device than a CPU, `otherwise()`.

    Both return the same structure of tensors, and only one of them is computed.
    """
    if not _FOR_SERVERS.get():
        return compute()
    import tensorflow as tf

    index = tf.raw_ops.DeviceIndex(device_names=list(_SPARING))
    return tf.cond(index < len(_SPARING), compute, otherwise)


def is_for_litert():
    """Whether the graph is for LiteRT."""
    return _FOR_LITERT.get()


def compiled_by_xla():
    """True on JAX; on TensorFlow while a `jit_compile` function or a TPU's step is traced.

    XLA needs fixed shapes, and fuses element-wise operations itself.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.backend.backend() == "jax"
    return in_xla_context()


def is_for_accelerator():
    """Whether XLA compiles the program for a GPU or TPU: this alone chooses their kernels."""
    if not compiled_by_xla() or _FOR_SERVERS.get():
        return False
    return device() != "cpu"


def is_pretended():
    """Whether programs are traced for a device that this process may not have: in `for_gpu`."""
    return _PRETENDED.get() is not None


def device():
    """The kind of device that programs run on: "cpu", "gpu" or "tpu"; or the pretended one."""
    if _PRETENDED.get() is not None:
        return _PRETENDED.get()
    if keras.backend.backend() == "jax":
        import jax

        return jax.default_backend()
    import tensorflow as tf

    for kind in ("TPU", "GPU"):
        if tf.config.list_logical_devices(kind):
            return kind.lower()
    return "cpu"


def shapes_may_vary():
    """Whether a shape may depend on the values: on TensorFlow outside XLA and LiteRT, on a CPU.

    With an accelerator the host would wait until the values are known. In a graph for servers they
    may vary in what `on_cpu` computes.
    """
    return is_unfused() and not is_for_litert()


def is_unfused():
    """Whether every operation is a pass over memory: on TensorFlow outside XLA, on a CPU.

    A graph for servers has the forms for a CPU, which are correct on others too.
    """
    if keras.backend.backend() != "tensorflow" or compiled_by_xla():
        return False
    if _FOR_SERVERS.get():
        return True
    import tensorflow as tf

    return not any(map(tf.config.list_logical_devices, ("GPU", "TPU")))


def use_cudnn():
    """A `keras.layers.LSTM`'s argument: False in a graph for servers, which may have no GPU."""
    return False if _FOR_SERVERS.get() else "auto"


def has_fused_attention():
    """Whether Keras's attention is one operation of the backend; none has dropout."""
    return keras.backend.backend() in ("jax", "torch")
