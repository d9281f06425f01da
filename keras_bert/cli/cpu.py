"""How a command's TensorFlow uses a CPU: oneDNN's products, and memory that is kept."""

import os
import platform

_X86 = ("x86_64", "AMD64")


def settle_cpu():
    """Settles for TensorFlow what it leaves to the environment; call before it is imported.

    What the user's environment says stays so.

    Products are oneDNN's on every x86 processor. By itself TensorFlow takes them only where there
    are AVX-512's instructions for neural networks; but with AVX2 alone the products of a gradient
    are a tenth to a half faster, and a fine-tuning step by an eighth.

    Memory that a step has freed is kept. A step makes the tensors anew that the step before it has
    freed. Where TensorFlow does not use oneDNN, with which it keeps them, it leaves them to the C
    library, which gives large ones back to the system, and the system clears every page that is
    asked for again: a tenth of the processor's time of a fine-tuning step.
    """
    if platform.machine() in _X86:
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
