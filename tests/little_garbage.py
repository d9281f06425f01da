"""What keeps memory and Python's garbage collector small while TensorFlow's graphs pile up."""

import ctypes
import gc
import sys

# glibc keeps what was freed in its heaps; other systems' C libraries lack this function.
_return_to_system = getattr(ctypes.CDLL(None), "malloc_trim", lambda bytes_to_keep: None)


def keep_from_collector():
    """Collects what is left over, and takes what lives on, graphs above all, out of its sight.

    Keras collects in `quantize`, for each layer, and would go through all of it again and again.
    """
    _forget_gradients()
    gc.collect()
    _return_to_system(0)
    gc.freeze()


def _forget_gradients():
    """TensorFlow keeps the gradients of graphs, which in a user's process end with their graph.

    Here many graphs live on, in fixtures; all of them would be another tenth of the memory.
    """
    ops = sys.modules.get("tensorflow.python.framework.ops")
    gradients = getattr(getattr(ops, "gradient_registry", None), "_registry", {})
    for name in [name for name in gradients if name.startswith("CustomGradient-")]:
        del gradients[name]
