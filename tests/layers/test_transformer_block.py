import keras
import numpy as np
import pytest

from keras_bert.layers.elementwise import LayerNorm
from keras_bert.layers.layout import Layout
from keras_bert.layers.self_attention import SelfAttention
from keras_bert.layers.transformer_block import FeedForward, TransformerBlock
from tests.activation_formulas import FORMULAS
from tests.layer_checks import WithLayout, check_layer
from tests.seeds import make_rng

RNG = make_rng(4)
HIDDEN = RNG.normal(size=(2, 5, 8)).astype("float32")
INPUT_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")
IS_TOKEN = INPUT_MASK.astype(bool)
LAYOUT = Layout(input_mask=INPUT_MASK, causal=False)
X = LAYOUT.unpad(keras.ops.convert_to_tensor(HIDDEN))  # (R, D)


def make(hidden_act="gelu", dropout=0.0, norm_first=False, dtype=None, **options):
    common = {"hidden_size": 8, "initializer_range": 0.5, "dtype": dtype}
    return TransformerBlock(
        attention=SelfAttention(
            num_heads=2, dropout=0.0, output_dropout=dropout, name="attention", **common
        ),
        feed_forward=FeedForward(
            intermediate_size=12,
            hidden_act=hidden_act,
            dropout=dropout,
            name="feed_forward",
            **common,
        ),
        attention_norm=LayerNorm(epsilon=1e-12, name="attention_norm", dtype=dtype),
        feed_forward_norm=LayerNorm(epsilon=1e-12, name="feed_forward_norm", dtype=dtype),
        norm_first=norm_first,
        dtype=dtype,
        **options,
    )


def built(*arguments, **options):
    """A block whose biases and norms are not the zeros and ones that hide mistakes."""
    block = make(*arguments, **options)
    block.build((None, 8))
    for weight in block.trainable_weights:
        weight.assign(weight + RNG.normal(size=weight.shape) * 0.3)
    return block


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def formula(layer, x):
    """A norm or feed-forward layer in numpy."""
    weights = [np.asarray(w.value, "float64") for w in layer.weights]
    if isinstance(layer, LayerNorm):
        return norm(x) * weights[0] + weights[1]
    activation = FORMULAS[layer.settings["hidden_act"]]
    return activation(x @ weights[0] + weights[1]) @ weights[2] + weights[3]


def attended(block, x):
    """Its attention, which has a test of its own."""
    return np.asarray(block.attention(np.asarray(x, "float32"), layout=LAYOUT), "float64")


@pytest.mark.parametrize("norm_first", [False, True])
def test_passes_the_layer_check(norm_first, tmp_path):
    check_layer(
        lambda **options: WithLayout(
            make(norm_first=norm_first, dtype=options.get("dtype")), **options
        ),
        inputs={"hidden": HIDDEN, "input_mask": INPUT_MASK},
        output_shape=(2, 5, 8),
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("hidden_act", sorted(FORMULAS))
def test_is_post_norm_with_the_activation_that_was_named(hidden_act):
    block = built(hidden_act)
    x = np.asarray(X, "float64")
    x = formula(block.attention_norm, x + attended(block, x))
    expected = formula(block.feed_forward_norm, x + formula(block.feed_forward, x))
    np.testing.assert_allclose(np.asarray(block(X, layout=LAYOUT)), expected, atol=1e-5)


@pytest.mark.parametrize("hidden_act", sorted(FORMULAS))
def test_is_pre_norm_where_the_norm_comes_first(hidden_act):
    block = built(hidden_act, norm_first=True)
    x = np.asarray(X, "float64")
    x = x + attended(block, formula(block.attention_norm, x))
    expected = x + formula(block.feed_forward, formula(block.feed_forward_norm, x))
    np.testing.assert_allclose(np.asarray(block(X, layout=LAYOUT)), expected, atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_the_first_token_alone_comes_out_as_it_does_among_all(norm_first, training):
    block = built(norm_first=norm_first)
    options = {"layout": LAYOUT, "training": training}
    every = LAYOUT.pad(block(X, **options))
    first = block(X, cls_only=True, **options)
    assert first.shape == (2, 8)
    np.testing.assert_allclose(np.asarray(first), np.asarray(every)[:, 0], atol=2e-6)


@pytest.mark.parametrize("cls_only", [False, True])
def test_gives_the_probabilities_of_its_attention_beside_the_same_output(cls_only):
    block = built()
    options = {"layout": LAYOUT, "cls_only": cls_only}
    y, probabilities = block(X, return_probabilities=True, **options)
    _, expected = block.attention(X, return_probabilities=True, **options)
    assert probabilities.shape == (2, 2, 1 if cls_only else 5, 5)
    np.testing.assert_array_equal(np.asarray(probabilities), np.asarray(expected))
    np.testing.assert_allclose(np.asarray(y), np.asarray(block(X, **options)), atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_follows_both_sub_layers(norm_first):
    block = make(dropout=0.5, norm_first=norm_first)
    quiet = np.asarray(block(X, layout=LAYOUT))
    assert not np.allclose(quiet, np.asarray(block(X, layout=LAYOUT, training=True)))
    # With one sub-layer's outputs at nothing, what is dropped is the other's.
    ends = block.attention.projection.kernel, block.feed_forward.dense_out.kernel
    kernels = [np.array(kernel) for kernel in ends]
    for end, value in zip(ends, kernels, strict=True):
        end.assign(np.zeros_like(value))
        quiet = np.asarray(block(X, layout=LAYOUT))
        assert not np.allclose(quiet, np.asarray(block(X, layout=LAYOUT, training=True)))
        end.assign(value)
    # With both at nothing, there is nothing to drop.
    for end in ends:
        end.assign(np.zeros(end.shape))
    y = np.asarray(block(X, layout=LAYOUT, training=True))
    x = np.asarray(X)
    np.testing.assert_allclose(y, x if norm_first else norm(norm(x)), atol=1e-5)


def test_every_part_has_a_place_of_its_own():
    block = make(name="block")
    block.build((None, 8))
    paths = [weight.path for weight in block.trainable_weights]
    assert len(set(paths)) == len(paths) == 12
    assert {path.split("/")[1] for path in paths} == {
        "attention",
        "attention_norm",
        "feed_forward",
        "feed_forward_norm",
    }


def test_a_gate_multiplies_the_activation():
    layer = FeedForward(
        hidden_size=8,
        intermediate_size=12,
        hidden_act="gelu",
        dropout=0.0,
        initializer_range=0.5,
        use_bias=False,
        has_gate=True,
    )
    layer.build()
    kernel_in, kernel_out = (np.asarray(w.value, "float64") for w in layer.weights)
    assert kernel_in.shape == (8, 24)
    x = HIDDEN.reshape(-1, 8).astype("float64") @ kernel_in
    expected = (FORMULAS["gelu"](x[:, :12]) * x[:, 12:]) @ kernel_out
    y = np.asarray(layer(HIDDEN.reshape(-1, 8)))
    np.testing.assert_allclose(y, expected, atol=2e-5)
