"""Steps that are traced anew on purpose."""

import contextlib

import tensorflow as tf

_WARNING = "triggered tf.function retracing"


@contextlib.contextmanager
def retracing_on_purpose():
    """Within it TensorFlow does not warn that the same step is traced again and again.

    Each phase of a run has its own shapes, hence its own trace, and `minutes` measures them all
    before the first step.
    """
    logger = tf.get_logger()
    logger.addFilter(_says_something_else)
    try:
        yield
    finally:
        logger.removeFilter(_says_something_else)


def _says_something_else(record):
    return _WARNING not in record.getMessage()
