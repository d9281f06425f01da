import math

import keras
import numpy as np

from keras_bert.heads.masked_lm import MaskedLMHead
from tests.layer_checks import check_layer

RNG = np.random.default_rng(6)
HIDDEN = RNG.normal(size=(2, 5, 8)).astype("float32")
POSITIONS = np.array([[4, 1, 1], [0, 2, 3]], "int32")


def make(**options):
    embedding = keras.layers.Embedding(11, 8, dtype=options.get("dtype"))
    return MaskedLMHead(
        token_embedding=embedding,
        hidden_act="gelu",
        layer_norm_eps=1e-12,
        initializer_range=0.5,
        **options,
    )


def test_predicts_at_the_positions_with_the_tied_embedding(tmp_path):
    check_layer(
        make,
        inputs={"hidden": HIDDEN, "positions": POSITIONS},
        output_shape=(2, 3, 11),
        tmp_path=tmp_path,
    )
    layer = make()
    layer(HIDDEN, POSITIONS)
    layer.bias.assign(RNG.normal(size=11))
    y = np.asarray(layer(HIDDEN, POSITIONS))
    picked = np.stack([HIDDEN[row, POSITIONS[row]] for row in range(2)])
    x = picked @ np.asarray(layer.dense.kernel.value)
    x = x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    expected = x @ np.asarray(layer.token_embedding.embeddings.value).T
    np.testing.assert_allclose(y, expected + np.asarray(layer.bias.value), atol=5e-6)


def test_shares_the_embedding_and_trains_it():
    layer = make()
    layer(HIDDEN, POSITIONS)
    layer.token_embedding.embeddings.assign(np.zeros((11, 8)))
    np.testing.assert_array_equal(np.asarray(layer(HIDDEN, POSITIONS)), 0.0)
    assert any(w is layer.token_embedding.embeddings for w in layer.trainable_weights)
