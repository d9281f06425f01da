"""A quantized encoder and its heads compute with their weights, not with how these are stored."""

import functools

import keras
import numpy as np
import pytest

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.heads.classification import NextSentenceHead
from keras_bert.layers.dense import dense
from tests.seeds import make_rng, shifted

pytestmark = pytest.mark.filterwarnings("ignore:.*`quantize`", "ignore:Invalid quantization mode")

SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 12,
    "initializer_range": 0.2,
}
RNG = make_rng(12)
TEXTS = 24  # of three, the six logits of next sentences may cancel, and errors be a large share
LENGTHS = np.resize([9, 4, 6], TEXTS)
IS_TOKEN = np.arange(9) < LENGTHS[:, None]
INPUTS = {
    "input_ids": RNG.integers(0, 40, (TEXTS, 9)).astype("int32"),
    "input_mask": IS_TOKEN.astype("int32"),
    "segment_ids": RNG.integers(0, 2, (TEXTS, 9)).astype("int32"),
    "masked_lm_positions": np.resize([[1, 3], [0, 2], [5, 4]], (TEXTS, 2)).astype("int32"),
}


def make(dtype):
    """An encoder with the heads of pre-training and a classifier's layer."""
    keras.utils.set_random_seed(shifted(4))
    encoder = BertEncoder(BertConfig(**SIZES), dtype=dtype)
    common = {"initializer_range": 0.2, "dtype": encoder.layer_policy}
    symbols = encoder.symbolic_inputs()
    positions = keras.Input((None,), dtype="int32", name="masked_lm_positions")
    encoded = encoder(symbols, outputs=("sequence_output", "first_output"))
    pooled = encoder.new_pooler()(encoded["first_output"])
    outputs = {
        "sequence": encoded["sequence_output"],
        "masked_lm": encoder.lm_head()(encoded["sequence_output"], positions),
        "next_sentence": NextSentenceHead(name="next_sentence_head", **common)(pooled),
        "classifier": dense(32, name="classifier", **common)(pooled),
    }
    return encoder, keras.Model({**symbols, "masked_lm_positions": positions}, outputs)


def run(model):
    outputs = {name: np.asarray(keras.ops.cast(y, "float32")) for name, y in model(INPUTS).items()}
    return {**outputs, "sequence": outputs["sequence"][IS_TOKEN]}


def pooled(encoder):
    """The output of an encoder that a classifier reads, (B, D)."""
    inputs = {name: INPUTS[name] for name in encoder.input_names}
    return np.asarray(encoder.pooler(encoder(inputs, outputs=("first_output",))["first_output"]))


def errors(outputs, expected):
    """The root of the mean squared error of each output, as a share of the output's own."""
    return {
        name: float(np.sqrt(np.mean((outputs[name] - y) ** 2) / np.mean(y**2)))
        for name, y in expected.items()
    }


@functools.cache
def quantized(mode, dtype):
    """-> the encoder, the model (both quantized), the model's outputs before. Not to be changed."""
    encoder, model = make(dtype)
    before = run(model)
    model.quantize(mode)
    return encoder, model, before


# Quantizing takes ten seconds on JAX, op by op; there one mode is saved and loaded.
ON_TENSORFLOW = pytest.mark.only_tensorflow


# int8 rounds weights and inputs to 1/127 of the largest of a row or column, float8 to four bits
# (and, uncalibrated, without a scale). The largest shares of forty draws are 0.028 and 0.152.
# Reading the bare whole numbers gives errors above 1.
@ON_TENSORFLOW
@pytest.mark.parametrize("mode, most", [("int8", 0.04), ("float8", 0.3)])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_is_near_the_model_that_was_quantized(mode, most, dtype):
    _, model, before = quantized(mode, dtype)
    differences = errors(run(model), before)
    assert max(differences.values()) < most, differences
    assert min(differences.values()) > 0.001, differences  # every part of it was quantized


@ON_TENSORFLOW
def test_int4_is_exactly_its_rounded_weights():
    """Keras rounds no inputs there, so that a float model with the rounded weights is the same."""
    _, model, _ = quantized("int4", "float32")
    _, rounded = make("float32")
    for layer, plain in zip(model._flatten_layers(), rounded._flatten_layers(), strict=True):
        if isinstance(layer, keras.layers.Embedding):
            plain.embeddings.assign(layer(np.arange(layer.input_dim)))
        elif isinstance(layer, keras.layers.Dense):
            width = plain.kernel.shape[0]
            plain.kernel.assign(layer(np.eye(width, dtype="float32")) - layer.bias)
    expected = run(rounded)
    for name, y in run(model).items():
        np.testing.assert_allclose(y, expected[name], atol=2e-5)


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("int8", marks=ON_TENSORFLOW),
        pytest.param("int4", marks=ON_TENSORFLOW),
        "float8",
    ],
)
def test_a_quantized_encoder_is_saved_and_loaded(mode, tmp_path):
    encoder, _, _ = quantized(mode, "float32")
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    assert loaded.blocks[0].attention.query_key_value.quantization_mode == mode
    np.testing.assert_array_equal(pooled(loaded), pooled(encoder))


@ON_TENSORFLOW
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_a_quantized_encoder_is_rebuilt_as_it_is(mode):
    """Its whole numbers mean nothing without their scales."""
    encoder, _, _ = quantized(mode, "float32")
    copy = encoder.rebuilt()
    assert copy.blocks[0].attention.query_key_value.quantization_mode == mode
    np.testing.assert_array_equal(pooled(copy), pooled(encoder))


@ON_TENSORFLOW
def test_a_new_head_over_a_quantized_encoder_trains():
    """The gradient passes through the whole numbers to what is not one."""
    saved, _, _ = quantized("int8", "mixed_bfloat16")
    encoder = BertEncoder.from_config(saved.get_config())
    encoder.set_weights(saved.get_weights())
    encoder.new_pooler().set_weights(saved.pooler.get_weights())
    head = NextSentenceHead(initializer_range=0.2, dtype=encoder.layer_policy, name="new")
    symbols = encoder.symbolic_inputs()
    first = encoder(symbols, outputs=("first_output",))["first_output"]
    model = keras.Model(symbols, head(encoder.pooler(first)))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    assert model.output.dtype == "float32"
    weights = model.trainable_weights
    assert not any("query_key_value/kernel" in w.path for w in weights)
    before = [np.array(w.value) for w in weights]
    inputs = {name: INPUTS[name] for name in encoder.input_names}
    model.fit(inputs, np.ones((TEXTS, 2)), verbose=0)
    moved = {
        w.path for w, old in zip(weights, before, strict=True) if not np.array_equal(w.value, old)
    }
    below = {"embeddings/layer_norm/beta", "block_0/attention/query_key_value/bias"}
    assert moved >= {"new/dense/kernel", *below}
