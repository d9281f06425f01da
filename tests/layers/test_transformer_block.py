import keras
import numpy as np
import pytest

from keras_bert.layers.transformer_block import TransformerBlock
from tests.activation_formulas import FORMULAS
from tests.layer_checks import check_layer

RNG = np.random.default_rng(4)
HIDDEN = RNG.normal(size=(2, 5, 8)).astype("float32")
IS_TOKEN = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
MASK = IS_TOKEN[:, None, None, :]
SIZES = {
    "hidden_size": 8,
    "num_heads": 2,
    "intermediate_size": 12,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.5,
}


def make(hidden_act="gelu", **options):
    return TransformerBlock(**{**SIZES, "hidden_act": hidden_act, **options})


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def test_passes_the_layer_check(tmp_path):
    check_layer(
        make,
        inputs={"hidden": HIDDEN, "attention_mask": MASK},
        output_shape=(2, 5, 8),
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("hidden_act", sorted(FORMULAS))
def test_is_post_norm_with_the_activation_that_was_named(hidden_act):
    layer = make(hidden_act)
    y = np.asarray(layer(HIDDEN, MASK))
    attended = np.asarray(layer.attention(HIDDEN, MASK), "float64")
    hidden = norm(HIDDEN + attended)
    kernels = [layer.feedforward_in.kernel, layer.feedforward_out.kernel]
    first, second = (np.asarray(k.value, "float64") for k in kernels)
    expected = norm(hidden + FORMULAS[hidden_act](hidden @ first) @ second)
    np.testing.assert_allclose(y[IS_TOKEN], expected[IS_TOKEN], atol=5e-6)


@pytest.mark.parametrize(
    "return_probabilities, first_only, dtype",
    [
        (False, False, "float32"),
        (True, False, "mixed_bfloat16"),
        (False, True, "float32"),
        (True, True, "mixed_bfloat16"),
    ],
)
def test_what_it_says_it_gives_is_what_it_gives(return_probabilities, first_only, dtype):
    """Without the trace of `call` by which Keras would learn it."""
    layer = make(dtype=dtype)
    options = {"first_only": first_only, "return_probabilities": return_probabilities}
    symbolic = (
        keras.Input((None, 8), dtype=dtype.split("_")[-1]),
        keras.Input((1, 1, None), dtype="bool"),
    )
    said, given = layer(*symbolic, **options), layer(HIDDEN, MASK, **options)
    pairs = zip(said, given, strict=True) if return_probabilities else [(said, given)]
    for spec, value in pairs:
        sizes = {0: 2, **{axis: 5 for axis, size in enumerate(spec.shape) if axis and size is None}}
        shape = tuple(sizes.get(axis, size) for axis, size in enumerate(spec.shape))
        assert shape == tuple(value.shape)
        assert spec.dtype == keras.backend.standardize_dtype(value.dtype)


def test_a_mask_of_another_form_is_refused_before_there_is_a_batch():
    with pytest.raises(ValueError, match="`attention_mask` must be boolean"):
        make()(keras.Input((5, 8)), keras.Input((5, 5), dtype="bool"))


def test_the_two_forms_of_gelu_differ():
    a, b = make("gelu"), make("gelu_new")
    a(HIDDEN, MASK), b(HIDDEN, MASK)
    for target, source in zip(b.weights, a.weights, strict=True):
        target.assign(source)
    assert 1e-6 < np.abs(np.asarray(a(HIDDEN, MASK)) - np.asarray(b(HIDDEN, MASK))).max() < 1e-2


def test_dropout_follows_both_sub_layers():
    layer = make(dropout=0.5)
    layer(HIDDEN, MASK)
    quiet = np.asarray(layer(HIDDEN, MASK))
    assert not np.allclose(quiet, np.asarray(layer(HIDDEN, MASK, training=True)))
    # With the sub-layers' outputs at nothing, there is nothing to drop.
    for name in ("kernel", "bias"):
        for dense in (layer.attention.projection, layer.feedforward_out):
            getattr(dense, name).assign(np.zeros(getattr(dense, name).shape))
    y = np.asarray(layer(HIDDEN, MASK, training=True))
    np.testing.assert_allclose(y[IS_TOKEN], norm(norm(HIDDEN))[IS_TOKEN], atol=1e-5)


def test_an_activation_without_a_name_here_is_refused():
    with pytest.raises(ValueError, match="hidden_act.*'swish'"):
        make("swish")
