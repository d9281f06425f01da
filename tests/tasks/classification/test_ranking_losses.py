"""Losses of rerankers, their values and gradients, as sentence-transformers 6.2 computes them."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.tasks.classification import (
    BINARY_CROSSENTROPY,
    LISTWISE,
    LOSSES,
    MARGIN_MSE,
    RANKNET,
    SQUARED_ERROR,
)
from keras_bert.tasks.classification.ranking_losses import ListLoss
from tests.seeds import make_rng

EXPECTED = json.loads(
    (Path(__file__).parents[2] / "reference" / "text_vectors" / "losses_expected.json").read_text()
)["cross_encoder"]
INPUTS, VALUES = EXPECTED["inputs"], EXPECTED["losses"]
LISTS = INPUTS["lists"]
# The passages of the margins: a positive and a negative each; the labels are margins.
MARGINS = [[2, 0], [5, 4]], [[1.0, 0.0], [0.5, 0.0]]
# The name of each in the file -> the loss, its lists and their labels.
CASES = {
    "list_net": (ListLoss(LISTWISE), LISTS, INPUTS["relevances"]),
    "rank_net": (ListLoss(LISTWISE, list_loss=RANKNET), LISTS, INPUTS["relevances"]),
    "margin_mse": (ListLoss(MARGIN_MSE), *MARGINS),
    "binary_cross_entropy": (
        ListLoss(BINARY_CROSSENTROPY),
        LISTS,
        [[INPUTS["binary"][number] for number in one] for one in LISTS],
    ),
    "mse": (
        ListLoss(SQUARED_ERROR),
        LISTS,
        [[INPUTS["binary"][number] for number in one] for one in LISTS],
    ),
}


def padded(lists, values, width):
    """(B, width) of the values of each list."""
    rows = np.zeros((len(lists), width), "float32")
    for row, list_values in zip(rows, values, strict=True):
        row[: len(list_values)] = list_values
    return rows


def value_and_gradient(loss, lists, labels, *, width):
    """-> (the value, the gradient of each of the file's logits)."""
    logits = np.array(INPUTS["logits"], "float32")
    present = padded(lists, [[1] * len(one) for one in lists], width)
    given = np.stack([padded(lists, labels, width), present], axis=-1)
    x = tf.constant(padded(lists, [logits[one] for one in lists], width))
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(given, x)
    gradient = np.zeros(len(logits), "float32")
    padded_gradient = tape.gradient(value, x).numpy()
    for row, one in zip(padded_gradient, lists, strict=True):
        gradient[one] += row[: len(one)]
    assert not (padded_gradient * (1 - present)).any()
    return float(value), gradient


def test_every_loss_is_compared():
    assert {loss.loss for loss, _, _ in CASES.values()} == {*LOSSES}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [4, 6])
def test_value_and_gradient(name, width):
    """Lists are padded to the longest of a batch, or to more."""
    value, gradient = value_and_gradient(*CASES[name], width=width)
    assert value == pytest.approx(VALUES[name]["value"], rel=1e-5)
    np.testing.assert_allclose(gradient, np.ravel(VALUES[name]["gradient"]), rtol=2e-5, atol=1e-7)


def test_the_cross_entropy_of_pairs_is_theirs():
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    x = tf.constant(np.array(INPUTS["logits"], "float32")[:, None])
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(np.array(INPUTS["binary"], "float32")[:, None], x)
    expected = VALUES["binary_cross_entropy"]
    assert float(value) == pytest.approx(expected["value"], rel=1e-5)
    np.testing.assert_allclose(tape.gradient(value, x), expected["gradient"], rtol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_the_same_after_its_config(name):
    loss = CASES[name][0]
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert again.get_config() == loss.get_config()


@pytest.mark.parametrize("name", CASES)
def test_large_scores_have_finite_gradients(name):
    loss, rng = CASES[name][0], make_rng(3)
    x = tf.constant(rng.choice([-1e4, 0, 1e4], size=(3, 4)).astype("float32"))
    labels = np.stack([np.eye(3, 4), np.ones((3, 4))], axis=-1).astype("float32")
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(labels, x)
    assert np.isfinite(float(value)) and np.isfinite(tape.gradient(value, x)).all()
