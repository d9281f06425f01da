"""ScalarMix against equation 1 of Peters et al. 2018 in numpy, and its laws."""

import keras
import numpy as np
import pytest

from keras_bert.heads.reader import ScalarMix
from tests.seeds import make_rng, shifted

K, BATCH, LENGTH, WIDTH = 4, 3, 5, 8
EPSILON = 1e-6
RNG = make_rng(4)
# Means and scales that differ from layer to layer, so that LayerNorm matters.
STATES = [RNG.normal(k, 1 + k, (BATCH, LENGTH, WIDTH)).astype("float32") for k in range(K)]
SCORES = np.array([0.3, -1.2, 2.0, 0.1], "float32")
GAMMA = 1.7


def make(**changes):
    layer = ScalarMix(**{"num_layers": K, "layer_norm_eps": None, "l2": 0.0, **changes})
    layer.build([(None, None, WIDTH)] * K)
    layer.scores.assign(SCORES)
    layer.gamma.assign(GAMMA)
    return layer


def definition(states, *, layer_norm):
    fractions = np.exp(SCORES) / np.exp(SCORES).sum()
    if layer_norm:
        states = [
            (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + EPSILON)
            for h in states
        ]
    return GAMMA * sum(s * h for s, h in zip(fractions, states, strict=True))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_equals_the_definition(layer_norm):
    layer = make(layer_norm_eps=EPSILON if layer_norm else None)
    expected = definition(STATES, layer_norm=layer_norm)
    np.testing.assert_allclose(np.asarray(layer(STATES)), expected, atol=1e-5)
    np.testing.assert_allclose(
        layer.layer_weights, np.exp(SCORES) / np.exp(SCORES).sum(), atol=1e-6
    )


def test_a_new_mix_is_the_average():
    layer = ScalarMix(num_layers=K, layer_norm_eps=None, l2=0.0)
    np.testing.assert_allclose(np.asarray(layer(STATES)), np.mean(STATES, axis=0), atol=1e-5)


def test_only_differences_of_scores_count_and_gamma_scales():
    layer = make()
    before = np.asarray(layer(STATES))
    # A score of up to 60 rounds by 30 units, and so does its exponential.
    bound = {"rtol": 0, "atol": 64 * np.finfo("float32").eps * GAMMA * np.abs(STATES).sum(0).max()}
    layer.scores.assign(SCORES + 5)
    np.testing.assert_allclose(np.asarray(layer(STATES)), before, **bound)
    layer.gamma.assign(2 * GAMMA)
    np.testing.assert_allclose(np.asarray(layer(STATES)), 2 * before, **bound)
    layer.scores.assign(SCORES + np.array([0, 0, 60, 0]))
    np.testing.assert_allclose(np.asarray(layer(STATES)), 2 * GAMMA * STATES[2], **bound)


def test_layer_norm_makes_it_blind_to_each_layers_scale():
    layer = make(layer_norm_eps=1e-12)
    scaled = [h * 10.0 ** (k - 1) + k for k, h in enumerate(STATES)]
    difference = np.asarray(layer(scaled)) - np.asarray(layer(STATES))
    assert np.abs(difference).max() < 1e-4


def test_a_text_does_not_depend_on_its_neighbours():
    layer = make(layer_norm_eps=EPSILON)
    alone = np.asarray(layer([h[1:2, :3] for h in STATES]))
    np.testing.assert_allclose(np.asarray(layer(STATES))[1:2, :3], alone, atol=1e-6)


def fitted_fractions(l2, steps=40):
    """The shares after training a mix to give its third layer."""
    keras.utils.set_random_seed(shifted(1))
    inputs = [keras.Input((None, WIDTH)) for _ in range(K)]
    layer = ScalarMix(num_layers=K, layer_norm_eps=None, l2=l2)
    model = keras.Model(inputs, layer(inputs))
    model.compile(
        optimizer=keras.optimizers.Adam(0.2),
        loss="mse",
        jit_compile=keras.backend.backend() == "jax",
    )
    repeated = [np.tile(h, (steps, 1, 1)) for h in STATES]
    model.fit(repeated, repeated[2], batch_size=BATCH, verbose=0)
    return layer.layer_weights


def test_learns_which_layer_serves_and_l2_pulls_toward_the_average():
    free, weak, strong = (fitted_fractions(l2) for l2 in (0.0, 1.0, 1000.0))
    assert free[2] > 0.8
    assert free[2] > weak[2] + 0.01 > strong[2] + 0.02
    np.testing.assert_allclose(strong, 1 / K, atol=0.02)


def test_the_penalty_is_lambda_times_the_squared_norm():
    layer = make(l2=0.01)
    layer(STATES)
    (penalty,) = layer.losses
    assert float(penalty) == pytest.approx(0.01 * float((SCORES**2).sum()), rel=1e-5)
    assert make(l2=0.0).losses == []


def test_in_half_precision_the_fractions_stay_whole():
    layer = make(layer_norm_eps=EPSILON, dtype="mixed_bfloat16")
    mix = layer(STATES)
    assert keras.backend.standardize_dtype(mix.dtype) == "bfloat16"
    assert {w.dtype for w in layer.weights} == {"float32"}
    assert abs(float(layer.layer_weights.sum()) - 1) < 1e-6
    expected = definition(STATES, layer_norm=True)
    mix = np.asarray(keras.ops.cast(mix, "float32"))
    assert np.abs(mix - expected).max() < 0.03 * np.abs(expected).max()


def test_comes_back_from_a_saved_model(tmp_path):
    inputs = [keras.Input((None, WIDTH)) for _ in range(K)]
    layer = make(layer_norm_eps=EPSILON, l2=0.5)
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "mix.keras")
    loaded = keras.saving.load_model(tmp_path / "mix.keras")
    np.testing.assert_array_equal(np.asarray(loaded(STATES)), np.asarray(model(STATES)))
    assert loaded.losses


@pytest.mark.parametrize(
    "states", [STATES[:3], [*STATES, STATES[0]], [*STATES[:3], STATES[3][:, :4]]]
)
def test_rejects_another_number_of_layers_or_other_shapes(states):
    with pytest.raises(ValueError, match="Received"):
        make()(states)


@pytest.mark.parametrize("changes", [{"num_layers": 0}, {"l2": -0.1}])
def test_rejects_settings_that_cannot_be(changes):
    with pytest.raises(ValueError, match="Received"):
        ScalarMix(**{"num_layers": K, "layer_norm_eps": None, "l2": 0.0, **changes})
