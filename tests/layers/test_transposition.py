import numpy as np
import pytest
import tensorflow as tf

from keras_bert.layers.fast.transposition import transposed

X = np.random.default_rng(0).normal(size=(2, 3, 4, 5))


@pytest.mark.parametrize("training", [False, True, None])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_is_a_transposition_with_its_gradients(dtype, training):
    x = tf.cast(X, dtype)

    def of(move):
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(move(x) ** 3)
            gradient = tape.gradient(y, x)
        return move(x), gradient, second.gradient(gradient, x)

    found = of(lambda x: transposed(x, (0, 3, 1, 2), training=training))
    for ours, theirs in zip(found, of(lambda x: tf.transpose(x, (0, 3, 1, 2))), strict=True):
        np.testing.assert_array_equal(ours, theirs)
