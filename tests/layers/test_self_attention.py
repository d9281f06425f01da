import keras
import numpy as np
import pytest

from keras_bert.layers.layout import Layout, StepLayout
from keras_bert.layers.positions import DistanceBias, Positions, RotaryPositions
from keras_bert.layers.self_attention import SelfAttention
from tests.layer_checks import WithLayout, check_layer
from tests.seeds import make_rng

RNG = make_rng(3)
HIDDEN = RNG.normal(size=(2, 5, 8)).astype("float32")
INPUT_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")
IS_TOKEN = INPUT_MASK.astype(bool)


@keras.saving.register_keras_serializable(package="tests")
class ScaledByPosition(Positions):
    """Queries and keys times a function of their positions."""

    def encode(self, x, positions):
        return x * (1 + keras.ops.cast(positions, x.dtype)[..., None] / 3)


def make(dropout=0.0, output_dropout=0.0, **options):
    return SelfAttention(
        hidden_size=8,
        num_heads=2,
        dropout=dropout,
        output_dropout=output_dropout,
        initializer_range=0.5,
        **options,
    )


def attend(layer, layout, **options):
    """-> the outputs (B, S, D), or with `cls_only` (B, D), and probabilities if asked for."""
    outputs = layer(layout.unpad(keras.ops.convert_to_tensor(HIDDEN)), layout=layout, **options)
    y, *probabilities = outputs if isinstance(outputs, tuple) else (outputs,)
    y = y if options.get("cls_only") else layout.pad(y)
    return [np.asarray(x) for x in (y, *probabilities)]


def by_hand(layer, mask, query_scale=None, key_scale=None):
    """Attention, one head and one query at a time, in float64; mask (B, S, S), scales (B, S)."""
    kernel, bias, *projection = (np.asarray(w.value, "float64") for w in layer.weights[:4])
    q, k, v = np.split(HIDDEN.astype("float64") @ kernel + bias, 3, axis=-1)
    q = q if query_scale is None else q * query_scale[..., None]
    k = k if key_scale is None else k * key_scale[..., None]
    context = np.zeros(HIDDEN.shape)
    probabilities = np.zeros((2, 2, 5, 5))
    for row in range(2):
        for head in range(2):
            part = slice(4 * head, 4 * head + 4)
            for i in range(5):
                scores = k[row, :, part] @ q[row, i, part] / 2.0  # the root of the head size
                scores[~mask[row, i]] = -np.inf
                p = np.exp(scores - scores.max())
                probabilities[row, head, i] = p / p.sum()
                context[row, i, part] = probabilities[row, head, i] @ v[row, :, part]
    return context @ projection[0] + projection[1], probabilities


def shake(layer):
    """New biases are zeros, which hide a bias in the wrong place."""
    layer.build()
    layer.query_key_value.bias.assign(RNG.normal(size=24))
    layer.projection.bias.assign(RNG.normal(size=8))
    return layer


@pytest.mark.parametrize("causal", [False, True])
def test_is_scaled_dot_product_attention(causal, tmp_path):
    check_layer(
        lambda **options: WithLayout(make(dtype=options.get("dtype")), causal=causal, **options),
        inputs={"hidden": HIDDEN, "input_mask": INPUT_MASK},
        output_shape=(2, 5, 8),
        tmp_path=tmp_path,
    )
    layer = shake(make())
    layout = Layout(input_mask=INPUT_MASK, causal=causal)
    y, probabilities = attend(layer, layout, return_probabilities=True)
    mask = np.broadcast_to(IS_TOKEN[:, None], (2, 5, 5)) & (np.tri(5, dtype=bool) | (not causal))
    expected, expected_probabilities = by_hand(layer, mask)
    np.testing.assert_allclose(y[IS_TOKEN], expected[IS_TOKEN], atol=3e-6)
    attention, expected_attention = (
        p.swapaxes(1, 2)[IS_TOKEN] for p in (probabilities, expected_probabilities)
    )
    np.testing.assert_allclose(attention, expected_attention, atol=1e-6)
    # The way without probabilities (fused if the backend has it) is the same function.
    (fused,) = attend(layer, layout)
    np.testing.assert_allclose(fused[IS_TOKEN], y[IS_TOKEN], atol=3e-6)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_first_token_alone_looks_as_it_does_among_all(causal, training):
    layer = shake(make())
    layout = Layout(input_mask=INPUT_MASK, causal=causal)
    options = {"return_probabilities": True, "training": training}
    every, probabilities = attend(layer, layout, **options)
    first, its = attend(layer, layout, cls_only=True, **options)
    assert first.shape == (2, 8) and its.shape == (2, 2, 1, 5)
    np.testing.assert_allclose(first, every[:, 0], atol=1e-6)
    np.testing.assert_allclose(its, probabilities[:, :, :1], atol=1e-6)
    (fused,) = attend(layer, layout, cls_only=True, training=training)
    np.testing.assert_allclose(fused, first, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_positions_are_in_queries_and_keys(causal):
    sequence_ids = np.array([[1, 1, 1, 2, 2], [1, 2, 2, 2, 0]], "int32")
    tokens, positions = sequence_ids != 0, np.array([[0, 1, 2, 0, 1], [0, 0, 1, 2, 0]])
    layer = shake(make(positions=ScaledByPosition()))
    layout = Layout(sequence_ids=sequence_ids, causal=causal)
    mask = sequence_ids[:, :, None] == sequence_ids[:, None]
    mask = mask & (np.tri(5, dtype=bool) | (not causal))
    expected, probabilities = by_hand(layer, mask, 1 + positions / 3, 1 + positions / 3)
    (y,) = attend(layer, layout)
    np.testing.assert_allclose(y[tokens], expected[tokens], atol=5e-6)
    (y,) = attend(layer, layout, cls_only=True)
    np.testing.assert_allclose(y, expected[:, 0], atol=5e-6)
    y, attention = attend(layer, layout, return_probabilities=True)
    np.testing.assert_allclose(y[tokens], expected[tokens], atol=5e-6)
    attention, expected_attention = (p.swapaxes(1, 2)[tokens] for p in (attention, probabilities))
    np.testing.assert_allclose(attention, expected_attention, atol=2e-6)

    again = SelfAttention.from_config(layer.get_config())
    assert isinstance(again.positions, ScaledByPosition)
    again.build()
    again.set_weights(layer.get_weights())
    np.testing.assert_allclose(attend(again, layout, cls_only=True)[0], expected[:, 0], atol=5e-6)


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_a_window_is_a_mask(causal, window):
    layer = shake(make(window=window, use_bias=True))
    layout = Layout(input_mask=INPUT_MASK, causal=causal)
    index = np.arange(5)
    mask = IS_TOKEN[:, None] & (np.abs(index[:, None] - index) <= window)
    mask = mask & (np.tri(5, dtype=bool) | (not causal))
    expected, _ = by_hand(layer, mask | ~mask.any(-1, keepdims=True))
    np.testing.assert_allclose(attend(layer, layout)[0][IS_TOKEN], expected[IS_TOKEN], atol=5e-6)
    first = attend(layer, layout, cls_only=True)[0]
    np.testing.assert_allclose(first, expected[:, 0], atol=5e-6)


def test_dense_layers_may_lack_biases():
    layer = make(use_bias=False)
    layer.build()
    assert [w.name for w in layer.trainable_weights] == ["kernel", "kernel"]
    biased = make()
    biased.build()
    for target, source in zip(biased.trainable_weights[::2], layer.trainable_weights, strict=True):
        target.assign(source)
    layout = Layout(input_mask=INPUT_MASK, causal=False)
    np.testing.assert_allclose(attend(layer, layout)[0], attend(biased, layout)[0], atol=1e-6)


POSITIONS = {
    "none": lambda: None,
    "scaled": ScaledByPosition,
    "rotary": lambda: RotaryPositions(theta=100.0),
    "distances": lambda: DistanceBias(
        num_buckets=8, num_heads=2, farthest=6, initializer_range=1.0
    ),
}


@pytest.mark.parametrize("window", [None, 1])
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_step_gives_what_the_whole_call_gives(positions, window):
    """From the first token, and after a cache of whole sequences of different lengths."""
    positions = POSITIONS[positions]()
    if positions is not None:
        positions.build()
    layer = shake(make(positions=positions, window=window))
    lengths = np.array([4, 2])
    mask = (np.arange(5) < lengths[:, None] + 1).astype("int32")
    (expected,) = attend(layer, Layout(input_mask=mask, causal=True))

    cache = layer.initial_cache(2, 7)
    for index in range(5):
        layout = StepLayout(np.full(2, index), cache[0])
        y, cache = layer.step(keras.ops.convert_to_tensor(HIDDEN[:, index]), cache, layout)
        at = mask[:, index].astype(bool)
        np.testing.assert_allclose(np.asarray(y)[at], expected[at, index], atol=5e-6)

    seen = np.arange(5) < lengths[:, None]
    cache = layer.cache_of(keras.ops.convert_to_tensor(HIDDEN), seen, 7)
    layout = StepLayout(lengths, cache[0])
    y, _ = layer.step(keras.ops.convert_to_tensor(HIDDEN[[0, 1], lengths]), cache, layout)
    np.testing.assert_allclose(np.asarray(y), expected[[0, 1], lengths], atol=5e-6)


def test_dropout_is_applied_to_the_probabilities():
    """With one token in a row a head passes all of its value on, or none, or, scaled, twice."""
    layer = SelfAttention(
        hidden_size=64, num_heads=64, dropout=0.5, output_dropout=0.0, initializer_range=0.5
    )
    hidden = RNG.normal(size=(300, 64)).astype("float32")
    layout = Layout(input_mask=np.ones((300, 1), "int32"), causal=False)
    layer.build()
    layer.query_key_value.kernel.assign(np.zeros((64, 192)))
    layer.query_key_value.bias.assign(np.repeat([0, 0, 1], 64))
    layer.projection.kernel.assign(np.eye(64))
    passed = np.asarray(layer(hidden, layout=layout, training=False))
    y = np.asarray(layer(hidden, layout=layout, training=True))
    assert set(np.unique(y / passed)) == {0.0, 2.0}
    # 19,200 draws: six standard deviations are 0.022.
    assert abs((y == 0).mean() - 0.5) < 0.022
    assert not np.array_equal(y, np.asarray(layer(hidden, layout=layout, training=True)))
    # A softmax over one score is 1, or on some processors the float32 before it.
    np.testing.assert_array_max_ulp(passed, np.ones_like(passed), maxulp=1)


@pytest.mark.parametrize("return_probabilities", [False, True])
def test_a_query_that_sees_nothing_gets_the_mean_of_all_values(return_probabilities):
    layer = shake(make())
    layout = Layout(sequence_ids=np.zeros((2, 5), "int32"), causal=False)
    y = attend(layer, layout, return_probabilities=return_probabilities)[0]
    expected, _ = by_hand(layer, np.ones((2, 5, 5), bool), np.zeros((2, 5)))  # equal scores
    np.testing.assert_allclose(y, expected, atol=5e-6)


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ValueError, match="hidden_size=8, num_heads=3"):
        SelfAttention(
            hidden_size=8, num_heads=3, dropout=0.0, output_dropout=0.0, initializer_range=0.02
        )


@pytest.mark.only_tensorflow
@pytest.mark.usefixtures("optimized_graphs")
@pytest.mark.parametrize("causal", [False, True])
def test_tensorflow_joins_scale_and_mask_to_the_scores_in_prediction(causal):
    import tensorflow as tf
    from tensorflow.python.eager import context
    from tensorflow.python.util import _pywrap_util_port

    if not _pywrap_util_port.IsMklEnabled():
        pytest.skip("NOT TESTED: TensorFlow does not use oneDNN on this processor")

    layer = make()
    layer.build()

    @tf.function
    def f(hidden, mask):
        layout = Layout(input_mask=mask, causal=causal)
        return layer(layout.unpad(hidden), layout=layout, training=False)

    hidden, mask = tf.constant(HIDDEN), tf.constant(INPUT_MASK)
    f.get_concrete_function(hidden, mask)
    with context.collect_graphs(optimized=True) as graphs:
        f(hidden, mask)
    nodes = [node for graph in graphs for node in graph.node]
    fused = [n.attr["fused_ops"].list.s for n in nodes if n.op == "_MklFusedBatchMatMulV2"]
    assert fused == [[b"Mul", b"Add"]]
