import keras
import numpy as np
import pytest

from keras_bert.layers.elementwise import LayerNorm
from tests.layer_checks import check_layer
from tests.seeds import make_rng

RNG = make_rng(9)
X = (RNG.normal(size=(2, 3, 8)) * 3 + 1).astype("float32")


def test_passes_the_layer_check(tmp_path):
    check_layer(
        lambda **options: LayerNorm(epsilon=1e-12, **options),
        inputs={"x": X},
        output_shape=(2, 3, 8),
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("epsilon", [1e-12, 0.5])
def test_is_keras_own_in_value_and_gradient(epsilon):
    """One training step moves both layers, and what comes before them, by the same amount."""
    gamma, beta, kernel = (RNG.normal(size=s).astype("float32") for s in (8, 8, (8, 8)))
    targets = RNG.normal(size=(2, 3, 8)).astype("float32")
    after = []
    for norm in (LayerNorm(epsilon=epsilon), keras.layers.LayerNormalization(epsilon=epsilon)):
        dense = keras.layers.Dense(8, use_bias=False)
        model = keras.Sequential([keras.Input((3, 8)), dense, norm])
        dense.kernel.assign(kernel)
        norm.gamma.assign(gamma)
        norm.beta.assign(beta)
        value, old = np.asarray(model(X)), (kernel, gamma, beta)
        model.compile(optimizer=keras.optimizers.SGD(1.0), loss="mse")
        model.fit(X, targets, verbose=0)
        moved = [np.asarray(w.value) - before for w, before in zip(model.weights, old, strict=True)]
        after.append([value, *moved])
    for our_array, keras_array in zip(*after, strict=True):
        np.testing.assert_allclose(our_array, keras_array, atol=2e-6)


def test_statistics_are_taken_in_float32():
    """In bfloat16 a mean of 1,000 would drown differences of 1."""
    x = (RNG.normal(size=(4, 64)) + 1000).astype("float32")
    mixed = LayerNorm(epsilon=1e-12, dtype="mixed_bfloat16")
    y = np.asarray(keras.ops.cast(mixed(x), "float32"))
    expected = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    assert np.abs(y - expected).max() < 0.02
