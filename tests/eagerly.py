"""TensorFlow's functions as they are written, without graphs.

What a small model computes once or twice takes less time so than its graph takes to be traced.
Training, predictions and exports are tested with graphs, too, and what depends on a graph only so.
"""

import contextlib

import tensorflow as tf


@contextlib.contextmanager
def eagerly():
    """Within it no function is traced but those of `tf.data`."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
