"""Laws of the encoder, on whichever backend Keras runs (parity is in tests/checkpoints)."""

import keras
import numpy as np
import pytest
from keras_bert.mixed_encoder import MixedEncoder

from keras_bert.encoders.bert.config import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.heads.lm_head import LMHead

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 12,
    "initializer_range": 0.3,
}
RNG = np.random.default_rng(11)
# Most tests have a batch of these, or one of them alone: on JAX every shape is compiled anew.
LENGTHS = (3, 10, 1, 7)


def config(**changes):
    return BertConfig(**{**SIZES, **changes})


def rows(*lengths, width=None):
    """Random texts of these lengths, padded to `width` (B, S) with rubbish under the padding."""
    width = width or max(lengths)
    ids = RNG.integers(5, 40, (len(lengths), width)).astype("int32")
    mask = (np.arange(width) < np.array(lengths)[:, None]).astype("int32")
    segments = (np.arange(width) >= np.array(lengths)[:, None] // 2).astype("int32")
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def run(model, inputs):
    # On JAX one compiled call: every operation would be compiled by itself, for every shape.
    call = model.predict_on_batch if keras.backend.backend() == "jax" else model
    return {
        name: [np.asarray(x) for x in y] if isinstance(y, list | tuple) else np.asarray(y)
        for name, y in call(inputs).items()
    }


VARIANTS = {
    "bert": {},
    "roberta": {"model_type": "roberta", "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "causal": {"is_decoder": True},
}


def variant(name, **changes):
    encoder = BertEncoder(config(**VARIANTS[name], **changes))
    if name == "roberta":
        return encoder, lambda x: {**x, "segment_ids": np.zeros_like(x["segment_ids"])}
    return encoder, lambda x: x


@pytest.mark.parametrize("name", VARIANTS)
def test_padded_equals_unpadded(name):
    encoder, adapt = variant(name)
    batch = adapt(rows(*LENGTHS))
    together = run(encoder, batch)
    for row, length in enumerate(batch["input_mask"].sum(1)):
        alone = run(encoder, {key: x[row : row + 1, :length] for key, x in batch.items()})
        difference = together["sequence_output"][row, :length] - alone["sequence_output"][0]
        assert np.abs(difference).max() < 1e-5
        assert np.abs(together["pooled_output"][row] - alone["pooled_output"][0]).max() < 1e-5


@pytest.mark.parametrize("name", VARIANTS)
def test_who_reads_the_pooled_output_alone_gets_the_same(name):
    """… of which the last block computes the first token only, trained or not."""
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder, adapt = variant(name, **none)
    batch = adapt(rows(*LENGTHS))
    for training in (False, True):
        both = encoder(batch, training=training)
        alone = encoder(batch, training=training, reads=("pooled_output",))
        assert set(alone) == {"pooled_output"}
        pooled = [np.asarray(outputs["pooled_output"]) for outputs in (both, alone)]
        np.testing.assert_allclose(*pooled, atol=1e-5)
    assert set(encoder(batch, reads=("pooled_output", "sequence_output"))) == set(both)


@pytest.mark.parametrize(
    "reads", [["nothing"], ("pooled_output", "input_mask"), "pooled_output", [], 3]
)
def test_names_of_outputs_that_are_none_are_refused(reads):
    encoder, _ = variant("bert")
    for asked in (encoder, MixedEncoder(encoder)):
        with pytest.raises(ValueError, match="`reads` must be a list of names of outputs: sequ"):
            asked(rows(*LENGTHS), reads=reads)


@pytest.mark.parametrize("config", [{"hidden_size": 8}, "tiny", None])
def test_what_is_no_config_and_what_is_no_encoder(config):
    with pytest.raises(ValueError, match="`config` must be a `BertConfig`"):
        BertEncoder(config)
    with pytest.raises(ValueError, match="`encoder` must be a `BertEncoder`. Received: a "):
        MixedEncoder(config)


def test_the_last_block_has_a_row_a_text_where_the_first_token_is_read(monkeypatch):
    encoder, _ = variant("bert")
    batch = rows(*LENGTHS)
    encoder(batch, reads=("pooled_output",))  # makes the way there
    last, seen = encoder.blocks[-1].feedforward_in, []
    call = type(last).call
    monkeypatch.setattr(last, "call", lambda x, **options: seen.append(x.shape) or call(last, x))
    encoder(batch, reads=("pooled_output",))
    encoder(batch)
    assert [len(shape) for shape in seen] == [2, 2]
    assert seen[0][0] == len(LENGTHS) < seen[1][0]


@pytest.mark.parametrize("name", VARIANTS)
def test_packed_equals_padded(name):
    encoder, adapt = variant(name)
    # Rows of ten, the second with six of padding, the third with two, the fourth with one text.
    places = [(0, 0, 3), (0, 3, 10), (1, 0, 1), (1, 1, 4), (2, 0, 7), (2, 7, 8), (3, 0, 10)]
    texts = adapt(rows(*(end - start for _, start, end in places)))
    packed = {
        key: np.zeros((4, 10), "int32") for key in ("input_ids", "segment_ids", "text_numbers")
    }
    for number, (row, start, end) in enumerate(places, 1):
        for key in ("input_ids", "segment_ids"):
            packed[key][row, start:end] = texts[key][number - 1, : end - start]
        packed["text_numbers"][row, start:end] = number
    together = run(encoder.view(packed=True), packed)["sequence_output"]
    alone = run(encoder, texts)["sequence_output"]
    for number, (row, start, end) in enumerate(places):
        assert np.abs(together[row, start:end] - alone[number, : end - start]).max() < 1e-5


def test_an_encoder_made_for_packed_rows_takes_them_itself():
    encoder = BertEncoder(config(), packed=True)
    numbers = np.repeat([[1, 1, 2, 2, 2, 2, 3, 3, 3, 0]], 4, axis=0).astype("int32")
    x = {"input_ids": numbers + 5, "text_numbers": numbers, "segment_ids": 0 * numbers}
    view = run(encoder.view(packed=True), x)
    np.testing.assert_allclose(
        run(encoder, x)["sequence_output"], view["sequence_output"], atol=1e-6
    )


@pytest.mark.parametrize("packed", [False, True])
def test_causal_sees_only_what_came_before(packed):
    encoder = BertEncoder(config())
    causal = encoder.view(causal=True, packed=packed)
    batch = rows(10, 10, 10, 10)
    if packed:
        batch["text_numbers"] = batch.pop("input_mask")
    changed = {key: x.copy() for key, x in batch.items()}
    changed["input_ids"][:, 5] = (changed["input_ids"][:, 5] - 5 + 1) % 35 + 5
    before, after = (run(causal, x)["sequence_output"] for x in (batch, changed))
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert (np.abs(before - after)[:, 5:].max(-1) > 1e-3).all()
    both = [run(encoder.view(packed=packed), x)["sequence_output"] for x in (batch, changed)]
    assert (np.abs(both[0] - both[1]).max(-1) > 1e-4).all()


def test_hidden_states_and_attention_on_request():
    encoder = BertEncoder(config())
    batch = rows(*LENGTHS)
    plain = run(encoder, batch)
    seen = run(encoder.view(hidden_states=True, attention_probabilities=True), batch)
    assert set(plain) == {"sequence_output", "pooled_output"}
    for name in plain:
        np.testing.assert_allclose(seen[name], plain[name], atol=1e-5)
    assert [x.shape for x in seen["hidden_states"]] == [(4, 10, 16)] * 3
    np.testing.assert_array_equal(seen["hidden_states"][-1], seen["sequence_output"])
    assert [x.shape for x in seen["attention_probabilities"]] == [(4, 4, 10, 10)] * 2
    for probabilities in seen["attention_probabilities"]:
        np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
        assert probabilities[0, :, :, 3:].max() == 0  # padding


def test_without_a_pooler_there_is_no_pooled_output():
    encoder = BertEncoder(config(add_pooling_layer=False))
    assert set(run(encoder, rows(3))) == {"sequence_output"}
    assert not any("pooler" in w.path for w in encoder.weights)


def test_a_boolean_mask_is_as_good():
    encoder = BertEncoder(config())
    batch = rows(*LENGTHS)
    boolean = {**batch, "input_mask": batch["input_mask"].astype(bool)}
    np.testing.assert_array_equal(
        run(encoder, batch)["sequence_output"], run(encoder, boolean)["sequence_output"]
    )


def test_names_of_inputs_are_checked():
    """Keras would take the inputs in alphabetical order, whatever they are called."""
    encoder = BertEncoder(config())
    batch = rows(3)
    with pytest.raises(ValueError, match="input_ids, input_mask, segment_ids. Received"):
        encoder({**batch, "masked_lm_positions": batch["input_ids"]})
    with pytest.raises(ValueError, match="input_mask"):
        encoder({"input_ids": batch["input_ids"], "segment_ids": batch["segment_ids"]})


def test_a_row_longer_than_the_positions_is_refused():
    with pytest.raises(ValueError, match="length=13, positions=12"):
        BertEncoder(config())(rows(13))


def test_saves_and_loads_as_keras_does(tmp_path):
    encoder = BertEncoder(config(hidden_act="gelu_new"))
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    assert type(loaded) is BertEncoder and loaded.config == encoder.config
    batch = rows(*LENGTHS)
    np.testing.assert_array_equal(
        run(encoder, batch)["pooled_output"], run(loaded, batch)["pooled_output"]
    )
    assert [w.path for w in loaded.weights] == [w.path for w in encoder.weights]


def test_every_variable_has_a_path_of_its_own():
    encoder = BertEncoder(config(), name="encoder")
    paths = [v.path for v in encoder.variables]
    assert len(set(paths)) == len(paths)
    assert "block_1/attention/query/kernel" in paths


def test_mixed_bfloat16_computes_in_bfloat16_near_float32():
    encoder = BertEncoder(config())
    mixed = BertEncoder(config(), dtype="mixed_bfloat16")
    for target, source in zip(mixed.weights, encoder.weights, strict=True):
        if "seed" not in target.path:
            target.assign(source)
    batch = rows(*LENGTHS)
    y = mixed(batch)["sequence_output"]
    assert keras.backend.standardize_dtype(y.dtype) == "bfloat16"
    assert all(w.dtype == "float32" for w in mixed.trainable_weights)
    y = np.asarray(keras.ops.cast(y, "float32"))
    # Bfloat16 has 8 bits: rounding of 0.4 % a step, over five normalisations of outputs near 1.
    assert np.abs(y - run(encoder, batch)["sequence_output"]).max() < 0.15
    assert np.abs(y - run(encoder, batch)["sequence_output"]).mean() < 0.02


def test_trains_under_xla():
    keras.utils.set_random_seed(3)
    encoder = BertEncoder(config(num_hidden_layers=1))
    batch = rows(6, 9, 4, 12)
    head = keras.layers.Dense(2)
    symbols = {name: keras.Input((None,), dtype="int32", name=name) for name in batch}
    model = keras.Model(symbols, head(encoder(symbols)["pooled_output"]))
    model.compile(
        optimizer=keras.optimizers.SGD(0.3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=True,
    )
    labels = np.array([0, 1, 1, 0])
    losses = model.fit(batch, labels, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < 0.2 < 0.5 < losses[0]


@pytest.fixture
def quick_weights(monkeypatch):
    """Weights of zero: drawing 336 million random numbers takes half a minute."""

    def zeros(self, shape, dtype=None, **kwargs):
        return keras.ops.zeros(shape, dtype)

    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", zeros)


def count(model):
    return sum(int(np.prod(w.shape)) for w in model.trainable_weights)


@pytest.mark.parametrize(
    "name, millions",
    [("tiny", 4.4), ("mini", 11.3), ("small", 29.1), ("medium", 41.7), ("base", 110.1)],
)
def test_parameter_counts_are_the_published_ones(name, millions, quick_weights):
    """Turc et al. 2019, table 1, and Devlin et al. 2018: with pooler and masked-LM head."""
    encoder = BertEncoder(BertConfig.preset(name, vocab_size=30522))
    assert round((count(encoder) + count_head(encoder)) / 1e6, 1) == millions


def test_parameter_counts_of_large(quick_weights):
    encoder = BertEncoder(BertConfig.preset("large", vocab_size=30522))
    assert count(encoder) == 335_141_888
    assert round((count(encoder) + count_head(encoder)) / 1e6, 1) == 336.2


def count_head(encoder):
    """Weights that the masked-LM head adds to its encoder's."""
    width = encoder.config.hidden_size
    head = LMHead(
        token_embedding=encoder.token_embedding,
        hidden_act="gelu",
        layer_norm_eps=1e-12,
        initializer_range=0.02,
    )
    head.build((None, None, width), (None, None))
    shared = int(np.prod(encoder.token_embedding.embeddings.shape))
    return count(head) - shared
