import numpy as np
import pytest

from keras_bert.layers.transformer_block import TransformerBlock
from tests.activation_formulas import FORMULAS
from tests.layer_checks import check_layer

RNG = np.random.default_rng(4)
HIDDEN = RNG.normal(size=(2, 5, 8)).astype("float32")
IS_TOKEN = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
MASK = IS_TOKEN[:, None, None, :]
SIZES = {
    "hidden_size": 8,
    "num_heads": 2,
    "intermediate_size": 12,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.5,
}


def make(hidden_act="gelu", **options):
    return TransformerBlock(**{**SIZES, "hidden_act": hidden_act, **options})


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def test_passes_the_layer_check(tmp_path):
    check_layer(
        make,
        inputs={"hidden": HIDDEN, "attention_mask": MASK},
        output_shape=(2, 5, 8),
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("hidden_act", sorted(FORMULAS))
def test_is_post_norm_with_the_activation_that_was_named(hidden_act):
    layer = make(hidden_act)
    y = np.asarray(layer(HIDDEN, MASK))
    attended = np.asarray(layer.attention(HIDDEN, MASK), "float64")
    hidden = norm(HIDDEN + attended)
    kernels = [layer.feedforward_in.kernel, layer.feedforward_out.kernel]
    first, second = (np.asarray(k.value, "float64") for k in kernels)
    expected = norm(hidden + FORMULAS[hidden_act](hidden @ first) @ second)
    np.testing.assert_allclose(y[IS_TOKEN], expected[IS_TOKEN], atol=5e-6)


def test_the_two_forms_of_gelu_differ():
    a, b = make("gelu"), make("gelu_new")
    a(HIDDEN, MASK), b(HIDDEN, MASK)
    for target, source in zip(b.weights, a.weights, strict=True):
        target.assign(source)
    assert 1e-6 < np.abs(np.asarray(a(HIDDEN, MASK)) - np.asarray(b(HIDDEN, MASK))).max() < 1e-2


def test_dropout_follows_both_sub_layers():
    layer = make(dropout=0.5)
    layer(HIDDEN, MASK)
    quiet = np.asarray(layer(HIDDEN, MASK))
    assert not np.allclose(quiet, np.asarray(layer(HIDDEN, MASK, training=True)))
    # With the sub-layers' outputs at nothing, there is nothing to drop.
    for name in ("kernel", "bias"):
        for dense in (layer.attention.projection, layer.feedforward_out):
            getattr(dense, name).assign(np.zeros(getattr(dense, name).shape))
    y = np.asarray(layer(HIDDEN, MASK, training=True))
    np.testing.assert_allclose(y[IS_TOKEN], norm(norm(HIDDEN))[IS_TOKEN], atol=1e-5)


def test_an_activation_without_a_name_here_is_refused():
    with pytest.raises(ValueError, match="hidden_act.*'swish'"):
        make("swish")
