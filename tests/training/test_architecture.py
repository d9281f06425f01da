"""What an architecture's file may ask for."""

import json

import pytest

from keras_bert.base.errors import InputError, InputWarning
from keras_bert.encoders import presets
from keras_bert.encoders.bert.config import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.training.starting_point import read_architecture
from tests.small_model import make_tokenizer


@pytest.fixture(scope="module")
def vocabulary():
    return make_tokenizer().vocabulary


@pytest.fixture(scope="module")
def sizes(vocabulary):
    return BertConfig.preset("tiny", vocab_size=len(vocabulary)).to_dict()


@pytest.mark.parametrize(
    "change",
    [{"vocab_size": 10**12}, {"num_hidden_layers": 10**9}, {"max_position_embeddings": 10**15}],
)
def test_more_than_the_machine_holds_is_rejected_before_memory_is_taken(
    vocabulary, sizes, tmp_path, change
):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**sizes, **change}))
    count = f"{BertConfig(**{**sizes, **change}).parameter_count():,}"
    with pytest.raises(InputError, match=f"a model of {count} parameters, which take"):
        read_architecture(path, vocabulary)
    path.write_text(json.dumps(sizes))
    assert read_architecture(path, vocabulary).to_dict() == sizes


def test_layers_without_number_are_rejected_however_narrow_they_are(vocabulary, sizes, tmp_path):
    path = tmp_path / "config.json"
    narrow = {"hidden_size": 2, "intermediate_size": 2, "num_attention_heads": 1}
    path.write_text(json.dumps({**sizes, **narrow, "num_hidden_layers": 10**6}))
    with pytest.raises(InputError, match="a model of 1,000,000 layers. At most 1,000 are"):
        read_architecture(path, vocabulary)


def test_a_name_is_a_published_size_of_any_encoder(vocabulary):
    for name, owner in presets().items():
        config = read_architecture(name, vocabulary)
        assert config == owner.preset(name, vocab_size=len(vocabulary))
    with pytest.raises(InputError, match="no architecture 'huge'. Choose from tiny, mini, "):
        read_architecture("huge", vocabulary)


def test_a_file_of_an_encoder_that_is_not_here_names_those_that_are(vocabulary, sizes, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**sizes, "model_type": "t5"}))
    with pytest.raises(InputError, match="config.json describes a 't5' model. Supported .* bert"):
        read_architecture(path, vocabulary)
    path.write_text(json.dumps({**sizes, "vocab_size": len(vocabulary) - 1}))
    with pytest.raises(InputError, match="has vocab_size .*, less than"):
        read_architecture(path, vocabulary)


def test_unknown_keys_of_a_file_are_kept_and_reported(vocabulary, sizes, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**sizes, "xla_device": True}))
    with pytest.warns(InputWarning, match="unknown keys are kept, but not used: 'xla_device'"):
        assert read_architecture(path, vocabulary).extra_keys == {"xla_device": True}


def test_a_file_without_end_is_no_architecture(vocabulary):
    with pytest.raises(InputError, match="/dev/zero holds more than 256 MiB"):
        read_architecture("/dev/zero", vocabulary)


@pytest.mark.parametrize("pooler", [True, False])
@pytest.mark.parametrize("model_type", ["bert", "roberta"])
def test_parameters_are_counted_without_making_them(sizes, pooler, model_type):
    changes = {"type_vocab_size": 3, "add_pooling_layer": pooler, "model_type": model_type}
    config = BertConfig(**{**sizes, **changes})
    assert config.parameter_count() == BertEncoder(config).count_params()
