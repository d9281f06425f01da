"""What keeps memory and Python's garbage collector small while TensorFlow's graphs pile up."""

import ctypes
import gc

# glibc keeps what was freed in its heaps; other systems' C libraries lack this function.
_return_to_system = getattr(ctypes.CDLL(None), "malloc_trim", lambda bytes_to_keep: None)


def keep_from_collector():
    """Collects what is left over, and takes what lives on, graphs above all, out of its sight.

    Keras collects in `quantize`, for each layer, and would go through all of it again and again.
    """
    gc.collect()
    _return_to_system(0)
    gc.freeze()
