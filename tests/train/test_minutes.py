"""How many steps there is time for; measuring leaves no trace."""

import time

import keras
import numpy as np
import tensorflow as tf

from keras_bert.input_pipeline.datasets import settled
from keras_bert.input_pipeline.input_clock import InputClock
from keras_bert.train.loop import Feed
from keras_bert.train.minutes import steps_in

MILLISECONDS = 20


class Slow(Feed):
    """Every batch takes its time."""

    batches_a_step = 2

    def training(self, first_step):
        return self._batches(10**6)

    def evaluation(self):
        return self._batches(5)

    def _batches(self, count):
        def wait(number):
            time.sleep(MILLISECONDS / 1000)
            return number

        dataset = tf.data.Dataset.range(count).map(
            lambda number: tf.numpy_function(wait, [number], tf.int64)
        )
        dataset = dataset.map(lambda number: (tf.ones([4, 3]), tf.ones([4, 1])))
        return settled(dataset.apply(tf.data.experimental.assert_cardinality(count)))


def test_the_time_there_is_is_planned_for_and_the_model_is_as_before():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)])
    before = [np.array(variable) for variable in model.variables]
    gone = []

    def spent():
        gone.append(time.perf_counter() - begun)
        return gone[0]

    begun = time.perf_counter()
    steps = steps_in(
        [1.0, 2.0],
        model,
        [Slow(), Slow()],
        spent=spent,
        compile_model=lambda: model.compile("adam", "mse"),
        evaluate_every=10,
        multiple_of=3,
    )
    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    assert all(number % 3 == 0 for number in steps)
    # A step takes two batches' time, and a tenth of an evaluation's. Of both phases one has what
    # was spent before, and one evaluation more.
    each = (2 + 5 / 10) * MILLISECONDS / 1000
    for number, seconds in zip(steps, (0.97 * 60 - gone[0], 0.97 * 120), strict=True):
        assert 0.5 * seconds < number * each < seconds


def test_waiting_for_batches_is_counted_and_nothing_else():
    clock = InputClock()
    batches = iter(clock.of(Slow().training(0)))
    for _ in range(5):
        next(batches)
        time.sleep(MILLISECONDS / 1000)  # what a step takes
    assert 5 * MILLISECONDS <= 1000 * clock.seconds < 10 * MILLISECONDS
    prefetched = InputClock()
    batches = iter(prefetched.of(Slow().training(0).prefetch(10)))
    next(batches)
    first = prefetched.seconds
    time.sleep(5 * MILLISECONDS / 1000)
    next(batches)
    assert prefetched.seconds - first < MILLISECONDS / 1000
