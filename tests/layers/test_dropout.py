import keras
import numpy as np
import pytest

from keras_bert.layers.elementwise import Dropout
from tests.layer_checks import check_layer
from tests.seeds import shifted


def test_passes_the_layer_check(tmp_path):
    check_layer(
        lambda **options: Dropout(rate=0.4, **options),
        inputs={"x": np.ones((2, 5), "float32")},
        output_shape=(2, 5),
        tmp_path=tmp_path,
        trains=False,
    )


@pytest.mark.parametrize("shape", [(300, 7, 51), (301, 7, 51), (1000, 100), (100_000,)])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_drops_its_fraction_and_keeps_the_expectation(shape, rate):
    x = np.full(shape, 3.0, "float32")
    y = np.asarray(Dropout(rate=rate, seed=shifted(1))(x, training=True))
    dropped, remaining = (y == 0), y[y != 0]
    n = x.size
    # Six standard deviations of a binomial.
    assert abs(dropped.mean() - rate) < 6 * np.sqrt(rate * (1 - rate) / n)
    assert remaining.max() - remaining.min() < 1e-6
    # The scale is that of the fraction really dropped, a multiple of 1/65536.
    assert abs(remaining[0] / 3.0 - 1 / (1 - round(rate * 65536) / 65536)) < 1e-6


def test_neighbours_that_share_a_draw_are_independent():
    layer = Dropout(rate=0.5, seed=shifted(2))
    y = np.asarray(layer(np.ones((40_000, 2), "float32"), training=True))
    both = (y == 0).all(axis=1).mean()
    assert abs(both - 0.25) < 6 * np.sqrt(0.25 * 0.75 / 40_000)
    rows = (y[:-1, 1] == 0) & (y[1:, 0] == 0)
    assert abs(rows.mean() - 0.25) < 6 * np.sqrt(0.25 * 0.75 / 40_000)


def test_draws_anew_each_time_and_again_from_the_same_seed():
    x = np.ones((50, 50), "float32")
    one, other = Dropout(rate=0.3, seed=shifted(3)), Dropout(rate=0.3, seed=shifted(3))
    first, second = (np.asarray(one(x, training=True)) for _ in range(2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, np.asarray(other(x, training=True)))


@pytest.mark.only_tensorflow
def test_a_compiled_program_draws_the_same():
    """It is the same generator; the one that TensorFlow prefers for XLA crawls on a CPU."""
    import tensorflow as tf

    one, other = Dropout(rate=0.3, seed=shifted(3)), Dropout(rate=0.3, seed=shifted(3))
    x = tf.ones((40, 50))
    plain = tf.function(lambda: one(x, training=True))()
    compiled = tf.function(lambda: other(x, training=True), jit_compile=True)()
    np.testing.assert_array_equal(np.asarray(plain), np.asarray(compiled))


def test_does_nothing_outside_training_or_at_rate_zero():
    x = np.ones((5, 5), "float32")
    np.testing.assert_array_equal(np.asarray(Dropout(rate=0.5)(x)), x)
    np.testing.assert_array_equal(np.asarray(Dropout(rate=0.0)(x, training=True)), x)
    assert not Dropout(rate=0.0).variables


def test_the_gradient_passes_where_the_value_did():
    before, after = (
        keras.layers.Dense(units, use_bias=False, kernel_initializer="ones") for units in (200, 1)
    )
    model = keras.Sequential([keras.Input((1,)), before, Dropout(rate=0.5, seed=shifted(4)), after])
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=lambda y, p: keras.ops.sum(p))
    model.fit(np.ones((1, 1), "float32"), np.zeros((1, 1), "float32"), verbose=0)
    # The gradient of the kernel behind the dropout is what came through it, nothing or twice the
    # ones; that of the kernel before it is what its gradient lets through.
    value, gradient = (1 - np.ravel(layer.kernel) for layer in (after, before))
    assert set(value) == {0.0, 2.0}
    np.testing.assert_array_equal(gradient, value)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_other_rates_are_rejected(rate):
    with pytest.raises(ValueError, match="rate"):
        Dropout(rate=rate)
