"""What an architecture's file may ask for."""

import json

import pytest

from keras_bert.encoders.bert.config import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.errors import InputError
from keras_bert.train.architecture import read_architecture
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
def test_more_than_the_machine_holds_is_refused_before_memory_is_taken(
    vocabulary, sizes, tmp_path, change
):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**sizes, **change}))
    count = f"{BertConfig(**{**sizes, **change}).parameters:,}"
    with pytest.raises(InputError, match=f"a model of {count} parameters, whose weights take"):
        read_architecture(path, vocabulary)
    path.write_text(json.dumps(sizes))
    assert read_architecture(path, vocabulary).to_dict() == sizes


def test_blocks_without_number_are_refused_however_narrow_they_are(vocabulary, sizes, tmp_path):
    path = tmp_path / "config.json"
    narrow = {"hidden_size": 2, "intermediate_size": 2, "num_attention_heads": 1}
    path.write_text(json.dumps({**sizes, **narrow, "num_hidden_layers": 10**6}))
    with pytest.raises(InputError, match="a model of 1,000,000 blocks; at most 1,000 can"):
        read_architecture(path, vocabulary)


def test_a_file_without_end_is_no_architecture(vocabulary):
    with pytest.raises(InputError, match="/dev/zero holds more than 256 MiB"):
        read_architecture("/dev/zero", vocabulary)


@pytest.mark.parametrize("pooler", [True, False])
def test_parameters_are_counted_without_making_them(sizes, pooler):
    config = BertConfig(**{**sizes, "type_vocab_size": 3, "add_pooling_layer": pooler})
    assert config.parameters == BertEncoder(config).count_params()
