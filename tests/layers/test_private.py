"""The interfaces of TensorFlow and Keras that are not public are there, and do as is expected."""

import gc
import weakref

import keras
import numpy as np
import pytest

from keras_bert.layers.kernels import private


class Reading(keras.layers.Layer):
    def build(self, shape):
        self.table = self.add_weight(shape=(2, 2), name="table")

    def call(self, x):
        dtypes = (private.stored(self.table).dtype, keras.ops.convert_to_tensor(self.table).dtype)
        assert [*map(keras.backend.standardize_dtype, dtypes)] == ["float32", "bfloat16"]
        return x


def test_a_variable_is_read_in_the_type_that_it_is_stored_in():
    Reading(dtype="mixed_bfloat16")(np.zeros((1, 2), "float32"))


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("jit_compile", [True, False])
def test_a_program_of_xla_is_known(jit_compile):
    import tensorflow as tf

    answers = []
    tf.function(lambda: answers.append(private.in_xla_context()), jit_compile=jit_compile)()
    assert answers == [jit_compile]


@pytest.mark.only_tensorflow
def test_a_gradient_of_a_graph_ends_with_the_graph():
    import tensorflow as tf

    @private.custom_gradient
    def doubled(x):
        return 2 * x, lambda upstream: 3 * upstream

    @tf.function
    def gradient_of_tape(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = doubled(doubled(x))
        return y, tape.gradient(y, x)

    @tf.function
    def gradient_of_graph(x):
        y = doubled(x)
        return tf.gradients(tf.while_loop(lambda y: y < 9, lambda y: (doubled(y),), (y,)), x)

    x = tf.constant(1.0)
    assert [*map(float, gradient_of_tape(x))] == [4, 9]
    assert float(gradient_of_graph(x)[0]) == 3**4  # of 2, 4, 8, 16
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(doubled)(x)  # whose gradient is made later
    assert float(tape.gradient(y, x)) == 3
    graph = weakref.ref(gradient_of_tape.get_concrete_function(x).graph)
    del gradient_of_tape
    gc.collect()
    assert graph() is None


def test_layers_of_keras_read_a_mask():
    x = keras.ops.convert_to_tensor(np.array([[[1.0], [5.0]]], "float32"))
    private.set_mask(x, keras.ops.convert_to_tensor([[True, False]]))
    np.testing.assert_array_equal(keras.layers.GlobalAveragePooling1D()(x), [[1.0]])


@pytest.mark.filterwarnings("error")
def test_what_is_gone_is_said_once(monkeypatch):
    from keras.src.backend.common import variables

    monkeypatch.delattr(variables, "AutocastScope")
    private._say_once.cache_clear()
    variable = keras.Variable(np.ones(2, "float32"))
    with pytest.warns(RuntimeWarning, match="`AutocastScope` was not found"):
        private.stored(variable)
    np.testing.assert_array_equal(np.asarray(private.stored(variable)), 1.0)
    monkeypatch.delattr(keras.src.backend, "set_keras_mask")
    with pytest.warns(RuntimeWarning, match="`set_keras_mask` was not found"):
        private.set_mask(variable, None)
    private.set_mask(variable, None)
