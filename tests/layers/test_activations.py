from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert.layers.dense import ACTIVATIONS, activation, dense
from tests.activation_formulas import FORMULAS

X = np.linspace(-6, 6, 241).astype("float32")


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
@pytest.mark.parametrize("training", [None, False, True])
def test_is_the_formula_in_training_and_out_of_it(name, training):
    y = activation(name)(ops.convert_to_tensor(X), training=training)
    np.testing.assert_allclose(np.asarray(y), FORMULAS[name](X.astype("float64")), atol=1e-6)


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["gelu", "gelu_new"])
def test_the_gradient_is_the_formula_s_slope(name, training):
    import tensorflow as tf

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = activation(name)(x, training=training)
    step, wide = 1e-5, X.astype("float64")
    slope = (FORMULAS[name](wide + step) - FORMULAS[name](wide - step)) / (2 * step)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), slope, atol=1e-5)


@pytest.mark.only_tensorflow
@pytest.mark.usefixtures("optimized_graphs")
@pytest.mark.parametrize(
    ("name", "joined"), [("gelu", "GeluExact"), ("gelu_new", "GeluApproximate")]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensorflow_joins_it_to_the_product_before(name, joined, dtype):
    """Its patterns are of one form of the formula: another is as right, and slower by a fifth."""
    import tensorflow as tf
    from tensorflow.python.eager import context
    from tensorflow.python.util import _pywrap_util_port

    if not _pywrap_util_port.IsMklEnabled():
        pytest.skip("NOT TESTED: TensorFlow does not use oneDNN on this processor")
    if dtype == "bfloat16" and "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("NOT TESTED: oneDNN computes in bfloat16 only if there is AVX-512")

    layer = dense(64, initializer_range=0.1, name="dense", dtype=keras.DTypePolicy(dtype))
    layer.build((None, 32))
    layer.bias.assign(np.ones(64))
    act = activation(name)

    @tf.function
    def f(x):
        return tf.reduce_sum(act(layer(x), training=False), -1)

    f.get_concrete_function(tf.TensorSpec((None, 32), dtype))
    with context.collect_graphs(optimized=True) as graphs:
        f(tf.ones((8, 32), dtype))
    fused = [
        node.attr["fused_ops"].list.s
        for graph in graphs
        for node in graph.node
        if node.op == "_FusedMatMul"
    ]
    assert fused == [[b"BiasAdd", joined.encode()]]


def test_a_name_that_is_not_here_is_rejected():
    with pytest.raises(ValueError, match="hidden_act.*'swish'"):
        activation("swish")
