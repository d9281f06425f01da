"""The transposition in attention is written for a CPU, and is a transposition."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert.layers.kernels.attention import _transposed
from tests.seeds import make_rng

X = make_rng(0).normal(size=(2, 3, 4, 5)).astype("float32")
AXES = (0, 3, 1, 2)
DTYPES = ["float32", "bfloat16", "float16"]
TRAINING = [False, True, None]


@pytest.mark.parametrize("training", TRAINING)
@pytest.mark.parametrize("dtype", DTYPES)
def test_is_a_transposition(dtype, training):
    x = ops.cast(X, dtype)
    transposed = _transposed(x, AXES, training=training)
    assert keras.backend.standardize_dtype(transposed.dtype) == dtype
    expected = np.transpose(np.asarray(ops.cast(x, "float32")), AXES)
    np.testing.assert_array_equal(np.asarray(ops.cast(transposed, "float32")), expected)


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("training", TRAINING)
@pytest.mark.parametrize("dtype", [*DTYPES, "float64"])
def test_has_the_gradients_of_one(dtype, training):
    import tensorflow as tf

    x = tf.cast(X, dtype)

    def gradients(move):
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(move(x) ** 3)
            first = tape.gradient(y, x)
        return first, second.gradient(first, x)

    tensors = gradients(lambda x: _transposed(x, AXES, training=training))
    for actual, expected in zip(tensors, gradients(lambda x: tf.transpose(x, AXES)), strict=True):
        np.testing.assert_array_equal(actual, expected)
