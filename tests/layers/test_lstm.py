import keras
import numpy as np
import pytest

from keras_bert.layers.lstm import Lstm
from tests.layer_checks import check_layer
from tests.peers import torch
from tests.seeds import make_rng

RNG = make_rng(4)
X = RNG.normal(size=(3, 6, 5)).astype("float32")
LENGTHS = np.array([6, 2, 4])
MASK = (np.arange(6) < LENGTHS[:, None]).astype("int32")
UNITS, SIZE = 7, 4


def make(projection_size=SIZE, cell_clip=None, projection_clip=None, backward=False, **options):
    return Lstm(
        units=UNITS,
        projection_size=projection_size,
        cell_clip=cell_clip,
        projection_clip=projection_clip,
        backward=backward,
        **options,
    )


def built(**options):
    layer = make(**options)
    layer.build(X.shape)
    for weight in layer.weights:
        weight.assign(RNG.normal(size=weight.shape) * 0.7)
    return layer


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_formula(layer, x, *, cell_clip, projection_clip):
    """One sequence (S, D) in float64, step by step and gate by gate -> (S, R)."""
    kernel, recurrent, bias, *projection = (np.asarray(w, "float64") for w in layer.weights)
    r, c, outputs = np.zeros(len(recurrent)), np.zeros(UNITS), []
    for x_t in x.astype("float64"):
        i, f, g, o = np.split(x_t @ kernel + r @ recurrent + bias, 4)
        c = sigmoid(i) * np.tanh(g) + sigmoid(f) * c
        c = c if cell_clip is None else np.clip(c, -cell_clip, cell_clip)
        r = sigmoid(o) * np.tanh(c)
        if projection:
            r = r @ projection[0]
            r = r if projection_clip is None else np.clip(r, -projection_clip, projection_clip)
        outputs.append(r)
    return np.array(outputs)


@pytest.mark.parametrize("projection_size", [SIZE, None])
def test_passes_the_layer_check(tmp_path, projection_size):
    check_layer(
        lambda **options: make(projection_size, backward=True, **options),
        inputs={"x": X, "input_mask": MASK},
        output_shape=(3, 6, projection_size or UNITS),
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"projection_size": None},
        {"projection_size": None, "cell_clip": 0.3},
        {"cell_clip": None, "projection_clip": 0.2},
        {"cell_clip": 0.3, "projection_clip": 0.2},
    ],
    ids=str,
)
def test_is_the_formula_in_both_directions(options, backward, training):
    layer = built(backward=backward, **options)
    outputs = np.asarray(layer(X, MASK, training=training))
    clips = {"cell_clip": None, "projection_clip": None, **options}
    clips.pop("projection_size", None)
    for x, y, length in zip(X, outputs, LENGTHS, strict=True):
        x = x[:length][::-1] if backward else x[:length]
        expected = by_formula(layer, x, **clips)
        expected = expected[::-1] if backward else expected
        np.testing.assert_allclose(y[:length], expected, atol=2e-6)


@pytest.mark.peers
@pytest.mark.only_tensorflow
@pytest.mark.parametrize("projection_size", [SIZE, None])
def test_values_and_gradients_are_those_of_pytorch(projection_size):
    import tensorflow as tf

    layer = built(projection_size=projection_size)
    their_layer = torch.nn.LSTM(5, UNITS, proj_size=projection_size or 0, batch_first=True)
    with torch.no_grad():
        kernel, recurrent, bias, *projection = (np.array(w) for w in layer.weights)
        their_layer.weight_ih_l0.copy_(torch.tensor(kernel.T))
        their_layer.weight_hh_l0.copy_(torch.tensor(recurrent.T))
        their_layer.bias_ih_l0.copy_(torch.tensor(bias))
        their_layer.bias_hh_l0.zero_()
        if projection:
            their_layer.weight_hr_l0.copy_(torch.tensor(projection[0].T))
    factor = RNG.normal(size=(3, 6, layer.output_size)).astype("float32")
    state = [RNG.normal(size=(3, n)).astype("float32") for n in (layer.output_size, UNITS)]
    x, given = torch.tensor(X, requires_grad=True), [torch.tensor(s[None]) for s in state]
    for tensor in given:
        tensor.requires_grad_()
    y, (_, c) = their_layer(x, tuple(given))
    ((y * torch.tensor(factor)).sum() + (c * c).sum()).backward()

    ours, initial = tf.constant(X), [tf.constant(s) for s in state]
    with tf.GradientTape() as tape:
        tape.watch([ours, *initial])
        outputs, (last, cell) = layer(ours, state=initial, return_state=True, training=True)
        loss = tf.reduce_sum(outputs * factor) + tf.reduce_sum(cell * cell)
    gradients = tape.gradient(loss, [*layer.trainable_variables, ours, *initial])
    np.testing.assert_allclose(outputs, y.detach(), atol=2e-6)
    np.testing.assert_array_equal(last, outputs[:, -1])
    expected = [
        their_layer.weight_ih_l0.grad.T,
        their_layer.weight_hh_l0.grad.T,
        their_layer.bias_ih_l0.grad,
    ]
    expected += [their_layer.weight_hr_l0.grad.T] if projection else []
    expected += [x.grad, *(tensor.grad[0] for tensor in given)]
    for one, other in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.only_tensorflow
def test_the_gradient_is_the_derived_one_where_values_are_clipped():
    import tensorflow as tf

    layer = built(cell_clip=0.4, projection_clip=0.3, backward=True)
    gradients = []
    for training in (True, False):  # without training the gradient is derived
        with tf.GradientTape() as tape:
            outputs = layer(X, MASK, training=training)
            loss = tf.reduce_sum(outputs * outputs * MASK[..., None])
        gradients.append(tape.gradient(loss, layer.trainable_variables))
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_state_continues_a_sequence():
    layer = built(cell_clip=1.0)
    whole = np.asarray(layer(X))
    first, state = layer(X[:, :2], return_state=True)
    rest = layer(X[:, 2:], state=state)
    np.testing.assert_allclose(np.concatenate([first, rest], axis=1), whole, atol=1e-6)


@pytest.mark.only_tensorflow
def test_another_recurrent_kernel_is_used_and_has_the_gradient():
    import tensorflow as tf

    layer = built()
    other = tf.constant(RNG.normal(size=layer.recurrent_kernel.shape), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(other)
        y = layer(X, recurrent_kernel=other, training=True)
        loss = tf.reduce_sum(y)
    used, unused = tape.gradient(loss, [other, layer.recurrent_kernel.value])
    assert unused is None and np.abs(used).max() > 0
    layer.recurrent_kernel.assign(other)
    np.testing.assert_array_equal(layer(X, training=True), y)


@pytest.mark.only_tensorflow
def test_a_compiled_graph_of_any_length_gives_the_same():
    import tensorflow as tf

    layer = built(backward=True, cell_clip=1.0)
    signature = [tf.TensorSpec((None, None, 5)), tf.TensorSpec((None, None), tf.int32)]
    run = tf.function(lambda x, mask: layer(x, mask, training=True), input_signature=signature)
    np.testing.assert_allclose(run(X, MASK), layer(X, MASK), atol=1e-6)
    by_xla = tf.function(lambda x: make_loss(layer, x), jit_compile=True)
    np.testing.assert_allclose(by_xla(tf.constant(X)), make_loss(layer, X), rtol=1e-5)


def make_loss(layer, x):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x, MASK, training=True) ** 2)
    return tf.linalg.norm(tape.gradient(loss, layer.recurrent_kernel.value))


def test_a_backward_layer_without_a_mask_is_rejected():
    with pytest.raises(ValueError, match="backward LSTM needs `input_mask`"):
        built(backward=True)(keras.ops.convert_to_tensor(X))
