import numpy as np
import pytest

from keras_bert.layers.transformer_block import FeedForward
from tests.activation_formulas import FORMULAS
from tests.layer_checks import check_layer
from tests.seeds import make_rng

X = make_rng(6).normal(size=(5, 8)).astype("float32")


def make(hidden_act="gelu", **options):
    settings = {"hidden_act": hidden_act, "dropout": 0.0, **options}
    return FeedForward(hidden_size=8, intermediate_size=12, initializer_range=0.5, **settings)


def test_passes_the_layer_check(tmp_path):
    check_layer(make, inputs={"x": X}, output_shape=(5, 8), tmp_path=tmp_path)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("hidden_act", sorted(FORMULAS))
def test_is_two_dense_layers_with_the_activation_that_was_named(hidden_act, training):
    layer = make(hidden_act)
    layer.build()
    layer.dense_in.bias.assign(np.linspace(-1, 1, 12))
    layer.dense_out.bias.assign(np.linspace(1, -1, 8))
    first, b, second, c = (np.asarray(w.value, "float64") for w in layer.weights)
    assert first.shape == (8, 12) and second.shape == (12, 8)
    expected = FORMULAS[hidden_act](X @ first + b) @ second + c
    np.testing.assert_allclose(np.asarray(layer(X, training=training)), expected, atol=5e-6)


def test_the_two_forms_of_gelu_differ():
    erf, tanh = make("gelu"), make("gelu_new")
    erf.build(), tanh.build()
    tanh.set_weights(erf.get_weights())
    assert 1e-6 < np.abs(np.asarray(erf(X)) - np.asarray(tanh(X))).max() < 1e-2


def test_an_activation_without_a_name_here_is_rejected():
    with pytest.raises(ValueError, match="hidden_act.*'swish'"):
        make("swish")
