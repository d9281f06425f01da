import math

import keras
import numpy as np

from keras_bert.heads.lm_head import LMHead
from tests.layer_checks import check_layer

RNG = np.random.default_rng(6)
HIDDEN = RNG.normal(size=(2, 5, 8)).astype("float32")
POSITIONS = np.array([[4, 1, 1], [0, 2, 3]], "int32")


def make(**options):
    embedding = keras.layers.Embedding(11, 8, dtype=options.get("dtype"))
    return LMHead(
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
        mixed_output="float32",
        tmp_path=tmp_path,
    )
    layer = make()
    layer(HIDDEN, POSITIONS)
    layer.bias.assign(RNG.normal(size=11))
    y = np.asarray(layer(HIDDEN, POSITIONS))
    expected = before_the_table(layer) @ np.asarray(layer.token_embedding.embeddings.value).T
    np.testing.assert_allclose(y, expected + np.asarray(layer.bias.value), atol=5e-6)


def before_the_table(layer):
    """What the head multiplies by the table, in numpy: (2, 3, 8)."""
    picked = np.stack([HIDDEN[row, POSITIONS[row]] for row in range(2)])
    x = picked @ np.asarray(layer.dense.kernel.value)
    x = x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def test_shares_the_embedding_and_trains_it():
    layer = make()
    hidden, positions = keras.Input((5, 8)), keras.Input((3,), dtype="int32")
    model = keras.Model([hidden, positions], layer(hidden, positions))
    table = layer.token_embedding.embeddings
    assert any(w is table for w in layer.trainable_weights)
    table.assign(np.zeros((11, 8)))
    np.testing.assert_array_equal(np.asarray(layer(HIDDEN, POSITIONS)), 0.0)
    x = before_the_table(layer).reshape(6, 8)
    labels = np.array([[1, 2, 3], [4, 5, 5]])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(1.0), loss)
    model.fit([HIDDEN, POSITIONS], labels, verbose=0)
    # With logits of 0: the mean over six predictions of (1/11 - one-hot) x.
    gradient = (1 / 11 - np.eye(11)[labels.ravel()]).T @ x / 6
    np.testing.assert_allclose(np.asarray(table), -gradient, atol=1e-5)


def test_logits_are_float32_of_the_table_as_it_is_stored():
    """In bfloat16, 1,000 and 1,001 are one number, as a table's entry and as a logit."""
    layer = make(dtype="mixed_bfloat16")
    layer(HIDDEN, POSITIONS)
    table = np.zeros((11, 8), "float32")
    table[1], table[2] = 1 / 8 + 1 / 4096, 1 / 8
    layer.token_embedding.embeddings.assign(table)
    # What comes out of the LayerNorm is its beta.
    layer.layer_norm.gamma.assign(np.zeros(8))
    layer.layer_norm.beta.assign(np.full(8, 1000.0))
    layer.bias.assign(np.linspace(0, 1, 11))
    y = np.asarray(layer(HIDDEN, POSITIONS))
    assert y.dtype == np.float32
    expected = table @ np.full(8, 1000.0) + np.linspace(0, 1, 11)
    np.testing.assert_allclose(y, np.broadcast_to(expected, y.shape), rtol=1e-6)
