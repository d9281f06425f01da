"""Skip-gram and CBOW with negative sampling, against sums over windows in float64."""

import keras
import numpy as np
import pytest

from keras_bert.tasks.pretraining.static_vectors import NegativeSampling
from tests.seeds import make_rng

V, D, W, K, M, R = 11, 4, 3, 5, 8, 4
# The tokens of a chunk: one group, and several.
CHUNKS = (6, 64)


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def new_batch(size):
    rng = make_rng(0)
    before, after = rng.integers(0, W + 1, (2, R, size))
    for contexts in (before, after):
        contexts[1, -2:] = 0  # padding
        contexts[2] = 0  # each token alone
    ids = rng.integers(0, V, (R, size + 2 * W))
    arrays = (ids, before, after, rng.integers(0, V, (R, M)))
    return [array.astype(np.int32) for array in arrays]


def expected(v, u, batch, *, cbow):
    """The nats of every token in words of the paper, and the gradients of their sum."""
    ids, before, after, negatives = batch
    nats, dv, du = np.zeros(before.shape), np.zeros_like(v), np.zeros_like(u)

    def predict(h, dh, target, weight, is_positive):
        """Adds the gradients of weight * -log σ(± u_t · h); returns its value."""
        sign = 1 if is_positive else -1
        score = sign * (u[target] @ h)
        slope = -weight * sign * sigmoid(-score)
        dh += slope * u[target]
        du[target] += slope * h
        return -weight * log_sigmoid(score)

    for r, i in np.ndindex(before.shape):
        at = i + W
        contexts = [j for j in range(at - before[r, i], at + after[r, i] + 1) if j != at]
        if not contexts:
            continue
        dh = np.zeros(D)
        if cbow:
            h = v[ids[r, contexts]].mean(axis=0)
            nats[r, i] += predict(h, dh, ids[r, at], 1.0, True)
        else:
            h = v[ids[r, at]]
            for j in contexts:
                nats[r, i] += predict(h, dh, ids[r, j], 1 / len(contexts), True)
        for n in negatives[r]:
            nats[r, i] += predict(h, dh, n, K / M, False)
        for j in contexts if cbow else [at]:
            dv[ids[r, j]] += dh / len(contexts) if cbow else dh
    return nats, dv, du


@pytest.mark.only_tensorflow
@pytest.mark.parametrize("size", CHUNKS)
@pytest.mark.parametrize("cbow", [False, True])
def test_nats_and_gradients_are_those_of_the_definition(cbow, size):
    import tensorflow as tf

    batch = new_batch(size)
    rng = make_rng(1)
    v, u = rng.normal(size=(2, V, D))
    embedding = keras.layers.Embedding(V, D)
    embedding.build()
    layer = NegativeSampling(token_embedding=embedding, window=W, negatives=K, cbow=cbow)
    layer.build()
    embedding.embeddings.assign(v)
    layer.output_vectors.assign(u)
    variables = [embedding.embeddings.value, layer.output_vectors.value]
    with tf.GradientTape() as tape:
        losses = layer(*batch)
        total = tf.reduce_sum(losses)
    gradients = tape.gradient(total, variables)
    assert all(isinstance(gradient, tf.IndexedSlices) for gradient in gradients)
    nats, dv, du = expected(v, u, batch, cbow=cbow)
    np.testing.assert_allclose(losses, nats, rtol=1e-5, atol=1e-6)
    for gradient, reference in zip(gradients, (dv, du), strict=True):
        dense = tf.convert_to_tensor(gradient)
        np.testing.assert_allclose(dense, reference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", CHUNKS)
def test_a_new_layer_predicts_nothing_and_padding_costs_nothing(size):
    batch = new_batch(size)
    embedding = keras.layers.Embedding(V, D)
    embedding.build()
    layer = NegativeSampling(token_embedding=embedding, window=W, negatives=K, cbow=False)
    nats = np.asarray(layer(*batch))
    has_context = batch[1] + batch[2] > 0
    assert has_context.any() and not has_context.all()
    np.testing.assert_allclose(nats, np.where(has_context, (1 + K) * np.log(2), 0), rtol=1e-6)
