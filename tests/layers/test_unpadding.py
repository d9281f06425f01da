"""Padding is left out of the dense layers' work, and nobody can tell by the tokens."""

import numpy as np
import pytest
from keras import ops

from keras_bert.layers.kernels import unpadding as module
from keras_bert.layers.kernels.unpadding import NoUnpadding, Unpadding, unpadding_of
from keras_bert.layers.transformer_block import TransformerBlock

RNG = np.random.default_rng(5)
MASKS = {
    "at the end": [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]],
    "anywhere": [[0, 1, 1, 0, 1], [1, 0, 0, 0, 1], [0, 0, 1, 0, 0]],
    "a whole row": [[1, 1, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 0]],
    "everything": [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    "nothing": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]],
}
SIZES = {
    "hidden_size": 8,
    "num_heads": 2,
    "intermediate_size": 12,
    "hidden_act": "gelu",
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.5,
}


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("mask", MASKS)
def test_what_is_unpadded_can_be_padded(mask):
    is_token = np.array(MASKS[mask], bool)
    x = RNG.normal(size=(3, 5, 4)).astype("float32")
    unpadding = Unpadding(ops.convert_to_tensor(is_token))
    rows = np.asarray(unpadding.unpad(ops.convert_to_tensor(x)))
    np.testing.assert_array_equal(rows, x[is_token])
    back = np.asarray(unpadding.pad(ops.convert_to_tensor(rows)))
    np.testing.assert_array_equal(back, np.where(is_token[..., None], x, 0))


@pytest.mark.only_tensorflow
def test_a_little_padding_is_worked_on():
    is_token = np.ones((2, 10), bool)
    is_token[1, 9] = False
    x = RNG.normal(size=(2, 10, 4)).astype("float32")
    rows = Unpadding(ops.convert_to_tensor(is_token)).unpad(ops.convert_to_tensor(x))
    np.testing.assert_array_equal(np.asarray(rows), x.reshape(-1, 4))


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("mask", sorted(set(MASKS) - {"everything"}))
@pytest.mark.parametrize("eager", [True, False])
def test_outputs_at_tokens_and_gradients_are_those_of_the_whole_batch(mask, eager, monkeypatch):
    import tensorflow as tf

    is_token = np.array(MASKS[mask], bool)
    hidden = tf.constant(RNG.normal(size=(3, 5, 8)).astype("float32"))
    weight = tf.constant(RNG.normal(size=(3, 5, 8)) * is_token[..., None], "float32")
    block = TransformerBlock(**SIZES)
    block.build(hidden.shape)

    def step():
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            y = block(hidden, tf.constant(is_token)[:, None, None, :], training=True)
            loss = tf.reduce_sum(y * weight)
        return y, tape.gradient(loss, [hidden, *[w.value for w in block.trainable_weights]])

    def run():
        y, gradients = step() if eager else tf.function(step)()
        return y.numpy()[is_token], [g.numpy() for g in gradients]

    taken = []
    monkeypatch.setattr(module, "Unpadding", lambda mask: taken.append(mask) or Unpadding(mask))
    y, gradients = run()
    assert taken
    monkeypatch.setattr(module, "shapes_may_vary", lambda: False)
    expected, expected_gradients = run()
    np.testing.assert_allclose(y, expected, atol=1e-5)
    for gradient, right in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, right, atol=2e-5)
    assert not gradients[0][~is_token].any()  # nothing comes from padding


@pytest.mark.only_tensorflow
def test_shapes_do_not_vary_in_a_compiled_program():
    """XLA compiles a program for a shape; the TPU has no other way."""
    import tensorflow as tf

    kinds = []

    def f(hidden, mask):
        kinds.append(type(unpadding_of(hidden, mask)))
        return hidden

    arguments = tf.ones((2, 3, 4)), tf.ones((2, 1, 1, 3), "bool")
    tf.function(f)(*arguments)
    tf.function(f, jit_compile=True)(*arguments)

    @tf.function(jit_compile=True)
    def outer(*arguments):
        return tf.function(f)(*arguments)

    outer(*arguments)
    assert kinds == [Unpadding, NoUnpadding, NoUnpadding]


def test_a_mask_of_queries_and_keys_leaves_every_position():
    hidden = ops.ones((2, 3, 4))
    unpadding = unpadding_of(hidden, ops.ones((2, 1, 3, 3), "bool"))
    assert isinstance(unpadding, NoUnpadding)
    assert unpadding.unpad(hidden).shape == (6, 4)
    assert unpadding.pad(unpadding.unpad(hidden)).shape == (2, 3, 4)
