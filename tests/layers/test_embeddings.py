import numpy as np
import pytest

from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.embeddings import Embeddings
from tests.layer_checks import check_layer

SIZES = {
    "vocab_size": 11,
    "hidden_size": 8,
    "max_position_embeddings": 6,
    "type_vocab_size": 2,
    "dropout": 0.0,
    "initializer_range": 0.5,
}
IDS = np.array([[3, 1, 4, 1], [10, 9, 0, 0]], "int32")
SEGMENTS = np.array([[0, 0, 1, 1], [0, 1, 1, 0]], "int32")


def make(**options):
    norm = LayerNorm(epsilon=1e-12, name="layer_norm", dtype=options.get("dtype"))
    return Embeddings(**{**SIZES, "position_offset": 0, "layer_norm": norm, **options})


def normalised(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


@pytest.mark.parametrize("offset", [0, 2])
def test_is_the_normalised_sum_of_three_rows(offset, tmp_path):
    check_layer(
        lambda **options: make(position_offset=offset, **options),
        inputs={"input_ids": IDS, "segment_ids": SEGMENTS},
        output_shape=(2, 4, 8),
        tmp_path=tmp_path,
    )
    layer = make(position_offset=offset)
    y = np.asarray(layer(IDS, SEGMENTS))
    token, position, segment = (np.asarray(w.value) for w in layer.trainable_weights[:3])
    expected = normalised(token[IDS] + position[offset : offset + 4] + segment[SEGMENTS])
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_given_positions_are_counted_from_the_offset():
    layer = make(position_offset=2)
    positions = np.array([[0, 1, 0, 1], [3, 2, 1, 0]], "int32")
    y = np.asarray(layer(IDS, SEGMENTS, positions))
    token, position, segment = (np.asarray(w.value) for w in layer.trainable_weights[:3])
    expected = normalised(token[IDS] + position[positions + 2] + segment[SEGMENTS])
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_a_row_longer_than_the_positions_is_rejected():
    with pytest.raises(ValueError, match="length=5, positions=4"):
        make(position_offset=2)(np.ones((1, 5), "int32"), np.zeros((1, 5), "int32"))


def test_where_there_is_one_segment_every_token_is_of_it():
    layer = make(type_vocab_size=1)
    y = np.asarray(layer(IDS))
    np.testing.assert_array_equal(y, layer(IDS, 0 * SEGMENTS))
    token, position, segment = (np.asarray(w.value) for w in layer.trainable_weights[:3])
    np.testing.assert_allclose(y, normalised(token[IDS] + position[:4] + segment[0]), atol=1e-5)


def test_what_a_model_lacks_is_left_out():
    layer = make(max_position_embeddings=0, type_vocab_size=0, layer_norm=None)
    y = np.asarray(layer(np.ones((1, 50), "int32")))  # any length
    (token,) = (np.asarray(w.value) for w in layer.trainable_weights)
    np.testing.assert_array_equal(y[0], np.broadcast_to(token[1], (50, 8)))


def test_smaller_embeddings_are_projected(tmp_path):
    check_layer(
        lambda **options: make(embedding_size=3, **options),
        inputs={"input_ids": IDS, "segment_ids": SEGMENTS},
        output_shape=(2, 4, 8),
        tmp_path=tmp_path,
    )
    layer = make(embedding_size=3)
    y = np.asarray(layer(IDS, SEGMENTS))
    token, position, segment, _, _, kernel, bias = (
        np.asarray(w.value) for w in layer.trainable_weights
    )
    expected = normalised(token[IDS] + position[:4] + segment[SEGMENTS]) @ kernel + bias
    np.testing.assert_allclose(y, expected, atol=1e-5)
