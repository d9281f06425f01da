"""Attention with a window works on blocks of long rows, and equals that of whole rows."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert.layers import layout as module
from keras_bert.layers.layout import Layout
from keras_bert.layers.positions import DistanceBias, RotaryPositions
from keras_bert.layers.self_attention import SelfAttention
from tests.seeds import make_rng, shifted

RNG = make_rng(11)
BATCH, SIZE = 2, 8


def make(window, **options):
    positions = RotaryPositions(theta=100.0)
    sizes = {"hidden_size": SIZE, "num_heads": 2, "initializer_range": 0.5}
    options = {"dropout": 0.0, "output_dropout": 0.0, "positions": positions, **options}
    layer = SelfAttention(**sizes, **options, window=window)
    layer.build()
    return layer


def rows_of(length, *, packed):
    """Arguments of a `Layout`: a whole row and one with padding, or rows of several sequences."""
    index = np.arange(length)
    if packed:
        ends = np.array(
            [[length // 3, length // 2, length], [1, length // 2, length - length // 4]]
        )
        ids = (index >= ends[..., None]).sum(axis=1) + 1
        return {"sequence_ids": np.where(index < ends[:, -1:], ids, 0).astype("int32")}
    return {"input_mask": (index < [[length], [length - length // 4]]).astype("int32")}


@pytest.fixture
def whole_rows(monkeypatch):
    """A function that computes what it is given with the mask of whole rows."""

    def compute(function, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(module, "_FEWEST_BLOCKS", 10**6)
            return function(*arguments)

    return compute


def result(layer, x, causal, **rows):
    """A layer's output at tokens, 0 elsewhere: (B, S, D)."""
    layout = Layout(**rows, causal=causal)
    y = layout.pad(layer(layout.unpad(x), layout=layout, training=False))
    return ops.where(layout.is_token[..., None], y, 0)


def with_gradients(layer, x, causal, rows):
    """The output, and the gradients of a sum of it for x and each weight, of the size 1."""
    directions = make_rng(1).normal(size=x.shape).astype("float32")

    def loss(x, weights):
        pairs = zip(layer.trainable_variables, weights, strict=True)
        with keras.StatelessScope(state_mapping=list(pairs)):
            y = result(layer, x, causal, **rows)
        return ops.sum(ops.cast(y, "float32") * directions), y

    weights = [ops.copy(variable) for variable in layer.trainable_variables]
    x = ops.convert_to_tensor(x)
    if keras.backend.backend() == "jax":
        import jax

        (_, y), of = jax.jit(jax.value_and_grad(loss, argnums=(0, 1), has_aux=True))(x, weights)
        gradients = [of[0], *of[1]]
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch([x, *weights])
            total, y = loss(x, weights)
        gradients = tape.gradient(total, [x, *weights])
    arrays = [np.asarray(ops.cast(array, "float32")) for array in (y, *gradients)]
    return [arrays[0], *(array / np.abs(array).max() for array in arrays[1:])]


CASES = [
    # Whole blocks, not whole ones, with blocks as wide as the window, and one less than four.
    *[(4, 128, 4), (4, 150, 5), (20, 177, 5), (4, 127, None), (200, 150, None)],
    *[(0, 131, 5), (17, 136, 4)],
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window, length, count", CASES)
def test_outputs_and_gradients_are_those_of_the_mask(
    window, length, count, causal, packed, whole_rows
):
    rows = rows_of(length, packed=packed)
    blocks = Layout(**rows, causal=causal).blocks(window)
    assert (blocks if count is None else blocks.positions.shape[0]) == (count and count * BATCH)
    if count is None:
        return
    layer = make(window)
    x = RNG.normal(size=(BATCH, length, SIZE)).astype("float32")
    arrays = with_gradients(layer, x, causal, rows)
    expected = whole_rows(with_gradients, layer, x, causal, rows)
    for array, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array, wanted, atol=1e-5, rtol=0)


def root_mean_square(arrays):
    return np.sqrt(np.mean(np.square(np.stack([np.asarray(a, "float32") for a in arrays]))))


@pytest.mark.parametrize("packed", [False, True])
def test_in_bfloat16_they_are_as_near_to_those_in_float32(packed, whole_rows):
    """Over four draws, since the error of one is that of a few sums that cancel.

    Of 720 such errors, with and without oneDNN's kernels, none is above 1.17 times that of whole
    rows, nor above four of bfloat16's roundings (2^-8) of the largest element.
    """
    errors = []
    for seed in range(4):
        keras.utils.set_random_seed(shifted(seed))
        rows = rows_of(150, packed=packed)
        x = make_rng(seed).normal(size=(BATCH, 150, SIZE)).astype("float32")
        layer, short = make(4), make(4, dtype="mixed_bfloat16")
        short.set_weights(layer.get_weights())
        exact = [np.asarray(a) for a in whole_rows(with_gradients, layer, x, False, rows)]
        x = ops.cast(x, "bfloat16")
        whole = whole_rows(with_gradients, short, x, False, rows)
        ours = with_gradients(short, x, False, rows)
        errors.append(
            [
                (ops.cast(a, "float32") - e, ops.cast(w, "float32") - e, np.abs(e).max())
                for a, w, e in zip(ours, whole, exact, strict=True)
            ]
        )
    for errors_of_array in zip(*errors, strict=True):
        ours, whole, sizes = zip(*errors_of_array, strict=True)
        assert root_mean_square(ours) <= 1.3 * root_mean_square(whole)
        assert root_mean_square(ours) <= 8 * 2**-8 * max(sizes)


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("packed", [False, True])
def test_a_graph_of_any_length_has_blocks_where_rows_are_long(packed, jit_compile, whole_rows):
    import tensorflow as tf

    layer, name = make(4), "sequence_ids" if packed else "input_mask"
    signature = [tf.TensorSpec([None, None, SIZE]), tf.TensorSpec([None, None], tf.int32)]

    @tf.function(input_signature=signature, autograph=False, jit_compile=jit_compile)
    def in_graph(x, ids):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = result(layer, x, False, **{name: ids})
        gradient = tape.gradient(y, x)
        return y, gradient / tf.reduce_max(tf.abs(gradient))

    for length in (3, 150) if jit_compile else (2, 127, 128, 150):
        x = RNG.normal(size=(BATCH, length, SIZE)).astype("float32")
        ids = rows_of(length, packed=packed)[name]
        expected = whole_rows(in_graph.python_function, tf.constant(x), tf.constant(ids))
        for array, wanted in zip(in_graph(x, ids), expected, strict=True):
            np.testing.assert_allclose(array, wanted, atol=1e-5, rtol=0)


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("packed", [False, True])
def test_memory_grows_with_the_length(packed):
    """No tensor of a step, and of its gradient, has more than a number of elements per token."""
    import tensorflow as tf

    layer = make(16)

    def largest(length):
        @tf.function(autograph=False)
        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = result(layer, x, False, **rows_of(length, packed=packed))
            return tape.gradient(y, [x, layer.query_key_value.kernel.value])

        graph = step.get_concrete_function(tf.TensorSpec([BATCH, length, SIZE])).graph
        shapes = [output.shape for op in graph.get_operations() for output in op.outputs]
        # The number of rows without padding is known only when the graph runs.
        return max(shape.num_elements() for shape in shapes if shape.is_fully_defined())

    assert largest(2048) == 2 * largest(1024)


@pytest.mark.parametrize("options", [{"cls_only": True}, {"return_probabilities": True}])
def test_a_single_query_and_probabilities_are_of_whole_rows(options):
    """(B, N, 1, S) and (B, N, S, S)."""
    layer, x = make(4), RNG.normal(size=(BATCH, 150, SIZE)).astype("float32")
    layout = Layout(**rows_of(150, packed=True), causal=False)
    every = layout.pad(layer(layout.unpad(ops.convert_to_tensor(x)), layout=layout))
    y = layer(layout.unpad(ops.convert_to_tensor(x)), layout=layout, **options)
    if "cls_only" in options:
        np.testing.assert_allclose(y, np.asarray(every)[:, 0], atol=1e-5)
        return
    y, probabilities = y
    assert probabilities.shape == (BATCH, 2, 150, 150)
    is_token = np.asarray(layout.is_token)
    np.testing.assert_allclose(
        np.asarray(layout.pad(y))[is_token], np.asarray(every)[is_token], atol=1e-5
    )


def test_a_bias_of_distances_is_of_whole_rows():
    positions = DistanceBias(num_buckets=8, num_heads=2, farthest=6, initializer_range=1.0)
    positions.build()
    layer, x = make(4, positions=positions), np.ones((BATCH, 150, SIZE), "float32")
    layout = Layout(**rows_of(150, packed=False), causal=False)
    options = {"layout": layout, "return_probabilities": True}
    y = layer(layout.unpad(ops.convert_to_tensor(x)), layout=layout)
    expected, _ = layer(layout.unpad(ops.convert_to_tensor(x)), **options)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(expected))


def test_dropout_of_the_probabilities_is_that_of_the_layer():
    """Each of the few keys that a query sees is left out as often as the rate says."""
    layer = make(1, dropout=0.5, positions=None, use_bias=True)
    layer.query_key_value.kernel.assign(np.zeros((SIZE, 3 * SIZE)))
    layer.query_key_value.bias.assign(np.repeat([0, 0, 1], SIZE))  # equal scores, values of 1
    layer.projection.kernel.assign(np.eye(SIZE))
    x = ops.zeros((16, 256, SIZE))
    layout = Layout(input_mask=np.ones((16, 256), "int32"), causal=False)
    y = layout.pad(layer(layout.unpad(x), layout=layout, training=True))
    thirds = np.asarray(y)[:, 1:-1] * 1.5  # of three keys
    np.testing.assert_allclose(thirds, np.round(thirds), atol=1e-5)
    # 16 * 254 * 2 queries of three keys: six standard deviations are 0.02.
    assert abs(thirds.mean() / 3 - 0.5) < 0.02
