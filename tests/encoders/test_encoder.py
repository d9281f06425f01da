"""Laws of the encoder, on whichever backend Keras runs (parity is in tests/checkpoints)."""

import functools

import keras
import numpy as np
import pytest

from keras_bert.base.errors import InputError
from keras_bert.encoders import config_class, new_encoder
from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.encoder import OUTPUTS
from tests.seeds import make_rng, shifted

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 12,
    "initializer_range": 0.3,
}
RNG = make_rng(11)
# Most tests have a batch of these, or one of them alone: on JAX every shape is compiled anew.
LENGTHS = (3, 10, 1, 7)


def config(**changes):
    return config_class(changes.get("model_type", "bert"))(**{**SIZES, **changes})


def rows(*lengths, width=None):
    """Random texts of these lengths, padded to `width` (B, S) with rubbish under the padding."""
    width = width or max(lengths)
    ids = RNG.integers(5, 40, (len(lengths), width)).astype("int32")
    mask = (np.arange(width) < np.array(lengths)[:, None]).astype("int32")
    segments = (np.arange(width) >= np.array(lengths)[:, None] // 2).astype("int32")
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def run(encoder, inputs, **options):
    """-> the outputs by name, in numpy."""
    call = functools.partial(encoder, **options)
    if keras.backend.backend() == "jax":
        call = compiled(encoder, tuple(inputs), **options)
    outputs = call(inputs)
    assert set(outputs) == set(options.get("outputs", ["sequence_output"]))
    return keras.tree.map_structure(np.asarray, outputs)


@functools.cache
def compiled(encoder, names, **options):
    """On JAX one compiled call: every operation would be compiled by itself, for every shape."""
    symbols = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    return keras.Model(symbols, encoder(symbols, **options)).predict_on_batch


VARIANTS = {
    "bert": {},
    "roberta": {"model_type": "roberta", "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "causal": {"is_decoder": True},
}
BOTH = ("sequence_output", "first_output")


def variant(name, **changes):
    """-> an encoder, and what makes its inputs of those above."""
    encoder = new_encoder(config(**VARIANTS[name], **changes))
    return encoder, lambda x: {key: x[key] for key in x if key in encoder.input_names}


@pytest.mark.parametrize("name", VARIANTS)
def test_padded_equals_unpadded(name):
    encoder, adapt = variant(name)
    batch = adapt(rows(*LENGTHS))
    batch_outputs = run(encoder, batch, outputs=BOTH)
    for row, length in enumerate(batch["input_mask"].sum(1)):
        one = {key: x[row : row + 1, :length] for key, x in batch.items()}
        alone = run(encoder, one, outputs=BOTH)
        difference = batch_outputs["sequence_output"][row, :length] - alone["sequence_output"][0]
        assert np.abs(difference).max() < 1e-5
        assert np.abs(batch_outputs["first_output"][row] - alone["first_output"][0]).max() < 1e-5


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("lengths", [LENGTHS, (10, 10, 9, 10)])
def test_the_first_output_alone_is_the_same(name, lengths):
    """… of which the last block computes the first token only, trained or not."""
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder, adapt = variant(name, **no_dropout)
    batch = adapt(rows(*lengths))
    for training in (False, True):
        both = encoder(batch, training=training, outputs=BOTH)
        alone = encoder(batch, training=training, outputs=("first_output",))
        assert set(alone) == {"first_output"} and set(both) == set(BOTH)
        first = [np.asarray(outputs["first_output"]) for outputs in (both, alone)]
        np.testing.assert_allclose(*first, atol=1e-5)
        np.testing.assert_array_equal(first[0], np.asarray(both["sequence_output"])[:, 0])


@pytest.mark.parametrize(
    "outputs", [["nothing"], ("first_output", "input_mask"), "first_output", [], (), 3, None]
)
def test_unknown_outputs_are_rejected(outputs):
    encoder, _ = variant("bert")
    for inputs in (rows(*LENGTHS), encoder.symbolic_inputs()):
        with pytest.raises(ValueError, match="`outputs` must be a list of names of outputs: sequ"):
            encoder(inputs, outputs=outputs)


@pytest.mark.parametrize("outputs", [["first_output"], {"first_output"}])
def test_names_of_outputs_may_be_a_list_or_a_set(outputs):
    encoder, _ = variant("bert")
    batch = rows(3)
    expected = encoder(batch, outputs=("first_output",))["first_output"]
    first = encoder(batch, outputs=outputs)["first_output"]
    np.testing.assert_array_equal(np.asarray(first), np.asarray(expected))


@pytest.mark.parametrize("config", [{"hidden_size": 8}, "tiny", None])
def test_another_object_than_a_config_is_rejected(config):
    with pytest.raises(ValueError, match="`config` must be a `BertConfig`.*Received: a "):
        BertEncoder(config)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("outputs", [*([name] for name in OUTPUTS), OUTPUTS])
def test_the_output_spec_is_that_of_the_outputs(outputs, dtype):
    """Without the trace of `call` by which Keras would learn it."""
    encoder = BertEncoder(config(), dtype=dtype)
    said = encoder(encoder.symbolic_inputs(), outputs=outputs)
    given = encoder(rows(*LENGTHS), outputs=outputs)
    assert set(said) == set(given) == set(outputs)
    keras.tree.assert_same_structure(said, given)
    for spec, value in zip(keras.tree.flatten(said), keras.tree.flatten(given), strict=True):
        assert len(spec.shape) == len(value.shape)
        pairs = zip(spec.shape, value.shape, strict=True)
        unknown = {axis: size for axis, (declared, size) in enumerate(pairs) if declared != size}
        assert set(unknown.values()) <= {4, 10} and all(
            spec.shape[axis] is None for axis in unknown
        )
        assert spec.dtype == keras.backend.standardize_dtype(value.dtype)


def test_the_last_layer_computes_only_the_first_token_of_each_text(monkeypatch):
    encoder, _ = variant("bert")
    batch = rows(*LENGTHS)
    last, seen = encoder.blocks[-1].feed_forward.dense_in, []
    call = type(last).call
    monkeypatch.setattr(last, "call", lambda x, **options: seen.append(x.shape) or call(last, x))
    encoder(batch, outputs=("first_output",))
    encoder(batch)
    assert [len(shape) for shape in seen] == [2, 2]
    assert seen[0][0] == len(LENGTHS) < seen[1][0]


@pytest.mark.parametrize("name", VARIANTS)
def test_packed_equals_padded(name):
    encoder, adapt = variant(name)
    # Rows of ten, the second with six of padding, the third with two, the fourth with one text.
    places = [(0, 0, 3), (0, 3, 10), (1, 0, 1), (1, 1, 4), (2, 0, 7), (2, 7, 8), (3, 0, 10)]
    texts = adapt(rows(*(end - start for _, start, end in places)))
    names = [*(key for key in texts if key != "input_mask"), "sequence_ids"]
    packed = {key: np.zeros((4, 10), "int32") for key in names}
    for number, (row, start, end) in enumerate(places, 1):
        for key in set(names) - {"sequence_ids"}:
            packed[key][row, start:end] = texts[key][number - 1, : end - start]
        packed["sequence_ids"][row, start:end] = number
    packed_output = run(encoder, packed)["sequence_output"]
    alone = run(encoder, texts)["sequence_output"]
    for number, (row, start, end) in enumerate(places):
        assert np.abs(packed_output[row, start:end] - alone[number, : end - start]).max() < 1e-5


def test_a_packed_batch_of_single_sequences_equals_a_padded_one():
    encoder, _ = variant("bert")
    batch = rows(*LENGTHS)
    packed = {**batch, "sequence_ids": 7 * batch["input_mask"]}
    del packed["input_mask"]
    expected, packed_outputs = (run(encoder, x, outputs=BOTH) for x in (batch, packed))
    np.testing.assert_allclose(packed_outputs["first_output"], expected["first_output"], atol=1e-5)
    tokens = batch["input_mask"].astype(bool)
    packed_outputs, expected = (x["sequence_output"][tokens] for x in (packed_outputs, expected))
    np.testing.assert_allclose(packed_outputs, expected, atol=1e-5)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("is_decoder", [False, True])
def test_causal_sees_only_what_came_before(packed, is_decoder):
    """By the config, or as the call has it."""
    encoder = BertEncoder(config(is_decoder=is_decoder))
    batch = rows(10, 10, 10, 10)
    if packed:
        batch["sequence_ids"] = batch.pop("input_mask")
    changed = {key: x.copy() for key, x in batch.items()}
    changed["input_ids"][:, 5] = (changed["input_ids"][:, 5] - 5 + 1) % 35 + 5

    def outputs(**options):
        return [run(encoder, x, **options)["sequence_output"] for x in (batch, changed)]

    before, after = outputs(causal=True)
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert (np.abs(before - after)[:, 5:].max(-1) > 1e-3).all()
    both = outputs(causal=False)
    assert (np.abs(both[0] - both[1]).max(-1) > 1e-4).all()
    expected = (before, after) if is_decoder else both
    np.testing.assert_array_equal(outputs(), expected)


def test_hidden_states_and_attention_on_request():
    encoder = BertEncoder(config())
    batch = rows(*LENGTHS)
    plain = run(encoder, batch, outputs=BOTH)
    seen = run(encoder, batch, outputs=OUTPUTS)
    for name in plain:
        np.testing.assert_allclose(seen[name], plain[name], atol=1e-5)
    assert [x.shape for x in seen["hidden_states"]] == [(4, 10, 16)] * 3
    np.testing.assert_array_equal(seen["hidden_states"][-1], seen["sequence_output"])
    tokens = batch["input_mask"].astype(bool)
    embedded = np.asarray(encoder.embeddings(batch["input_ids"], batch["segment_ids"]))
    np.testing.assert_allclose(seen["hidden_states"][0][tokens], embedded[tokens], atol=1e-5)
    assert [x.shape for x in seen["attention_probabilities"]] == [(4, 4, 10, 10)] * 2
    for probabilities in seen["attention_probabilities"]:
        np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
        assert probabilities[0, :, :, 3:].max() == 0  # padding


READ_THE_POOLER = (
    *("pretrainer", "sentence-order-pretrainer", "multiple-choice"),
    *("classifier", "pair-classifier", "regression"),
)


def test_a_task_type_has_the_head_transform_of_its_class():
    encoder = BertEncoder(config())
    for task_type in ("fill-mask", "causal-lm", "tagger", "question-answering"):
        assert encoder.new_head_transform(task_type) is None and encoder.pooler is None
    for task_type in READ_THE_POOLER:
        assert encoder.new_head_transform(task_type) is encoder.pooler is not None


def test_a_head_transform_is_a_new_layer_with_the_weights_that_came_with_the_encoder():
    encoder = BertEncoder(config())
    loaded = encoder.new_pooler()
    assert encoder.new_head_transform("classifier") is loaded  # which no task had
    loaded.dense.bias.assign(np.arange(16))
    for other in (encoder, encoder.rebuilt()):
        transform = other.new_head_transform("multiple-choice")
        assert transform is other.pooler is not loaded
        np.testing.assert_array_equal(transform.dense.kernel, loaded.dense.kernel)
        np.testing.assert_array_equal(transform.dense.bias, np.arange(16))


def test_the_pooler_is_no_part_of_the_encoder():
    encoder = BertEncoder(config())
    encoder.new_head_transform("classifier")
    assert not any("pooler" in weight.path for weight in encoder.weights)
    assert encoder.count_params() == encoder.config.parameter_count()


def test_weights_that_came_without_a_pooler_are_read_at_all_tokens():
    encoder = BertEncoder(config())
    assert encoder.default_pooling == "cls"
    encoder.came_with_pooler = False
    assert encoder.default_pooling == encoder.rebuilt().default_pooling == "mean"
    encoder.new_pooler()
    assert encoder.default_pooling == "cls"


def test_a_causal_encoder_is_read_at_its_last_token():
    assert BertEncoder(config(is_decoder=True)).default_pooling == "last"


def test_layer_groups_hold_each_weight_once_from_the_input_upward():
    encoder = BertEncoder(config())
    groups = encoder.layer_groups
    paths_by_group = [
        [weight.path for layer in group for weight in layer.weights] for group in groups
    ]
    assert groups == [[encoder.embeddings], *([block] for block in encoder.blocks)]
    flat = sum(paths_by_group, [])
    assert len(set(flat)) == len(flat)
    assert {weight.path for weight in encoder.weights} == set(flat)


def test_the_lm_head_shares_the_token_embedding():
    encoder = BertEncoder(config())
    head = encoder.lm_head()
    hidden, positions = np.zeros((1, 3, 16), "float32"), np.zeros((1, 2), "int32")
    assert head(hidden, positions).shape == (1, 2, 40)
    assert head.token_embedding is encoder.token_embedding is encoder.embeddings.token_embedding
    assert head.transform.settings["hidden_act"] == encoder.config.hidden_act


def test_a_missing_capability_raises_its_own_message(monkeypatch):
    encoder = BertEncoder(config())
    encoder.require("packed", "layer-mix", "attention-probabilities")
    monkeypatch.setattr(BertEncoder, "LIMITS", {"packed": "It takes one sequence in a row."})
    encoder.require("layer-mix")
    with pytest.raises(InputError, match="^It takes one sequence in a row.$"):
        encoder.require("layer-mix", "packed")


def test_inputs_and_lengths_that_a_task_takes_for_it():
    encoder, _ = variant("bert")
    assert encoder.input_names == ("input_ids", "input_mask", "segment_ids")
    symbols = encoder.symbolic_inputs()
    assert tuple(symbols) == encoder.input_names
    assert all(x.shape == (None, None) and x.dtype == "int32" for x in symbols.values())
    assert variant("roberta")[0].input_names == ("input_ids", "input_mask")
    assert encoder.default_max_length(5) == 5 and encoder.default_max_length(128) == 12


def weights_of(encoder):
    return {weight.path: np.array(weight) for weight in encoder.weights}


def test_rebuilt_is_a_copy_with_the_same_weights():
    encoder = BertEncoder(config(extra_keys={"xla_device": True}))
    copy = encoder.rebuilt()
    assert type(copy) is BertEncoder and copy.config == encoder.config
    weights, copied = weights_of(encoder), weights_of(copy)
    assert weights.keys() == copied.keys()
    for path, weight in weights.items():
        np.testing.assert_array_equal(copied[path], weight)
    copy.token_embedding.embeddings.assign(np.zeros((40, 16)))
    np.testing.assert_array_equal(
        weights_of(encoder)[encoder.token_embedding.embeddings.path],
        weights[encoder.token_embedding.embeddings.path],
    )


def test_rebuilt_as_a_causal_model():
    encoder = BertEncoder(config())
    batch = rows(*LENGTHS)
    causal = encoder.rebuilt(is_decoder=True)
    assert causal.config.is_causal and not encoder.config.is_causal
    expected = run(encoder, batch, causal=True)["sequence_output"]
    np.testing.assert_array_equal(run(causal, batch)["sequence_output"], expected)
    by_config = encoder.rebuilt(config=causal.config)
    np.testing.assert_array_equal(run(by_config, batch)["sequence_output"], expected)


def test_rebuilt_with_more_tokens_keeps_those_that_it_had():
    encoder = BertEncoder(config())
    more = encoder.rebuilt(vocab_size=43)
    table, longer = (np.array(x.token_embedding.embeddings) for x in (encoder, more))
    assert longer.shape == (43, 16)
    np.testing.assert_array_equal(longer[:40], table)
    assert 0.1 < longer[40:].std() < 0.5 and not np.array_equal(longer[40], longer[41])
    batch = rows(*LENGTHS)
    expected = run(encoder, batch)["sequence_output"]
    np.testing.assert_array_equal(run(more, batch)["sequence_output"], expected)


def test_rebuilt_in_another_precision():
    encoder = BertEncoder(config())
    half = encoder.rebuilt(dtype="bfloat16")
    assert {weight.dtype for weight in half.weights} == {"bfloat16"}
    mixed = encoder.rebuilt(dtype="mixed_bfloat16")
    assert mixed.compute_dtype == "bfloat16"
    assert {weight.dtype for weight in mixed.weights} == {"float32"}
    for path, weight in weights_of(mixed).items():
        np.testing.assert_array_equal(weight, weights_of(encoder)[path])


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
    some = [
        {**batch, "masked_lm_positions": batch["input_ids"]},
        {name: batch[name] for name in ("input_ids", "segment_ids")},
        {name: batch[name] for name in ("input_ids", "input_mask")},
        {**batch, "sequence_ids": batch["input_mask"]},
        {},
    ]
    for inputs in some:
        with pytest.raises(ValueError, match="input_ids, input_mask, segment_ids. Received"):
            encoder(inputs)
    with pytest.raises(ValueError, match="input_ids, input_mask, segment_ids. Received"):
        encoder(batch["input_ids"])


def test_an_encoder_of_one_segment_takes_no_segment_ids():
    encoder, adapt = variant("roberta")
    batch = rows(*LENGTHS)
    assert encoder.config.num_segments == 0
    with pytest.raises(
        ValueError, match=r"of input_ids, input_mask. Received: \['input_ids', 'inp"
    ):
        encoder(batch)
    # Every token has the one segment's row.
    embedded = encoder.embeddings(batch["input_ids"], np.zeros_like(batch["segment_ids"]))
    first = run(encoder, adapt(batch), outputs=("hidden_states",))["hidden_states"][0]
    tokens = batch["input_mask"].astype(bool)
    np.testing.assert_allclose(first[tokens], np.asarray(embedded)[tokens], atol=1e-6)


@pytest.mark.parametrize("name", ["input_ids", "input_mask", "segment_ids"])
@pytest.mark.parametrize("shape", [(4, 6), (1, 10), (10,), (4, 1, 10)])
def test_inputs_of_different_shapes_are_rejected(name, shape):
    encoder = BertEncoder(config())
    batch = {**rows(*LENGTHS), name: np.ones(shape, "int32")}
    for inputs in (batch, {key: keras.KerasTensor(x.shape, "int32") for key, x in batch.items()}):
        with pytest.raises(ValueError, match=r"must be \(batch, sequence\), all of the same sizes"):
            encoder(inputs)


def test_a_sequence_longer_than_the_positions_is_rejected():
    with pytest.raises(ValueError, match="length=13, positions=12"):
        BertEncoder(config())(rows(13))


def test_saves_and_loads_as_keras_does(tmp_path):
    encoder = BertEncoder(config(hidden_act="gelu_new"))
    encoder.new_pooler()
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    assert type(loaded) is BertEncoder and loaded.config == encoder.config
    batch = rows(*LENGTHS)
    expected, outputs = (run(x, batch, outputs=BOTH) for x in (encoder, loaded))
    for name in BOTH:
        np.testing.assert_array_equal(outputs[name], expected[name])
    pooled = [np.asarray(x.pooler(expected["first_output"])) for x in (encoder, loaded)]
    np.testing.assert_array_equal(*pooled)
    assert [w.path for w in loaded.weights] == [w.path for w in encoder.weights]


def test_every_variable_has_a_path_of_its_own():
    encoder = BertEncoder(config(), name="encoder")
    paths = [v.path for v in encoder.variables]
    assert len(set(paths)) == len(paths)
    assert any(path.endswith("block_1/attention/query_key_value/kernel") for path in paths)


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


@pytest.mark.slow
def test_trains_under_xla():
    keras.utils.set_random_seed(shifted(3))
    encoder = BertEncoder(config(num_hidden_layers=1))
    batch = rows(6, 9, 4, 12)
    head = keras.layers.Dense(2)
    symbols = encoder.symbolic_inputs()
    first = encoder(symbols, outputs=("first_output",))["first_output"]
    model = keras.Model(symbols, head(encoder.new_pooler()(first)))
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
    """Weights of zero in half the memory: drawing 336 million numbers takes half a minute."""

    def zeros(self, shape, dtype=None, **kwargs):
        return keras.ops.zeros(shape, dtype)

    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", zeros)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float16")
    yield
    keras.config.set_dtype_policy(before)


def count(model):
    return sum(int(np.prod(w.shape)) for w in model.trainable_weights)


@pytest.mark.parametrize(
    "name, millions",
    [("tiny", 4.4), ("mini", 11.3), ("small", 29.1), ("medium", 41.7), ("base", 110.1)],
)
def test_parameter_counts_are_the_published_ones(name, millions, quick_weights):
    """Turc et al. 2019, table 1, and Devlin et al. 2018: with pooler and masked-LM head."""
    encoder = BertEncoder(BertConfig.preset(name, vocab_size=30522))
    heads = count(encoder.new_pooler()) + count_head(encoder)
    assert round((count(encoder) + heads) / 1e6, 1) == millions


@pytest.mark.slow
def test_parameter_counts_of_large(quick_weights):
    encoder = BertEncoder(BertConfig.preset("large", vocab_size=30522))
    with_pooler = count(encoder) + count(encoder.new_pooler())
    assert with_pooler == 335_141_888
    assert round((with_pooler + count_head(encoder)) / 1e6, 1) == 336.2


def count_head(encoder):
    """Weights that the masked-LM head adds to its encoder's."""
    head = encoder.lm_head()
    head.build((None, None, encoder.config.hidden_size), (None, None))
    shared = int(np.prod(encoder.token_embedding.embeddings.shape))
    return count(head) - shared
