"""Keeps memory and Python's garbage collector small while TensorFlow's graphs pile up."""

import ctypes
import gc
import resource
import sys
from pathlib import Path

# glibc keeps what was freed in its heaps; other systems' C libraries lack this function.
_return_to_system = getattr(ctypes.CDLL(None), "malloc_trim", lambda bytes_to_keep: None)

_GROWTH = 250 * 2**20  # bytes after which it pays to look for garbage between two tests of a file
_after_collection = 0


def collect_if_grown():
    """Collects what is left over if the process has grown since it was collected last.

    TensorFlow keeps the memory that its tensors once had, so that the garbage of a file of many
    runs would stay with the process for good.
    """
    global _after_collection
    if _memory() > _after_collection + _GROWTH:
        gc.collect()
        _return_to_system(0)
        _after_collection = _memory()


def _memory():
    """Returns the bytes of memory of this process; 0 if the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def keep_from_collector():
    """Collects what is left over, and takes what lives on, graphs above all, out of its sight.

    Keras collects in `quantize`, for each layer, and would go through all of it again and again.
    """
    global _after_collection
    _forget_gradients()
    gc.collect()
    _return_to_system(0)
    gc.freeze()
    _after_collection = _memory()


def _forget_gradients():
    """TensorFlow keeps the gradients of graphs, which in a user's process end with their graph.

    Here many graphs live on, in fixtures; all of them would be another tenth of the memory.
    """
    ops = sys.modules.get("tensorflow.python.framework.ops")
    gradients = getattr(getattr(ops, "gradient_registry", None), "_registry", {})
    for name in [name for name in gradients if name.startswith("CustomGradient-")]:
        del gradients[name]
