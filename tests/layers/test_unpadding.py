"""Padding is left out of the dense layers' work, and nobody can tell by the tokens."""

import numpy as np
import pytest
from keras import ops

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.layers.kernels import gathering as module
from keras_bert.layers.kernels.gathering import NoUnpadding, Unpadding, unpadding_of
from keras_bert.layers.layout import Layout
from tests.layers.test_transformer_block import make
from tests.seeds import make_rng

RNG = make_rng(5)
MASKS = {
    "at the end": [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]],
    "anywhere": [[0, 1, 1, 0, 1], [1, 0, 0, 0, 1], [0, 0, 1, 0, 0]],
    "a whole row": [[1, 1, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 0]],
    "everything": [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    "nothing": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]],
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
    unpadding = Unpadding(ops.convert_to_tensor(is_token))
    rows = unpadding.unpad(ops.convert_to_tensor(x))
    np.testing.assert_array_equal(np.asarray(rows), x.reshape(-1, 4))
    np.testing.assert_array_equal(np.asarray(unpadding.pad(rows)), x)


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("mask", sorted(set(MASKS) - {"everything"}))
@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("causal", [False, True])
def test_outputs_at_tokens_and_gradients_are_those_of_the_whole_batch(
    mask, causal, eager, monkeypatch
):
    import tensorflow as tf

    is_token = np.array(MASKS[mask], bool)
    hidden = tf.constant(RNG.normal(size=(3, 5, 8)).astype("float32"))
    weight = tf.constant(RNG.normal(size=(3, 5, 8)) * is_token[..., None], "float32")
    block = make()
    block.build((None, 8))

    def step():
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            layout = Layout(input_mask=tf.constant(is_token), causal=causal)
            y = layout.pad(block(layout.unpad(hidden), layout=layout, training=True))
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
    for gradient, wanted in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=2e-5)
    assert not gradients[0][~is_token].any()  # nothing comes from padding


@pytest.mark.only_tensorflow
def test_shapes_do_not_vary_in_a_compiled_program():
    """XLA compiles a program for a shape; the TPU has no other way."""
    import tensorflow as tf

    kinds = []

    def f(is_token):
        kinds.append(type(unpadding_of(is_token, worthwhile=True)))
        return is_token

    is_token = tf.ones((2, 3), "bool")
    tf.function(f)(is_token)
    tf.function(f, jit_compile=True)(is_token)

    @tf.function(jit_compile=True)
    def outer(is_token):
        return tf.function(f)(is_token)

    outer(is_token)
    assert kinds == [Unpadding, NoUnpadding, NoUnpadding]


def test_where_there_is_next_to_no_padding_every_position_is_left():
    hidden = ops.reshape(ops.arange(24, dtype="float32"), (2, 3, 4))
    unpadding = unpadding_of(ops.ones((2, 3), "bool"), worthwhile=False)
    assert isinstance(unpadding, NoUnpadding)
    assert unpadding.unpad(hidden).shape == (6, 4)
    back = np.asarray(unpadding.pad(unpadding.unpad(hidden)))
    np.testing.assert_array_equal(back, np.asarray(hidden))


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("outputs", [("first_output",), ("sequence_output", "hidden_states")])
def test_it_is_decided_once_in_a_forward_pass(outputs, causal, packed, eager, monkeypatch):
    """However many layers there are; never if rows are packed."""
    import tensorflow as tf

    encoder = BertEncoder(
        BertConfig(
            vocab_size=9,
            hidden_size=8,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=12,
            type_vocab_size=1,
        )
    )
    mask = tf.constant(MASKS["at the end"])
    inputs = {"input_ids": mask + 5, "sequence_ids" if packed else "input_mask": mask}
    taken, attended = [], []
    monkeypatch.setattr(module, "Unpadding", lambda mask: taken.append(mask) or Unpadding(mask))
    masks = Layout.mask

    def mask_of(layout, window=None, *, cls_only=False):
        attended.append(masks(layout, window, cls_only=cls_only))
        return attended[-1]

    monkeypatch.setattr(Layout, "mask", mask_of)

    def call(inputs):
        return encoder(inputs, outputs=outputs, causal=causal)

    call(inputs) if eager else tf.function(call)(inputs)
    assert len(taken) == (0 if packed else 1)
    assert len(attended) == 3
    # The last layer's only query may be the first token, which has a mask of its own.
    assert len({id(mask) for mask in attended}) == (2 if outputs == ("first_output",) else 1)
