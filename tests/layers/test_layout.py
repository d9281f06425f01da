import keras
import numpy as np
import pytest

from keras_bert.layers.layout import Layout
from tests.seeds import make_rng

INPUT_MASK = np.array([[1, 1, 0], [1, 1, 1]], "int32")
SEQUENCE_IDS = np.array([[1, 1, 2, 2, 2, 0], [5, 3, 3, 0, 0, 0]], "int32")


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_padding_is_seen_by_nobody(dtype):
    layout = Layout(input_mask=INPUT_MASK.astype(dtype), causal=False)
    mask = np.asarray(layout.mask())
    assert mask.shape == (2, 1, 1, 3) and mask.dtype == bool
    np.testing.assert_array_equal(mask[:, 0, 0], INPUT_MASK.astype(bool))
    np.testing.assert_array_equal(np.asarray(layout.is_token), INPUT_MASK.astype(bool))
    assert layout.causal is False and not layout.is_packed
    np.testing.assert_array_equal(np.asarray(layout.positions), [[0, 1, 2]])


def test_causal_also_hides_what_comes_after():
    layout = Layout(input_mask=INPUT_MASK, causal=True)
    mask = np.asarray(layout.mask())
    assert mask.shape == (2, 1, 3, 3) and mask.dtype == bool
    np.testing.assert_array_equal(mask[0, 0], [[1, 0, 0], [1, 1, 0], [1, 1, 0]])
    np.testing.assert_array_equal(mask[1, 0], [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    assert layout.causal is True and not layout.is_packed


def test_each_sequence_sees_itself_and_counts_from_zero():
    layout = Layout(sequence_ids=SEQUENCE_IDS, causal=False)
    mask, positions = np.asarray(layout.mask()), np.asarray(layout.positions)
    assert mask.shape == (2, 1, 6, 6) and mask.dtype == bool
    assert positions.shape == (2, 6) and positions.dtype == np.int32
    tokens = SEQUENCE_IDS != 0
    np.testing.assert_array_equal(np.asarray(layout.is_token), tokens)
    np.testing.assert_array_equal(positions[tokens], [0, 1, 0, 1, 2, 0, 0, 1])
    for row, ids in enumerate(SEQUENCE_IDS):
        for i in range(6):
            for j in range(6):
                assert mask[row, 0, i, j] == (ids[i] == ids[j] != 0)


def test_a_causal_sequence_sees_only_back():
    mask = Layout(sequence_ids=SEQUENCE_IDS, causal=False).mask()
    causal = Layout(sequence_ids=SEQUENCE_IDS, causal=True).mask()
    np.testing.assert_array_equal(np.asarray(causal), np.tril(np.asarray(mask)))


@pytest.mark.parametrize("causal", [False, True])
def test_one_sequence_in_a_row_is_a_row_that_is_not_packed(causal):
    packed = Layout(sequence_ids=INPUT_MASK, causal=causal)
    plain = Layout(input_mask=INPUT_MASK, causal=causal)
    tokens = INPUT_MASK.astype(bool)
    expected = np.broadcast_to(np.asarray(plain.mask()), (2, 1, 3, 3))[:, 0]
    np.testing.assert_array_equal(np.asarray(packed.mask())[:, 0][tokens], expected[tokens])
    index = np.broadcast_to(np.arange(3), (2, 3))
    np.testing.assert_array_equal(np.asarray(packed.positions)[tokens], index[tokens])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [0, 1, 2])
def test_a_window_hides_what_is_farther(causal, window):
    for layout in (
        Layout(sequence_ids=SEQUENCE_IDS, causal=causal),
        Layout(input_mask=SEQUENCE_IDS != 0, causal=causal),
    ):
        index = np.arange(6)
        is_near = np.abs(index[:, None] - index) <= window
        expected = np.asarray(layout.mask()) & is_near
        np.testing.assert_array_equal(np.asarray(layout.mask(window)), expected)
        assert layout.mask(window) is layout.mask(window)  # computed once


def test_a_row_of_nothing_but_padding_is_no_trouble():
    layout = Layout(sequence_ids=np.zeros((1, 4), "int32"), causal=True)
    assert not np.asarray(layout.mask()).any()
    positions = np.asarray(layout.positions)
    assert positions.min() >= 0 and positions.max() < 4


@pytest.mark.parametrize("name", ["input_mask", "sequence_ids"])
@pytest.mark.parametrize(
    "shape, dtype",
    [
        ((3,), "int32"),
        ((2, 3, 3), "bool"),  # a mask of queries and keys
        ((2, 1, 1, 3), "bool"),
        ((2, 3), "float32"),  # would be added to scores elsewhere, as zeros and -inf
    ],
)
def test_another_form_is_rejected(name, shape, dtype):
    with pytest.raises(ValueError, match=rf"`{name}` must be \(batch, sequence\).*shape=.*{dtype}"):
        Layout(**{name: keras.ops.ones(shape, dtype=dtype)}, causal=False)


@pytest.mark.parametrize("given", [{}, {"input_mask": INPUT_MASK, "sequence_ids": INPUT_MASK}])
def test_neither_and_both_are_rejected(given):
    with pytest.raises(ValueError, match="either `input_mask` or `sequence_ids`"):
        Layout(**given, causal=False)


@pytest.mark.parametrize("given", [{"input_mask": INPUT_MASK}, {"sequence_ids": SEQUENCE_IDS}])
def test_what_is_unpadded_can_be_padded(given):
    layout = Layout(**given, causal=False)
    (array,) = given.values()
    tokens = array != 0
    x = make_rng(2).normal(size=(*array.shape, 4)).astype("float32")
    rows = layout.unpad(keras.ops.convert_to_tensor(x))
    assert len(rows.shape) == 2 and rows.shape[0] in (tokens.sum(), tokens.size)
    np.testing.assert_array_equal(np.asarray(layout.pad(rows))[tokens], x[tokens])
    np.testing.assert_array_equal(np.asarray(layout.first(rows)), x[:, 0])
