"""Each pooling against numpy."""

import keras
import numpy as np
import pytest

from keras_bert.heads.pooling import POOLINGS, encoder_outputs, pooled
from tests.seeds import make_rng

RNG = make_rng(7)
HIDDEN = RNG.normal(size=(4, 6, 3)).astype("float32") - 2  # its greatest values are negative
# Padding at the end, at the start and in between; a row of one token, and a full one.
MASK = np.array(
    [[1, 1, 1, 0, 0, 0], [0, 1, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]], "int32"
)
PARTS = {
    "cls": lambda row, tokens: row[0],
    "mean": lambda row, tokens: row[tokens].mean(0),
    "last": lambda row, tokens: row[tokens][-1],
    "max": lambda row, tokens: row[tokens].max(0),
}
NAMES = {
    "cls": ["cls"],
    "mean": ["mean"],
    "both": ["cls", "mean"],
    "last": ["last"],
    "max": ["max"],
    "last+max+mean": ["last", "max", "mean"],
}


def encoded(hidden, pooling):
    """The outputs of an encoder that the pooling needs."""
    outputs = {"sequence_output": hidden, "first_output": hidden[:, 0]}
    return {name: outputs[name] for name in encoder_outputs(pooling)}


def test_these_are_all():
    assert set(NAMES) == set(POOLINGS)


@pytest.mark.parametrize("pooling", NAMES)
@pytest.mark.parametrize("dtype", ["int32", "bool", "float32"])
def test_is_what_its_name_says(pooling, dtype):
    vectors = pooled(
        encoded(keras.ops.convert_to_tensor(HIDDEN), pooling),
        keras.ops.convert_to_tensor(MASK.astype(dtype)),
        pooling=pooling,
        transform=None,
    )
    expected = [
        np.concatenate([PARTS[name](row, mask > 0) for name in NAMES[pooling]])
        for row, mask in zip(HIDDEN, MASK, strict=True)
    ]
    np.testing.assert_allclose(np.asarray(vectors), expected, atol=1e-6)


@pytest.mark.parametrize("pooling", NAMES)
def test_the_transform_is_for_the_first_token_alone(pooling):
    hidden = keras.ops.convert_to_tensor(HIDDEN)
    options = {"mask": keras.ops.convert_to_tensor(MASK), "pooling": pooling}
    plain = np.asarray(pooled(encoded(hidden, pooling), transform=None, **options))
    vectors = np.asarray(pooled(encoded(hidden, pooling), transform=lambda x: 10 * x, **options))
    factors = np.concatenate([np.full(3, 10 if name == "cls" else 1) for name in NAMES[pooling]])
    np.testing.assert_allclose(vectors, plain * factors, rtol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "last", "max", "last+max+mean"])
def test_a_row_without_a_token_has_zeros(pooling):
    hidden = keras.ops.convert_to_tensor(HIDDEN)
    mask = keras.ops.convert_to_tensor(MASK * np.array([[1], [0], [1], [1]], "int32"))
    options = {"pooling": pooling, "transform": None}
    vectors = np.asarray(pooled(encoded(hidden, pooling), mask, **options))
    assert not vectors[1].any() and vectors[[0, 2, 3]].any()


@pytest.mark.parametrize("pooling", NAMES)
def test_padding_does_not_count(pooling):
    """Its values are undefined, and any may be there but those that are no numbers."""
    rubbish = np.where(MASK[..., None] > 0, HIDDEN, 1e6).astype("float32")
    rubbish[1, 0] = HIDDEN[1, 0]  # the first token, whatever the mask says of it
    options = {"mask": keras.ops.convert_to_tensor(MASK), "pooling": pooling, "transform": None}
    vectors, expected = (
        np.asarray(pooled(encoded(keras.ops.convert_to_tensor(hidden), pooling), **options))
        for hidden in (rubbish, HIDDEN)
    )
    np.testing.assert_array_equal(vectors, expected)


def test_a_mean_in_half_precision_is_summed_in_single():
    """In bfloat16, 256 and 1 are 256 together."""
    hidden = np.ones((1, 600, 2), "float32")
    hidden[:, ::2] = 1.5
    x = keras.ops.cast(keras.ops.convert_to_tensor(hidden), "bfloat16")
    mask = keras.ops.ones((1, 600), "int32")
    vectors = pooled({"sequence_output": x}, mask, pooling="mean", transform=None)
    assert keras.backend.standardize_dtype(vectors.dtype) == "bfloat16"
    np.testing.assert_array_equal(np.asarray(keras.ops.cast(vectors, "float32")), [[1.25, 1.25]])


@pytest.mark.parametrize(
    "pooling, outputs",
    [
        ("cls", ("first_output",)),
        ("both", ("first_output", "sequence_output")),
        ("mean", ("sequence_output",)),
        ("last+max+mean", ("sequence_output",)),
    ],
)
def test_asks_the_encoder_for_no_more_than_it_needs(pooling, outputs):
    """For the first token alone the encoder's last layer skips the others."""
    assert encoder_outputs(pooling) == outputs
