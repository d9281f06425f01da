"""Fixtures of the tests of the formats: a small vocabulary, models with random weights, inputs."""

import json
import shutil

import numpy as np
import pytest

from keras_bert import Tokenizer
from keras_bert.checkpoints import save_folder
from keras_bert.encoders import new_encoder, read_config
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from tests.seeds import make_rng

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
SIZES = {
    "vocab_size": 15,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 8,  # square kernels everywhere: the trap of a lost transposition
    "max_position_embeddings": 8,
    "initializer_range": 0.3,
}


@pytest.fixture(scope="session")
def tokenizer():
    return Tokenizer.from_vocab(WordPieceVocabulary(TOKENS), lowercase=True)


@pytest.fixture(scope="session")
def make_encoder():
    """Makes an encoder with these changes to the sizes, its weights random."""

    def make(*, pooler=True, **changes):
        encoder = shake(new_encoder(read_config({**SIZES, **changes}, source="x")))
        if pooler and encoder.POOLER_ACTIVATION is not None:
            shake(encoder.new_pooler())
        return encoder

    return make


@pytest.fixture
def inputs():
    """A batch with padding, two segments and positions of predictions."""
    rng = make_rng(5)
    lengths = np.array([6, 3, 5])
    return {
        "input_ids": rng.integers(5, 15, (3, 6)).astype("int32"),
        "input_mask": (np.arange(6) < lengths[:, None]).astype("int32"),
        "segment_ids": rng.integers(0, 2, (3, 6)).astype("int32"),
        "masked_lm_positions": np.array([[1, 0], [0, 1], [1, 1]], "int32"),
    }


@pytest.fixture(name="shake")
def shake_fixture():
    return shake


def shake(model):
    """Random values everywhere: biases of zero and gammas of one hide a mix-up."""
    rng = make_rng(21)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape) * 0.3)
    return model


@pytest.fixture(scope="session")
def good_folder(tmp_path_factory, make_encoder, tokenizer):
    folder = tmp_path_factory.mktemp("good") / "model"
    save_folder(make_encoder(), tokenizer, folder)
    return folder


@pytest.fixture
def folder(tmp_path, good_folder):
    """An encoder's folder, to be changed in one thing."""
    return shutil.copytree(good_folder, tmp_path / "model")


def change_config(folder, change):
    """Writes what a function makes of the dictionary in `config.json`."""
    path = folder / "config.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
