"""The BiLSTM over tokens against the LSTM's equations in numpy."""

import keras
import numpy as np
import pytest

from keras_bert.heads.reader import BiLstm
from tests.layer_checks import check_layer
from tests.seeds import make_rng

RNG = make_rng(9)
UNITS = 3
HIDDEN = RNG.normal(size=(2, 5, 4)).astype("float32")
INPUT_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")


def make(**options):
    return BiLstm(units=UNITS, **options)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, weights):
    """Hochreiter and Schmidhuber 1997, with forget gates: (tokens, D) -> (tokens, U)."""
    kernel, recurrent, bias = weights
    h, c, outputs = np.zeros(UNITS), np.zeros(UNITS), []
    for token in x:
        i, f, new, o = np.split(token @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs)


def test_builds_saves_and_trains(tmp_path):
    check_layer(
        make,
        inputs={"hidden": HIDDEN, "input_mask": INPUT_MASK},
        output_shape=(2, 5, 2 * UNITS),
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("layers", [1, 2])
def test_reads_both_ways_and_passes_over_padding(layers):
    layer = make(layers=layers)
    layer.build(HIDDEN.shape)
    for weight in layer.weights:  # new biases are zeros and ones
        weight.assign(weight + RNG.normal(size=weight.shape) * 0.3)
    weights = [np.asarray(weight.value, "float64") for weight in layer.weights]
    outputs = np.asarray(layer(HIDDEN, INPUT_MASK))
    for row, length in enumerate(INPUT_MASK.sum(1)):
        x = HIDDEN[row, :length].astype("float64")
        for number in range(layers):
            forward, backward = weights[6 * number :][:3], weights[6 * number + 3 :][:3]
            x = np.concatenate([lstm(x, forward), lstm(x[::-1], backward)[::-1]], axis=-1)
        np.testing.assert_allclose(outputs[row, :length], x, atol=1e-5)


def test_its_mask_is_not_tied_to_what_it_gives():
    """Keras's losses would apply it once more."""
    mask = getattr(make()(HIDDEN, INPUT_MASK), "_keras_mask", None)
    assert mask is None
    hidden, input_mask = keras.Input((None, 4)), keras.Input((None,), dtype="int32")
    assert getattr(make()(hidden, input_mask), "_keras_mask", None) is None
