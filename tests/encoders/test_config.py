import dataclasses
import json

import pytest

from keras_bert.base.errors import InputError, InputWarning
from keras_bert.encoders import (
    config_class,
    encoder_class,
    model_type_of_class,
    new_encoder,
    presets,
    read_config,
)
from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.config import EncoderConfig
from keras_bert.encoders.roberta import RobertaConfig
from keras_bert.encoders.roberta.encoder import RobertaEncoder
from tests.peers import transformers

SIZES = {
    "vocab_size": 30,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


def test_survives_its_own_dictionary_and_json(tmp_path):
    config = BertConfig(
        **SIZES,
        hidden_act="relu",
        layer_norm_eps=1e-5,
        is_decoder=True,
        classifier_dropout=0.3,
        initializer_range=0.1,
        max_position_embeddings=9,
        type_vocab_size=1,
        hidden_dropout_prob=0.2,
        attention_probs_dropout_prob=0,
        pad_token_id=3,
        extra_keys={"xla_device": True},
    )
    defaults = BertConfig(**SIZES)
    for field in dataclasses.fields(BertConfig):
        if field.name not in (*SIZES, "generation_keys", "model_type"):
            assert getattr(config, field.name) != getattr(defaults, field.name), field.name
    assert BertConfig.from_dict(config.to_dict()) == config
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_dict()))
    assert BertConfig.from_file(path) == config


def test_defaults_of_missing_keys_are_those_of_transformers():
    config = BertConfig.from_dict({**SIZES})
    assert config.layer_norm_eps == 1e-12
    assert config.pad_token_id == 0 and config.position_offset == 0
    roberta = RobertaConfig.from_dict({**SIZES})
    assert roberta.pad_token_id == 1 and roberta.position_offset == 2
    assert roberta.max_length == 510
    assert RobertaConfig.from_dict({**SIZES, "pad_token_id": None}) == roberta
    with pytest.raises(InputError, match="above the position offset"):
        RobertaConfig.from_dict({**SIZES, "max_position_embeddings": 2})


@pytest.mark.peers
def test_agrees_with_transformers_on_every_default():
    for model_type, their_config in [
        ("bert", transformers.BertConfig(**SIZES)),
        ("roberta", transformers.RobertaConfig(**SIZES)),
    ]:
        our_config = read_config({**SIZES, "model_type": model_type}, source="x")
        for field in dataclasses.fields(BertConfig):
            if field.name not in ("extra_keys", "generation_keys"):
                assert getattr(our_config, field.name) == getattr(their_config, field.name), (
                    field.name
                )
        assert read_config(their_config.to_dict(), source="x") == our_config


@pytest.mark.parametrize(
    "name, hidden_size, layers, heads",
    [
        ("tiny", 128, 2, 2),
        ("mini", 256, 4, 4),
        ("small", 512, 4, 8),
        ("medium", 512, 8, 8),
        ("base", 768, 12, 12),
        ("large", 1024, 24, 16),
    ],
)
def test_presets_are_the_published_sizes(name, hidden_size, layers, heads):
    config = BertConfig.preset(name, vocab_size=7)
    assert (config.hidden_size, config.num_hidden_layers) == (hidden_size, layers)
    assert (config.num_attention_heads, config.intermediate_size) == (heads, 4 * hidden_size)
    assert config.vocab_size == 7


def test_a_preset_takes_changes_and_rejects_other_names():
    assert BertConfig.preset("tiny", vocab_size=7, hidden_act="relu").hidden_act == "relu"
    with pytest.raises(InputError, match="'huge'.*tiny, mini"):
        BertConfig.preset("huge", vocab_size=7)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"hidden_size": 9}, "multiple of `num_attention_heads`.*hidden_size=9"),
        ({"hidden_act": "swish"}, "`hidden_act` must be one of.*'swish'"),
        ({"vocab_size": "30"}, "`vocab_size` must be a whole number.*'30'"),
        ({"vocab_size": True}, "`vocab_size` must be a whole number"),
        ({"vocab_size": 3.5}, "`vocab_size` must be a whole number"),
        ({"hidden_dropout_prob": 1}, "`hidden_dropout_prob` must be in"),
        ({"hidden_dropout_prob": None}, "`hidden_dropout_prob` must be a number"),
        ({"layer_norm_eps": 0}, "`layer_norm_eps` must be above 0"),
        ({"initializer_range": float("inf")}, "`initializer_range` must be a finite number"),
        ({"initializer_range": 10**400}, "`initializer_range` must be a finite number"),
        ({"vocab_size": 10**400}, "`vocab_size` must be at most 9223372036854775807"),
        ({"num_hidden_layers": 0}, "`num_hidden_layers` must be at least 1"),
        ({"num_hidden_layers": 10**9}, "`num_hidden_layers` must be at most 1,000"),
        ({"pad_token_id": 30}, "`pad_token_id` must be below `vocab_size`"),
        ({"is_decoder": 1}, "`is_decoder` must be true or false"),
        ({"model_type": "gpt2"}, "'gpt2'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type = 'relative_key'"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings = 'no'"),
        ({"rope_theta": 1e4}, "rope_theta = 10000.0, .* cannot compute. Supported: no value"),
        ({"pre_norm": True}, "pre_norm = True, which .* cannot compute. Supported: False"),
        ({"alibi_starting_size": 512}, "alibi_starting_size = 512, which .* cannot compute"),
    ],
)
def test_rejects_invalid_values(change, message):
    with pytest.raises(InputError, match=message) as error:
        BertConfig.from_dict({**SIZES, **change}, source="a/config.json")
    assert "a/config.json" in str(error.value)


@pytest.mark.parametrize("name", ["num_hidden_layers", "num_highway_layers"])
def test_no_memory_is_taken_for_layers_that_no_model_has(name):
    sizes = {"vocab_size": 30, "hidden_size": 8, "lstm_size": 8, "num_hidden_layers": 1}
    sizes |= {"model_type": "bilm", "character_filters": [[1, 2]], name: 10**9}
    with pytest.raises(InputError, match=f"`{name}`.* must be at most 1,000"):
        read_config(sizes, source="a/config.json")


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_unknown_keys_are_kept():
    """Folders in the wild are full of keys that other programs have put there."""
    extra = {
        "sentence_transformers": {"version": "5.1"},
        "unsloth_version": "2025.1",
        "extra_keys": [3],  # the name of the attribute, too
    }
    ignored = {"transformers_version": "5.0", "rope_scaling": None, "architectures": ["BertModel"]}
    config = BertConfig.from_dict({**SIZES, **extra, **ignored})
    assert config.extra_keys == extra
    assert config.to_dict() == {**BertConfig(**SIZES).to_dict(), **extra}
    assert BertConfig.from_dict(config.to_dict()) == config
    changed = dataclasses.replace(config, is_decoder=True)
    assert changed.extra_keys == extra and changed != BertConfig(**SIZES, is_decoder=True)
    assert hash(config) == hash(BertConfig.from_dict(config.to_dict()))
    with pytest.warns(InputWarning) as warned:
        config.report_extra_keys(source="a/config.json")
    assert str(warned[0].message) == (
        "a/config.json: unknown keys are kept, but not used: 'unsloth_version', 'extra_keys'."
    )


def test_an_extra_key_must_not_be_a_field_or_too_deep():
    with pytest.raises(ValueError, match="`extra_keys` must not contain fields.*'vocab_size'"):
        BertConfig(**SIZES, extra_keys={"vocab_size": 3})
    BertConfig.from_dict({**SIZES, "deep": nested(50)})
    with pytest.raises(InputError, match="'deep' is nested more than 50 levels deep"):
        BertConfig.from_dict({**SIZES, "deep": nested(51)})


def test_a_config_of_another_encoder():
    """`EncoderConfig` gives to each: fields, unknown keys, refused values."""

    @dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
    class GruConfig(EncoderConfig):
        MODEL_TYPES = ("gru",)
        SUPPORTED_VALUES = {"bidirectional": (False,)}
        units: int
        vocab_size: int = 9
        hidden_size: int = 4
        model_type: str = "gru"

        def parameter_count(self):
            return 1234

    config = GruConfig.from_dict({"units": 3, "xla_device": True, "transformers_version": "5"})
    sizes = {"vocab_size": 9, "hidden_size": 4}
    fields = {"units": 3, "model_type": "gru"} | sizes
    assert config.to_dict() == {**fields, "xla_device": True}
    assert (config.max_length, config.num_segments, config.is_causal) == (None, 0, False)
    assert config.for_pretraining("fill-mask") is config
    with pytest.raises(InputError, match="gru encoder cannot be pre-trained as causal-lm"):
        config.for_pretraining("causal-lm")
    expected = "gru, hidden size 4, 9 tokens in the vocabulary, 1,234 parameters"
    assert config.described == expected and repr(config) == f"GruConfig({expected})"
    for invalid, message in [
        ({"units": 3, "bidirectional": True}, "bidirectional = True, which"),
        ({}, "lacks the field 'units'"),
        ({"model_type": "bert"}, r"describes a 'bert' model\. This encoder reads .* gru"),
    ]:
        with pytest.raises(InputError, match=message):
            GruConfig.from_dict(invalid)


def test_what_tasks_and_training_ask_of_a_config():
    config = BertConfig(**SIZES, max_position_embeddings=9)
    assert (config.max_length, config.num_segments, config.num_hidden_states) == (9, 2, 3)
    assert not config.is_causal and BertConfig(**SIZES, is_decoder=True).is_causal
    roberta = RobertaConfig(**SIZES, max_position_embeddings=9, type_vocab_size=1)
    assert (roberta.max_length, roberta.num_segments) == (7, 0)
    assert config.head_dropout("classifier") == 0.1
    assert BertConfig(**SIZES, hidden_dropout_prob=0.3).head_dropout("tagger") == 0.3
    head_settings = {"classifier_dropout": 0.0, "initializer_range": 0.3, "layer_norm_eps": 1e-5}
    config = BertConfig(**SIZES, hidden_act="relu", **head_settings)
    assert (config.head_dropout("classifier"), config.head_initializer_range) == (0.0, 0.3)
    assert (config.head_layer_norm_eps, config.head_activation) == (1e-5, "relu")
    for size in ("2 layers", "hidden size 8", "2 heads", "30 tokens", "up to 512 tokens"):
        assert size in config.described
    assert f"{config.parameter_count():,} parameters" in repr(config)
    html = config._repr_html_()
    assert all(name in html for name in config.to_dict())


@pytest.mark.parametrize("causal", [True, False])
def test_for_pretraining_it_is_causal_where_the_task_is(causal):
    config = BertConfig(**SIZES, is_decoder=causal)
    for task_type in ("pretrainer", "sentence-order-pretrainer", "fill-mask", "causal-lm"):
        pretrained = config.for_pretraining(task_type)
        assert pretrained.is_decoder == (task_type == "causal-lm")
        assert dataclasses.replace(pretrained, is_decoder=causal) == config


@pytest.mark.parametrize("has_pooler", [True, False])
def test_a_key_of_earlier_versions_is_read_and_not_written(has_pooler):
    """It said whether there is a pooler. Interrupted runs have stored a hash of it."""
    config = BertConfig.from_dict({**SIZES, "add_pooling_layer": has_pooler})
    assert config == BertConfig(**SIZES) and "add_pooling_layer" not in config.to_dict()
    keys = list(config.identity())
    assert config.identity() == {**config.to_dict(), "add_pooling_layer": True}
    assert keys[keys.index("is_decoder") + 1] == "add_pooling_layer"


def test_the_encoders_by_model_type():
    for model_type, ours in (
        ("bert", (BertConfig, BertEncoder)),
        ("roberta", (RobertaConfig, RobertaEncoder)),
    ):
        assert (config_class(model_type), encoder_class(model_type)) == ours
        config = read_config({**SIZES, "model_type": model_type}, source="a/config.json")
        assert config == ours[0](**SIZES)
    with pytest.raises(ValueError, match="must be a `BertConfig`"):  # positions begin elsewhere
        BertEncoder(RobertaConfig(**SIZES))
    for name, expected in (
        ("RobertaForMaskedLM", "roberta"),
        ("BertModel", "bert"),
        ("GPT2LMHeadModel", "gpt2"),
        ("OpenAIGPTModel", "openai-gpt"),
        ("T5Model", None),
    ):
        assert model_type_of_class(name) == expected
    assert read_config(SIZES, source="a/config.json").model_type == "bert"
    assert type(new_encoder(BertConfig(**SIZES))) is BertEncoder
    names = ["tiny", "mini", "small", "medium", "base", "large"]
    assert [name for name, config in presets().items() if config is BertConfig] == names
    for find in (config_class, encoder_class):
        with pytest.raises(InputError, match="Unknown model type 't5'. Supported: bert"):
            find("t5")
    for model_type in ("t5", None, 3, ["bert"]):
        with pytest.raises(InputError, match="a/config.json describes a .* Supported model types"):
            read_config({**SIZES, "model_type": model_type}, source="a/config.json")


def test_a_missing_size_is_named():
    sizes = {name: value for name, value in SIZES.items() if name != "intermediate_size"}
    with pytest.raises(InputError, match="lacks the field 'intermediate_size'"):
        BertConfig.from_dict(sizes)


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "no file"),
        (b'{"vocab_size": 3,\n "hidden', "line 2: this is not JSON"),
        (b"[1]", "JSON object, not a list"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"id2label": {"0": "\\ud83d\\ude00 \\\\ud800 \\uDFFF"}}', r"\(\\uDFFF\), which is not"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path, content, message):
    path = tmp_path / "config.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        BertConfig.from_file(path)
    assert "config.json" in str(error.value)


def test_is_frozen_and_takes_keywords_only():
    config = BertConfig(**SIZES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.vocab_size = 4
    with pytest.raises(TypeError):
        BertConfig(30, 8, 2, 2, 16)


def test_the_ids_with_which_a_text_begins_and_ends_are_kept_for_other_programs():
    ids = {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    config = BertConfig.from_dict({**SIZES, **ids})
    assert config.generation_keys == ids and not config.extra_keys


@pytest.mark.parametrize(
    "given", [{"rope_theta": 1e4, "rope_type": "default"}, [], 3, "x", {"a": 1}]
)
def test_modernbert_has_the_frequencies_of_each_type_of_layer(given):
    from keras_bert.encoders.modernbert import ModernBertConfig

    values = {"model_type": "modernbert", "vocab_size": 30, "rope_parameters": given}
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    values |= {**sizes, "intermediate_size": 8, "pad_token_id": 0}
    with pytest.raises(InputError, match="Expected an object for each of full_attention and"):
        ModernBertConfig.from_dict(values)
    del values["rope_parameters"]
    for name in ("silu", "tanh"):
        assert ModernBertConfig.from_dict({**values, "classifier_activation": name})
    with pytest.raises(InputError, match="`classifier_activation` must be one of gelu"):
        ModernBertConfig.from_dict({**values, "classifier_activation": "selu"})
