"""What keeps Python's garbage collector quick where TensorFlow's graphs pile up."""

import gc


def keep_from_collector():
    """Collects what is left over, and takes what lives on, graphs above all, out of its sight.

    Keras collects by hand in `quantize`, a layer at a time, and would go through all of it again
    and again.
    """
    gc.collect()
    gc.freeze()
