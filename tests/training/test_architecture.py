"""The settings that an architecture's file may have."""

import json
import re

import pytest

from keras_bert.base.errors import InputWarning
from keras_bert.encoders import new_encoder, presets, read_architecture, read_config
from keras_bert.encoders.bert import BertConfig
from keras_bert.training.settings import ARCHITECTURES
from tests.messages import raises_input_error
from tests.small_model import make_tokenizer


@pytest.fixture(scope="module")
def vocabulary():
    return make_tokenizer().vocabulary


@pytest.fixture(scope="module")
def sizes(vocabulary):
    return BertConfig.preset("tiny", vocab_size=len(vocabulary)).to_dict()


@pytest.mark.parametrize(
    "change",
    [{"vocab_size": 10**12}, {"max_position_embeddings": 10**15}],
)
def test_more_than_the_machine_holds_is_rejected_before_memory_is_taken(
    vocabulary, sizes, tmp_path, change
):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**sizes, **change}))
    count = f"{BertConfig(**{**sizes, **change}).parameter_count():,}"
    with raises_input_error(f"a model of {count} parameters, which take"):
        read_architecture(path, vocabulary)
    path.write_text(json.dumps(sizes))
    assert read_architecture(path, vocabulary).to_dict() == sizes


NARROW = {"hidden_size": 2, "intermediate_size": 2, "num_attention_heads": 1}


@pytest.mark.parametrize(
    "change, message",
    [
        ({**NARROW, "num_hidden_layers": 10**6}, "`num_hidden_layers` must be at most 1,000"),
        ({"model_type": "t5"}, "config.json describes a 't5' model. Supported ... bert"),
        ({"vocab_size": 88}, "has vocab_size 88, less than the 89 tokens of"),
    ],
)
def test_architectures_that_cannot_be_trained_are_rejected(
    vocabulary, sizes, tmp_path, change, message
):
    (tmp_path / "config.json").write_text(json.dumps({**sizes, **change}))
    with raises_input_error(message):
        read_architecture(tmp_path / "config.json", vocabulary)


def test_the_help_has_every_name():
    assert presets().keys() <= {*re.findall(r"[\w-]+", ARCHITECTURES)}


def test_a_name_is_a_published_size_of_any_encoder(vocabulary):
    for name, owner in presets().items():
        config = read_architecture(name, vocabulary)
        assert config == owner.preset(name, vocab_size=len(vocabulary))
    with raises_input_error("Unknown architecture 'huge'. Choose from tiny, mini, "):
        read_architecture("huge", vocabulary)


def test_unknown_keys_of_a_file_are_kept_and_reported(vocabulary, sizes, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**sizes, "xla_device": True}))
    with pytest.warns(InputWarning, match="unknown keys are kept, but not used: 'xla_device'"):
        assert read_architecture(path, vocabulary).extra_keys == {"xla_device": True}


def test_a_file_without_end_is_no_architecture(vocabulary):
    with raises_input_error("/dev/zero holds more than 256 MiB"):
        read_architecture("/dev/zero", vocabulary)


@pytest.mark.parametrize("model_type", ["bert", "roberta"])
def test_parameters_are_counted_without_making_them(sizes, model_type):
    changes = {"type_vocab_size": 3, "model_type": model_type}
    config = read_config({**sizes, **changes}, source="x")
    assert config.parameter_count() == new_encoder(config).count_params()
