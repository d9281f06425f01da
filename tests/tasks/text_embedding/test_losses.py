"""Every loss, its value and its gradients, as sentence-transformers 6.2 computes them."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.tasks.text_embedding import (
    ANGLE,
    BATCH_TRIPLETS,
    CONTRASTIVE,
    COSENT,
    COSINE_ERROR,
    IN_BATCH,
    LOSSES,
    SIMCSE,
    TRIPLET,
)
from keras_bert.tasks.text_embedding.losses import GroupLoss, batch_triplets
from tests.seeds import make_rng

EXPECTED = json.loads(
    (Path(__file__).parents[2] / "reference" / "text_vectors" / "losses_expected.json").read_text()
)
INPUTS, VALUES = EXPECTED["inputs"], EXPECTED["losses"]
# The name of each in the file -> the loss.
CASES = {
    "mnr": GroupLoss(IN_BATCH),
    "mnr_one_hard_negative": GroupLoss(IN_BATCH),
    "mnr_two_hard_negatives": GroupLoss(IN_BATCH),
    "mnr_symmetric": GroupLoss(IN_BATCH, symmetric=True),
    "mnr_symmetric_two_hard_negatives": GroupLoss(IN_BATCH, symmetric=True),
    "simcse": GroupLoss(SIMCSE),
    "cosent": GroupLoss(COSENT),
    "angle": GroupLoss(ANGLE),
    "cosine_similarity": GroupLoss(COSINE_ERROR),
    "triplet_euclid_margin_5": GroupLoss(TRIPLET),
    "contrastive": GroupLoss(CONTRASTIVE),
    "matryoshka_mnr_8_4_2": GroupLoss(IN_BATCH, sizes=[8, 4, 2], weights=[1, 1, 1]),
    "matryoshka_mnr_weighted": GroupLoss(IN_BATCH, sizes=[8, 4, 2], weights=[1, 0.5, 0.25]),
    "matryoshka_cosent_8_4": GroupLoss(COSENT, sizes=[8, 4], weights=[1, 1]),
    "gist": GroupLoss(IN_BATCH, guided=True, scale=100),
    "gist_hard_negative": GroupLoss(IN_BATCH, guided=True, scale=100),
    "gist_absolute_margin_0.3_temperature_0.05": GroupLoss(IN_BATCH, guided=True, guide_margin=0.3),
    "gist_relative_margin_0.5_temperature_0.05": GroupLoss(
        IN_BATCH, guided=True, guide_relative_margin=0.5
    ),
    "batch_all_triplet": lambda labels, vectors, sample_weight=None: batch_triplets(
        vectors, labels, margin=5.0, by_cosine=False
    ),
}
GROUP_LOSSES = {name: loss for name, loss in CASES.items() if isinstance(loss, GroupLoss)}


def labels_of(name, texts):
    column = VALUES[name]["labels"]
    if name.startswith("gist"):
        guides = [f"guide_{column}" for column in VALUES[name]["columns"]]
        return np.stack([np.array(INPUTS[guide], "float32") for guide in guides], axis=1)
    if column is None:
        return np.ones((6, texts), "float32")
    return np.array(INPUTS[column], "float32")[:, None]


def vectors_of(name):
    """(6, n, 8)."""
    return np.stack([np.array(INPUTS[c], "float32") for c in VALUES[name]["columns"]], axis=1)


def value_and_gradient(loss, labels, vectors, weights=None):
    x = tf.constant(vectors)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(labels, x, sample_weight=weights)
    return float(value), tape.gradient(value, x).numpy()


def test_every_loss_is_compared():
    # That of triplets is another function of distances.
    assert {loss.loss for loss in GROUP_LOSSES.values()} | {BATCH_TRIPLETS} == {*LOSSES}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name):
    vectors, expected = vectors_of(name), VALUES[name]
    labels = labels_of(name, vectors.shape[1])
    value, gradient = value_and_gradient(CASES[name], labels, vectors)
    assert value == pytest.approx(expected["value"], rel=1e-5)
    norms = np.linalg.norm(gradient.transpose(1, 0, 2).reshape(vectors.shape[1], -1), axis=1)
    np.testing.assert_allclose(norms, expected["gradient_norms"], rtol=2e-5)
    np.testing.assert_allclose(gradient[0, 0], expected["first_gradient_row"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["mnr_one_hard_negative", "triplet_euclid_margin_5"])
def test_a_negative_that_is_not_there_changes_nothing(name):
    """Rows may have fewer negatives than others; what is in their place has no gradient."""
    vectors = vectors_of(name)
    labels = np.ones(vectors.shape[:2], "float32")
    wider = np.concatenate([vectors, np.zeros_like(vectors[:, :1])], axis=1)
    fewer = np.pad(labels, [(0, 0), (0, 1)])
    value, gradient = value_and_gradient(CASES[name], labels, vectors)
    wider_value, wider_gradient = value_and_gradient(CASES[name], fewer, wider)
    assert wider_value == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(wider_gradient[:, :-1], gradient, rtol=1e-5, atol=1e-7)
    assert not wider_gradient[:, -1].any()


@pytest.mark.parametrize("name", ["mnr", "cosine_similarity", "contrastive"])
def test_a_weight_is_that_of_a_row(name):
    vectors, weights = vectors_of(name), np.array([1, 0, 2, 0, 0, 0.5], "float32")
    labels = labels_of(name, 2)
    each = [
        value_and_gradient(CASES[name], labels, vectors, np.eye(6, dtype="float32")[row])[0]
        for row in range(6)
    ]
    value, _ = value_and_gradient(CASES[name], labels, vectors, weights)
    assert value == pytest.approx(float(np.dot(each, weights)), rel=1e-5)


def test_triplets_of_cosines():
    """The mean over all triplets above 0, one by one."""
    rng = make_rng(4)
    vectors, labels = rng.normal(size=(7, 1, 5)).astype("float32"), np.array([0, 1, 2, 1, 0, 1, 3])
    unit = vectors[:, 0] / np.linalg.norm(vectors[:, 0], axis=1, keepdims=True)
    distance = 1 - unit.astype("float64") @ unit.T
    losses = [
        distance[a, p] - distance[a, n] + 0.2
        for a in range(7)
        for p in range(7)
        for n in range(7)
        if a != p and labels[a] == labels[p] != labels[n]
    ]
    value, gradient = value_and_gradient(
        GroupLoss(BATCH_TRIPLETS), labels[:, None].astype("float32"), vectors
    )
    assert value == pytest.approx(np.mean([loss for loss in losses if loss > 0]), rel=1e-5)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("margins", [{"guide_margin": 0.2}, {"guide_relative_margin": 0.3}, {}])
def test_a_text_that_is_not_there_is_no_candidate_of_a_guide(margins):
    """Rows may have fewer negatives, and a batch fewer than the data."""
    vectors, labels = vectors_of("gist_hard_negative"), labels_of("gist_hard_negative", 3)
    loss = GroupLoss(IN_BATCH, guided=True, **margins)
    value, gradient = value_and_gradient(loss, labels, vectors)
    wider = np.concatenate([vectors, np.ones_like(vectors[:, :1])], axis=1)
    fewer = np.concatenate([labels, np.zeros_like(labels[:, :1])], axis=1)
    wider_value, wider_gradient = value_and_gradient(loss, fewer, wider)
    assert wider_value == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(wider_gradient[:, :-1], gradient, rtol=1e-5, atol=1e-7)
    assert not wider_gradient[:, -1].any()
    assert value_and_gradient(loss, fewer, vectors)[0] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("name", GROUP_LOSSES)
def test_a_loss_is_the_same_after_its_config(name):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(CASES[name]))
    assert again.get_config() == CASES[name].get_config()


@pytest.mark.parametrize("loss", LOSSES)
def test_vectors_that_are_equal_or_zero_have_finite_gradients(loss):
    rng = make_rng(3)
    vectors = np.repeat(rng.normal(size=(4, 1, 6)), 3, axis=1).astype("float32")
    vectors[1] = 0
    one_label_losses = (COSENT, ANGLE, COSINE_ERROR, CONTRASTIVE, BATCH_TRIPLETS)
    shape = (4, 1) if loss in one_label_losses else (4, 3)
    labels = np.ones(shape, "float32")
    labels[0] = 0.5
    take = 1 if loss == BATCH_TRIPLETS else 2 if shape[1] == 1 else 3
    value, gradient = value_and_gradient(GroupLoss(loss), labels, vectors[:, :take])
    assert np.isfinite(value) and np.isfinite(gradient).all()
