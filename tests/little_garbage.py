"""What keeps Python's garbage collector quick where TensorFlow's graphs pile up."""

import gc


def keep_from_collector():
    """Takes what lives on, TensorFlow's graphs above all, out of the collector's sight.

    It would go through all of it again and again: Keras collects by hand in `quantize`, a layer
    at a time.
    """
    gc.collect()
    gc.freeze()
