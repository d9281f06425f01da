"""How long training waits for its batches."""

import time

import tensorflow as tf

from keras_bert.inputs.datasets import settled


class InputClock:
    """Counts the seconds between asking a dataset for a batch and getting it.

    Where a device works by itself while the next batch is asked for (a GPU), not all of them are
    lost.

    Attributes: `seconds`, all waiting so far.
    """

    def __init__(self):
        self.seconds = 0.0
        self._asked_at = None

    def of(self, dataset):
        """The dataset, whose every batch is timed where it is asked for.

        What comes after it must not ask ahead.
        """
        # Of what is zipped, one is asked after the other. (TensorFlow's own clock does not run
        # where operations are deterministic.)
        asked = tf.data.Dataset.counter().map(
            lambda number: tf.numpy_function(self._ask, [number], tf.int64)
        )
        return settled(tf.data.Dataset.zip((asked, dataset)).map(self._timed))

    def _timed(self, number, batch):
        with tf.control_dependencies([tf.numpy_function(self._give, [number], tf.int64)]):
            return tf.nest.map_structure(tf.identity, batch)

    def _ask(self, number):
        self._asked_at = time.perf_counter()
        return number

    def _give(self, number):
        self.seconds += time.perf_counter() - self._asked_at
        return number
