"""Attention as one kernel of a GPU, which never writes the scores: cuDNN's, by way of JAX.

It computes what `attend` does without dropout, for bfloat16 and float16. Padding is given to it as
lengths, a causal mask and its window by their names, and what else a layout has, such as packed
rows and the blocks of windows to both sides, as a mask. Scores of other types, dropout of the
probabilities (the kernel's own takes its seed when the program is compiled, so that no seed and no
resumed run would draw the same) and learned biases are left to XLA.
"""

import functools
import math
import warnings

import keras
from keras import ops

from keras_bert.layers.kernels.program import device, is_for_accelerator, is_pretended

_TYPES = ("bfloat16", "float16")
_HEAD_SIZES = range(8, 129, 8)
_FIRST_CAPABILITY = 8.0  # Ampere


def fused_attention(query, key, value, layout, *, window):
    """softmax(query keyᵀ / √H) value if the layout allows, or None if no kernel takes the case.

    A row whose padding is not at its end, as `Layout.padding_is_last` has it, becomes NaN if the
    kernel reads lengths: it is never read as if it were.

    Shapes: query (B, Q, N, H), key and value (B, K, N, H) -> (B, Q, N, H). `layout` and `window`
    are as in `attend`.
    """
    if not _takes(query.dtype, query.shape[-1]):
        return None
    if layout.is_packed or (window is not None and not layout.causal):
        if query.shape[1] % 2 or key.shape[1] % 2:  # the gradient of a mask needs even lengths
            return None
        options = {"mask": layout.mask(window)}
    else:
        zero, nan = (ops.cast(number, value.dtype) for number in (0.0, math.nan))
        is_readable = layout.padding_is_last[:, None, None, None]
        if layout.causal:  # no token sees the padding after it
            options = {"is_causal": True}
            options |= {} if window is None else {"local_window_size": (window, 0)}
            value = ops.where(is_readable, value, nan)
        else:
            # Of no key at all it would be NaN.
            options = {"key_value_seq_lengths": ops.maximum(layout.lengths, 1)}
            # The kernel may leave the gradients of padded keys unwritten: `where` has none there.
            is_token = layout.is_token[:, :, None, None]
            key = ops.where(is_token, key, zero)
            value = ops.where(is_token, value, ops.where(is_readable, zero, nan))
    import jax

    try:
        return jax.nn.dot_product_attention(query, key, value, **options, implementation="cudnn")
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
        _say_once(f"{type(error).__name__}: {error}")
        return None


def knows_windows(layout, dtype, size):
    """Whether a kernel takes a layout's window by its name, for heads of that type and size."""
    return layout.causal and not layout.is_packed and _takes(dtype, size)


def _takes(dtype, size):
    """Whether there is a kernel for heads of that type and size."""
    dtype = keras.backend.standardize_dtype(dtype)
    return reads_lengths() and dtype in _TYPES and size in _HEAD_SIZES


def reads_lengths():
    """Whether the device has the kernels, to which a row's padding is a length.

    It is a GPU of NVIDIA since Ampere, under JAX.
    """
    if keras.backend.backend() != "jax" or not is_for_accelerator() or device() != "gpu":
        return False
    return is_pretended() or _capability() >= _FIRST_CAPABILITY


def why_missing():
    """The reason why the GPU that JAX sees has no kernel, or None if it has."""
    if _capability() < _FIRST_CAPABILITY:
        return "the GPU is not of NVIDIA, or older than Ampere"
    try:
        from jax._src.cudnn.fused_attention_stablehlo import check_cudnn_version

        check_cudnn_version()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return None


@functools.cache
def _capability():
    import jax

    try:
        return float(jax.local_devices()[0].compute_capability)
    except (AttributeError, ValueError):  # a GPU of another maker
        return 0.0


@functools.cache
def _say_once(reason):
    warnings.warn(
        f"cuDNN's fused attention cannot be used, and attention takes more memory and time. "
        f"{reason}",
        RuntimeWarning,
        stacklevel=4,
    )
