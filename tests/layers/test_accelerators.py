"""The forms for a GPU or TPU are the plain formulas, in value and gradient."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert.layers.dense import ACTIVATIONS
from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.kernels.accelerators import at_positions, look_up, projected, sums_by_id
from keras_bert.layers.kernels.cross_entropy import cross_entropies
from keras_bert.layers.kernels.program import for_gpu, is_for_accelerator
from tests.seeds import make_rng

RNG = make_rng(4)


def compiled(function, *arguments):
    """The result of XLA's program of a function for arrays."""
    if keras.backend.backend() == "jax":
        import jax

        return keras.tree.map_structure(np.asarray, jax.jit(function)(*arguments))
    import tensorflow as tf

    run = tf.function(function, jit_compile=True, autograph=False)
    return keras.tree.map_structure(np.asarray, run(*map(tf.constant, arguments)))


def with_gradients(function, upstream, *arguments):
    """[y, the gradient of each argument], compiled; `function` returns y."""

    def run(upstream, *arguments):
        if keras.backend.backend() == "jax":
            import jax

            y, backward = jax.vjp(function, *arguments)
            return [y, *backward(ops.cast(upstream, y.dtype))]
        import tensorflow as tf

        y = function(*arguments)
        gradients = tf.gradients(y, arguments, ops.cast(upstream, y.dtype))
        return [y, *map(tf.convert_to_tensor, gradients)]

    return [np.asarray(x, "float32") for x in compiled(run, upstream, *arguments)]


def normal(*shape):
    return RNG.normal(size=shape).astype("float32")


def rounded(x):
    """Rounds to bfloat16."""
    return np.array(ops.cast(ops.cast(x, "bfloat16"), "float32"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("count", [2, 1000])  # a product, and sorted ids
def test_a_lookup_s_gradient_is_the_float32_sum_of_each_id_s(count, dtype):
    table, upstream = normal(count, 8), rounded(normal(3, 33, 8))
    ids = np.minimum(RNG.geometric(0.1, (3, 33)) - 1, count - 1).astype("int32")
    y, gradient = with_gradients(lambda t: look_up(t, ids, dtype=dtype), upstream, table)
    np.testing.assert_array_equal(y, rounded(table)[ids] if dtype == "bfloat16" else table[ids])
    expected = np.zeros_like(table)
    np.add.at(expected, ids, upstream)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
def test_sums_by_id_are_those_of_any_number_of_rows(rows):
    x, ids = normal(rows, 3), RNG.integers(1, 5, rows).astype("int32")
    expected = np.zeros((6, 3), "float32")
    np.add.at(expected, ids, x)
    np.testing.assert_allclose(
        compiled(lambda a, b: sums_by_id(a, b, 6), x, ids), expected, atol=1e-5
    )


@pytest.mark.parametrize("predictions", [4, 9])  # fewer than tokens, and more
def test_vectors_at_positions_may_be_read_twice(predictions):
    hidden, upstream = normal(2, 6, 8), normal(2, predictions, 8)
    positions = RNG.integers(0, 6, (2, predictions)).astype("int32")
    y, gradient = with_gradients(lambda x: at_positions(x, positions), upstream, hidden)
    rows = np.arange(2)[:, None]
    np.testing.assert_array_equal(y, hidden[rows, positions])
    expected = np.zeros_like(hidden)
    np.add.at(expected, (rows, positions), upstream)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


def test_products_with_a_table_have_float32_results_of_short_operands():
    x, table, upstream = rounded(normal(5, 8)), rounded(normal(11, 8)), rounded(normal(5, 11))
    short = lambda x, table: projected(ops.cast(x, "bfloat16"), table)  # noqa: E731
    y, d_x, d_table = with_gradients(short, upstream, x, table)
    np.testing.assert_allclose(y, x @ table.T, atol=1e-5)
    np.testing.assert_allclose(d_table, upstream.T @ x, atol=1e-5)
    np.testing.assert_allclose(d_x, upstream @ table, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize(
    "block, has_bias",
    [
        (1024, False),
        (16, True),
        pytest.param(1024, True, marks=pytest.mark.slow),
        pytest.param(16, False, marks=pytest.mark.slow),
    ],
)
def test_the_cross_entropy_by_blocks_is_that_of_all_logits(block, has_bias):
    x, table, upstream = normal(33, 8), normal(90, 8), normal(33)
    bias, labels = normal(90) * has_bias, RNG.integers(0, 90, 33).astype("int32")

    def by_blocks(x, table, bias):
        given = bias if has_bias else None
        nats, _ = cross_entropies(x, table, given, labels, block=block)
        return nats + 0 * ops.sum(bias)

    def plain(x, table, bias):
        logits = ops.matmul(x, ops.transpose(table)) + has_bias * bias
        return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)

    arguments = (upstream, x, table, bias)
    for actual, expected in zip(
        with_gradients(by_blocks, *arguments), with_gradients(plain, *arguments), strict=True
    ):
        np.testing.assert_allclose(actual, expected, atol=2e-5)


def test_of_equal_logits_the_first_is_most_probable():
    labels = np.array([0, 1, 2], "int32")
    table = np.array([[0.0], [1.0], [1.0]], "float32")
    function = lambda x, y: cross_entropies(x, y, None, labels)[1]  # noqa: E731
    np.testing.assert_array_equal(compiled(function, np.ones((3, 1), "float32"), table), [0, 1, 0])


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("bfloat16", 0.03)])
@pytest.mark.parametrize("name", ["gelu", "gelu_new"])
def test_a_recomputed_activation_has_the_same_gradient(name, dtype, tolerance):
    x, upstream = rounded(normal(3, 50) * 2), rounded(normal(3, 50))

    def activated(x):
        y = ACTIVATIONS[name](ops.cast(x, dtype), training=True)
        assert keras.backend.standardize_dtype(y.dtype) == dtype
        return y

    plain = with_gradients(activated, upstream, x)
    with for_gpu():
        recomputed = with_gradients(activated, upstream, x)
    for actual, expected in zip(recomputed, plain, strict=True):
        np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("mixed_bfloat16", 0.03)])
def test_a_recomputed_norm_has_the_same_gradient(dtype, tolerance):
    norm = LayerNorm(epsilon=1e-12, dtype=dtype)
    x, upstream = rounded(normal(3, 5, 8) * 3 + 1), rounded(normal(3, 5, 8))
    norm.build(x.shape)
    norm.gamma.assign(normal(8))

    def normed(x):
        return norm(ops.cast(x, norm.compute_dtype))

    plain = with_gradients(normed, upstream, x)
    with for_gpu():
        recomputed = with_gradients(normed, upstream, x)
    for actual, expected in zip(recomputed, plain, strict=True):
        np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=tolerance)


def test_the_forms_are_for_programs_of_xla_on_an_accelerator():
    on_jax = keras.backend.backend() == "jax"
    assert not is_for_accelerator()
    with for_gpu():
        assert is_for_accelerator() == on_jax  # TensorFlow compiles nothing here
        assert compiled(lambda x: x + is_for_accelerator(), np.zeros(1, "float32")) == [1]
