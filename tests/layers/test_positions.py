"""Positions in attention against their formulas in float64."""

import math

import keras
import numpy as np
import pytest

from keras_bert.layers.layout import Layout
from keras_bert.layers.positions import DistanceBias, RotaryPositions
from keras_bert.layers.self_attention import SelfAttention
from tests.seeds import make_rng

RNG = make_rng(5)


@pytest.mark.parametrize("theta", [10_000.0, 160_000.0])
def test_pairs_of_units_turn_by_an_angle_per_position(theta):
    x = RNG.normal(size=(2, 3, 5, 8))
    positions = RNG.integers(0, 9_000, size=(2, 1, 5))
    y = np.asarray(RotaryPositions(theta=theta).encode(x.astype("float32"), positions))
    pairs = x[..., :4] + 1j * x[..., 4:]
    angles = positions[..., None] * theta ** (-np.arange(4) / 4)
    turned = pairs * np.exp(1j * angles)
    expected = np.concatenate([turned.real, turned.imag], axis=-1)
    np.testing.assert_allclose(y, expected, atol=4e-3)  # angles of thousands in float32
    y = np.asarray(RotaryPositions(theta=theta).encode(x.astype("float32"), positions % 10))
    turned = pairs * np.exp(1j * (positions % 10)[..., None] * theta ** (-np.arange(4) / 4))
    expected = np.concatenate([turned.real, turned.imag], axis=-1)
    np.testing.assert_allclose(y, expected, atol=5e-6)


def test_a_score_of_turned_vectors_depends_on_their_distance_alone():
    rotary = RotaryPositions(theta=100.0)
    query, key = RNG.normal(size=(2, 8)).astype("float32")

    def score(first, second):
        first, second = np.array(first), np.array(second)
        return np.asarray(rotary.encode(query, first)) @ np.asarray(rotary.encode(key, second))

    np.testing.assert_allclose(score(3, 1), score(12, 10), atol=1e-5)
    assert abs(score(3, 1) - score(1, 3)) > 1e-2


def bucket(distance, num_buckets, farthest):
    """T5's, one distance at a time."""
    half = num_buckets // 2
    single = half // 2
    side = half if distance < 0 else 0
    size = abs(distance)
    if size < single:
        return side + size
    growth = math.log(size / single) / math.log(farthest / single) * (half - single)
    return side + min(single + int(growth), half - 1)


def test_distances_share_buckets_as_in_t5():
    layer = DistanceBias(num_buckets=32, num_heads=2, farthest=128, initializer_range=1.0)
    # The bounds of ranges are where a logarithm is a whole number, which rounding decides.
    distances = np.array([d for d in range(-300, 301) if abs(d) not in (16, 32, 64, 128)])
    expected = [bucket(d, 32, 128) for d in distances]
    np.testing.assert_array_equal(np.asarray(layer.bucket(distances)), expected)
    assert {*expected} == {*range(32)} - {16}  # distance 0 has a bucket of its own


def test_a_bias_is_added_for_each_head_and_distance():
    positions = DistanceBias(num_buckets=8, num_heads=2, farthest=6, initializer_range=1.0)
    positions.build()
    sizes = {"hidden_size": 8, "num_heads": 2, "initializer_range": 0.5}
    layer = SelfAttention(positions=positions, dropout=0.0, output_dropout=0.0, **sizes)
    plain = SelfAttention(dropout=0.0, output_dropout=0.0, **sizes)
    x = keras.ops.convert_to_tensor(RNG.normal(size=(2, 5, 8)).astype("float32"))
    layout = Layout(input_mask=np.ones((2, 5), "int32"), causal=False)
    for one in (layer, plain):
        one.build()
    plain.set_weights(layer.get_weights())
    assert len(layer.weights) == 4  # the table is the encoder's
    given = layout.unpad(x)
    probabilities = layer(given, layout=layout, return_probabilities=True)[1]
    before = np.log(np.asarray(plain(given, layout=layout, return_probabilities=True)[1]))
    table = np.asarray(positions.table.embeddings)
    bias = np.array(
        [[[table[bucket(i - j, 8, 6), h] for j in range(5)] for i in range(5)] for h in range(2)]
    )
    weights = np.exp(before + bias)
    expected = weights / weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(probabilities), expected, atol=1e-6)
