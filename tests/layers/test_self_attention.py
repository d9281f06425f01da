import numpy as np
import pytest

from keras_bert.layers.self_attention import SelfAttention
from tests.layer_checks import check_layer

RNG = np.random.default_rng(3)
HIDDEN = RNG.normal(size=(2, 5, 8)).astype("float32")
PADDING = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)[:, None, None, :]


def make(dropout=0.0, **options):
    return SelfAttention(
        hidden_size=8, num_heads=2, dropout=dropout, initializer_range=0.5, **options
    )


def by_hand(layer, hidden, mask):
    """Attention, one head and one query at a time, in float64."""
    weights = [np.asarray(w.value, "float64") for w in layer.trainable_weights]
    q, k, v = (hidden @ weights[i] + weights[i + 1] for i in (0, 2, 4))
    mask = np.broadcast_to(mask, (2, 1, 5, 5))[:, 0]
    context = np.zeros(hidden.shape)
    probabilities = np.zeros((2, 2, 5, 5))
    for row in range(2):
        for head in range(2):
            part = slice(4 * head, 4 * head + 4)
            for i in range(5):
                scores = k[row, :, part] @ q[row, i, part] / 2.0  # the root of the head's width
                scores[~mask[row, i]] = -np.inf
                p = np.exp(scores - scores.max())
                probabilities[row, head, i] = p / p.sum()
                context[row, i, part] = probabilities[row, head, i] @ v[row, :, part]
    return context @ weights[6] + weights[7], probabilities


@pytest.mark.parametrize("mask", [PADDING, PADDING & np.tril(np.ones((5, 5), bool))])
def test_is_scaled_dot_product_attention(mask, tmp_path):
    check_layer(
        make,
        inputs={"hidden": HIDDEN, "attention_mask": mask},
        output_shape=(2, 5, 8),
        tmp_path=tmp_path,
    )
    layer = make()
    y, probabilities = layer(HIDDEN, mask, return_probabilities=True)
    expected, expected_probabilities = by_hand(layer, HIDDEN.astype("float64"), mask)
    np.testing.assert_allclose(np.asarray(y), expected, atol=2e-6)
    np.testing.assert_allclose(np.asarray(probabilities), expected_probabilities, atol=1e-6)
    # The way without probabilities (fused where the backend has it) is the same function.
    np.testing.assert_allclose(np.asarray(layer(HIDDEN, mask)), np.asarray(y), atol=2e-6)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("mask", [PADDING, PADDING & np.tril(np.ones((5, 5), bool))])
def test_the_first_token_alone_looks_as_it_does_among_all(mask, joined, training):
    layer = make(joined=joined)
    every, chances = layer(HIDDEN, mask, return_probabilities=True, training=training)
    first, its = layer(HIDDEN, mask, return_probabilities=True, training=training, first_only=True)
    np.testing.assert_allclose(np.asarray(first), np.asarray(every)[:, 0], atol=1e-6)
    np.testing.assert_allclose(np.asarray(its), np.asarray(chances)[:, :, :1], atol=1e-6)
    fused = layer(HIDDEN, mask, training=training, first_only=True)
    np.testing.assert_allclose(np.asarray(fused), np.asarray(first), atol=1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_projections_in_one_layer_are_the_three_side_by_side(training, tmp_path):
    check_layer(
        lambda **options: make(joined=True, **options),
        inputs={"hidden": HIDDEN, "attention_mask": PADDING},
        output_shape=(2, 5, 8),
        tmp_path=tmp_path,
    )
    # Eighths, whose products are summed without rounding: in another order, too, which a processor
    # may choose for kernels of another width.
    hidden = eighths(HIDDEN)
    apart, joined = make(), make(joined=True)
    apart.build(hidden.shape)
    apart.set_weights([eighths(weight) for weight in apart.get_weights()])
    expected = np.asarray(apart(hidden, PADDING, training=training))
    joined.build(hidden.shape)
    kernels, biases = (
        [np.asarray(getattr(layer, name)) for layer in (apart.query, apart.key, apart.value)]
        for name in ("kernel", "bias")
    )
    joined.query_key_value.set_weights([np.hstack(kernels), np.hstack(biases)])
    joined.projection.set_weights(apart.projection.get_weights())
    found = np.asarray(joined(hidden, PADDING, training=training))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def eighths(x):
    return np.round(8 * x) / 8


def test_a_mask_without_its_head_axis_is_refused():
    """(B, S, S) with B = N would line the batch up with the heads, without an error."""
    layer = make()
    mask = np.ones((2, 5, 5), bool)
    with pytest.raises(ValueError, match="attention_mask"):
        layer(HIDDEN, mask)


def test_dropout_is_applied_to_the_probabilities():
    """With one token a row a head passes all of its value on, or none, or, scaled, twice."""
    layer = SelfAttention(hidden_size=64, num_heads=64, dropout=0.5, initializer_range=0.5)
    hidden = RNG.normal(size=(300, 1, 64)).astype("float32")
    mask = np.ones((300, 1, 1, 1), bool)
    layer(hidden, mask)
    layer.value.kernel.assign(np.zeros((64, 64)))
    layer.value.bias.assign(np.ones(64))
    layer.projection.kernel.assign(np.eye(64))
    passed = np.asarray(layer(hidden, mask, training=False))
    y = np.asarray(layer(hidden, mask, training=True))
    assert set(np.unique(y / passed)) == {0.0, 2.0}
    # 19,200 draws: six standard deviations are 0.022.
    assert abs((y == 0).mean() - 0.5) < 0.022
    assert not np.array_equal(y, np.asarray(layer(hidden, mask, training=True)))
    # A softmax over one score is 1, or on some processors the float32 before it.
    np.testing.assert_array_max_ulp(passed, np.ones_like(passed), maxulp=1)


def test_a_query_that_sees_nothing_stays_finite():
    mask = np.zeros((2, 1, 5, 5), bool)
    assert np.isfinite(np.asarray(make()(HIDDEN, mask))).all()


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="hidden_size=8, num_heads=3"):
        SelfAttention(hidden_size=8, num_heads=3, dropout=0.0, initializer_range=0.02)


@pytest.mark.only_tensorflow
def test_tensorflow_joins_scale_and_mask_to_the_scores_in_prediction():
    import tensorflow as tf
    from tensorflow.python.eager import context
    from tensorflow.python.util import _pywrap_util_port

    if not _pywrap_util_port.IsMklEnabled():
        pytest.skip("NOT TESTED: TensorFlow does not use oneDNN on this processor")

    layer = make()
    hidden, mask = tf.constant(HIDDEN), tf.constant(PADDING)
    layer(hidden, mask)
    f = tf.function(lambda hidden, mask: layer(hidden, mask, training=False))
    f.get_concrete_function(hidden, mask)
    with context.collect_graphs(optimized=True) as graphs:
        f(hidden, mask)
    nodes = [node for graph in graphs for node in graph.node]
    fused = [n.attr["fused_ops"].list.s for n in nodes if n.op == "_MklFusedBatchMatMulV2"]
    assert fused == [[b"Mul", b"Add"]]
