import math

import keras
import numpy as np
import pytest

from keras_bert.heads.lm_head import LMHead, LMTransform, NextTokenPositions
from tests.activation_formulas import FORMULAS
from tests.layer_checks import check_layer
from tests.seeds import make_rng

RNG = make_rng(6)
HIDDEN = RNG.normal(size=(2, 5, 8)).astype("float32")
POSITIONS = np.array([[4, 1, 1], [0, 2, 3]], "int32")


def make_transform(hidden_act="gelu", **options):
    return LMTransform(
        hidden_size=8,
        hidden_act=hidden_act,
        layer_norm_eps=1e-12,
        initializer_range=0.5,
        **options,
    )


def make(has_transform=True, use_bias=True, dtype=None, **options):
    return LMHead(
        token_embedding=keras.layers.Embedding(11, 8, dtype=dtype),
        transform=make_transform(dtype=dtype, name="transform") if has_transform else None,
        use_bias=use_bias,
        dtype=dtype,
        **options,
    )


def test_predicts_at_the_positions_with_the_tied_embedding(tmp_path):
    check_layer(
        make,
        inputs={"hidden": HIDDEN, "positions": POSITIONS},
        output_shape=(2, 3, 11),
        mixed_output="float32",
        tmp_path=tmp_path,
    )
    layer = make()
    layer(HIDDEN, POSITIONS)
    layer.bias.assign(RNG.normal(size=11))
    y = np.asarray(layer(HIDDEN, POSITIONS))
    expected = before_the_table(layer) @ np.asarray(layer.token_embedding.embeddings.value).T
    np.testing.assert_allclose(y, expected + np.asarray(layer.bias.value), atol=5e-6)


@pytest.mark.parametrize("has_transform, use_bias", [(False, True), (True, False), (False, False)])
def test_a_head_may_have_neither_a_transform_nor_a_bias(has_transform, use_bias, tmp_path):
    check_layer(
        lambda **options: make(has_transform, use_bias, **options),
        inputs={"hidden": HIDDEN, "positions": POSITIONS},
        output_shape=(2, 3, 11),
        mixed_output="float32",
        tmp_path=tmp_path,
    )
    layer = make(has_transform, use_bias)
    layer(HIDDEN, POSITIONS)
    bias = 0
    if use_bias:
        bias = RNG.normal(size=11).astype("float32")
        layer.bias.assign(bias)
    else:
        assert layer.bias is None
    assert len(layer.weights) == 1 + 4 * has_transform + use_bias
    table = np.asarray(layer.token_embedding.embeddings.value)
    expected = before_the_table(layer) @ table.T + bias
    np.testing.assert_allclose(np.asarray(layer(HIDDEN, POSITIONS)), expected, atol=5e-6)


def before_the_table(layer):
    """The states that the head multiplies by the table, in numpy: (2, 3, 8)."""
    picked = np.stack([HIDDEN[row, POSITIONS[row]] for row in range(2)])
    return picked if layer.transform is None else transformed(layer.transform, picked)


def transformed(transform, x):
    """An `LMTransform` with gelu in numpy, a new LayerNorm's scale and offset left out."""
    x = x @ np.asarray(transform.dense.kernel.value) + np.asarray(transform.dense.bias.value)
    x = x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def test_the_transform_is_a_dense_layer_gelu_and_a_layer_norm(tmp_path):
    x = HIDDEN.reshape(10, 8)
    check_layer(make_transform, inputs={"x": x}, output_shape=(10, 8), tmp_path=tmp_path)
    layer = make_transform()
    layer.build()
    layer.dense.bias.assign(np.linspace(-1, 1, 8))
    gamma, beta = RNG.normal(size=(2, 8)).astype("float32")
    layer.layer_norm.gamma.assign(gamma)
    layer.layer_norm.beta.assign(beta)
    expected = transformed(layer, x) * gamma + beta
    for training in (False, True):
        outputs = np.asarray(layer(x, training=training))
        np.testing.assert_allclose(outputs, expected, atol=2e-5)
    with pytest.raises(ValueError, match="hidden_act.*'swish'"):
        make_transform("swish")


def test_counts_its_products():
    """2 for each element of a product and each summand: D = 8, V = 11."""
    counts = np.array([0, 3])
    np.testing.assert_array_equal(make().forward_flops(counts), counts * (2 * 64 + 2 * 88))
    np.testing.assert_array_equal(make(False).forward_flops(counts), counts * 2 * 88)


def test_fractions_the_embedding_and_trains_it():
    layer = make()
    hidden, positions = keras.Input((5, 8)), keras.Input((3,), dtype="int32")
    model = keras.Model([hidden, positions], layer(hidden, positions))
    table = layer.token_embedding.embeddings
    assert any(w is table for w in layer.trainable_weights)
    table.assign(np.zeros((11, 8)))
    np.testing.assert_array_equal(np.asarray(layer(HIDDEN, POSITIONS)), 0.0)
    x = before_the_table(layer).reshape(6, 8)
    labels = np.array([[1, 2, 3], [4, 5, 5]])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(1.0), loss)
    model.fit([HIDDEN, POSITIONS], labels, verbose=0)
    # With logits of 0: the mean over six predictions of (1/11 - one-hot) x.
    gradient = (1 / 11 - np.eye(11)[labels.ravel()]).T @ x / 6
    np.testing.assert_allclose(np.asarray(table), -gradient, atol=1e-5)


def test_logits_are_float32_of_the_table_as_it_is_stored():
    """In bfloat16, 1,000 and 1,001 are one number, as a table's entry and as a logit."""
    layer = make(dtype="mixed_bfloat16")
    layer(HIDDEN, POSITIONS)
    table = np.zeros((11, 8), "float32")
    table[1], table[2] = 1 / 8 + 1 / 4096, 1 / 8
    layer.token_embedding.embeddings.assign(table)
    # What comes out of the LayerNorm is its beta.
    layer.transform.layer_norm.gamma.assign(np.zeros(8))
    layer.transform.layer_norm.beta.assign(np.full(8, 1000.0))
    layer.bias.assign(np.linspace(0, 1, 11))
    y = np.asarray(layer(HIDDEN, POSITIONS))
    assert y.dtype == np.float32
    expected = table @ np.full(8, 1000.0) + np.linspace(0, 1, 11)
    np.testing.assert_allclose(y, np.broadcast_to(expected, y.shape), rtol=1e-6)


def test_the_next_token_is_predicted_at_every_position_but_the_last(tmp_path):
    check_layer(
        NextTokenPositions,
        inputs={"input_ids": np.ones((2, 5), "int32")},
        output_shape=(2, 4),
        tmp_path=tmp_path,
        integer_output=True,
        trains=False,
    )
    positions = np.asarray(NextTokenPositions()(np.ones((2, 5), "int32")))
    np.testing.assert_array_equal(positions, [[0, 1, 2, 3]] * 2)
    assert positions.dtype == np.int32
    said = NextTokenPositions()(keras.KerasTensor((None, None), "int32"))
    assert said.shape == (None, None) and said.dtype == "int32"


def test_the_embedding_may_be_smaller_than_the_hidden_size():
    layer = LMHead(
        token_embedding=keras.layers.Embedding(11, 3),
        transform=LMTransform(
            hidden_size=8,
            output_size=3,
            hidden_act="gelu",
            layer_norm_eps=1e-12,
            initializer_range=0.5,
            name="transform",
        ),
        use_bias=False,
    )
    y = np.asarray(layer(HIDDEN, POSITIONS))
    assert layer.transform.dense.kernel.shape == (8, 3)
    kernel, bias, gamma, beta = (np.asarray(w.value) for w in layer.transform.weights)
    x = np.take_along_axis(HIDDEN, POSITIONS[..., None], axis=1)
    x = FORMULAS["gelu"](x @ kernel + bias)
    x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) * gamma + beta
    expected = x @ np.asarray(layer.token_embedding.embeddings.value).T
    np.testing.assert_allclose(y, expected, atol=5e-6)
    assert layer.forward_flops(5) == 5 * (2 * 8 * 3 + 2 * 3 * 11)
