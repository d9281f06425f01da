import keras
import numpy as np

from keras_bert.heads.classification import NextSentenceHead
from tests.layer_checks import check_layer
from tests.seeds import make_rng

RNG = make_rng(8)
POOLED = RNG.normal(size=(3, 8)).astype("float32")
LABELS = np.array([0, 1, 1])


def make(**options):
    return NextSentenceHead(initializer_range=0.5, **options)


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def test_gives_two_float32_logits_a_row(tmp_path):
    check_layer(
        make,
        inputs={"pooled": POOLED},
        output_shape=(3, 2),
        mixed_output="float32",
        tmp_path=tmp_path,
    )


def test_is_a_linear_layer():
    layer = make()
    layer(POOLED)
    layer.dense.bias.assign([0.5, -2.0])
    kernel = np.asarray(layer.dense.kernel.value, "float64")
    assert 0.1 < kernel.std() < 1
    y = np.asarray(layer(POOLED))
    np.testing.assert_allclose(y, POOLED @ kernel + [0.5, -2.0], atol=1e-6)


def test_a_step_moves_it_and_what_it_reads_by_the_gradient():
    """d loss / d logits = softmax - one-hot, here the sum over the rows."""
    layer, before = make(), keras.layers.Dense(8, use_bias=False, kernel_initializer="identity")
    model = keras.Sequential([keras.Input((8,)), before, layer])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    model.compile(keras.optimizers.SGD(1.0), loss)
    kernel = np.asarray(layer.dense.kernel.value, "float64")
    d_logits = softmax(POOLED @ kernel) - np.eye(2)[LABELS]
    model.fit(POOLED, LABELS, verbose=0)
    moved = kernel - np.asarray(layer.dense.kernel.value)
    np.testing.assert_allclose(moved, POOLED.T @ d_logits, atol=1e-5)
    np.testing.assert_allclose(-np.asarray(layer.dense.bias.value), d_logits.sum(0), atol=1e-5)
    moved = np.eye(8) - np.asarray(before.kernel.value)
    np.testing.assert_allclose(moved, POOLED.T @ (d_logits @ kernel.T), atol=1e-5)
