"""Lookups whose gradient is a table: what optimizers make of tokens that stand in many places."""

import keras
import numpy as np
import pytest

from keras_bert.layers.embeddings import embedded
from tests.seeds import make_rng, shifted

IDS = np.array([[3, 1, 3], [3, 0, 1]], "int32")


@keras.saving.register_keras_serializable(package="tests")
class Lookup(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(5, 2)

    def build(self, shape):
        self.table.build()

    def call(self, ids):
        return embedded(self.table, ids, dtype=self.compute_dtype)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_step_of_adam_squares_the_sum_of_what_a_token_gets_in_all_its_places(jit_compile):
    """Keras, given the rows that TensorFlow's own lookup gives, sums the squares of the places."""
    keras.utils.set_random_seed(shifted(0))
    model = keras.Sequential([keras.Input((3,), dtype="int32"), Lookup()])
    adam = keras.optimizers.Adam(0.1, beta_1=0.8, beta_2=0.9, epsilon=1e-9)
    model.compile(adam, loss=lambda y, outputs: y * outputs, jit_compile=jit_compile)
    table = np.array(model.trainable_variables[0], "float64")
    upstream = make_rng(1).normal(size=(4, 2, 3, 2)).astype("float32")
    m, v = np.zeros_like(table), np.zeros_like(table)
    for step, given in enumerate(upstream, 1):
        model.train_on_batch(IDS, given)
        gradient = np.zeros_like(table)
        np.add.at(gradient, IDS, given / given.size)
        m += 0.2 * (gradient - m)
        v += 0.1 * (gradient**2 - v)
        table -= 0.1 * (m / (1 - 0.8**step)) / (np.sqrt(v / (1 - 0.9**step)) + 1e-9)
    np.testing.assert_allclose(model.trainable_variables[0], table, rtol=1e-3)
