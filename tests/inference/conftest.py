"""A random model of five layers, and texts of all kinds."""

import functools

import pytest

from keras_bert.inference.embed import Embedder
from keras_bert.inference.vector_settings import EmbedderSettings
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="session")
def tokenizer():
    return make_tokenizer(["bank"])


@pytest.fixture(scope="session")
def encoder(tokenizer):
    return make_encoder(tokenizer, num_hidden_layers=5)


@pytest.fixture(scope="session")
def embedder(encoder, tokenizer):
    """A function from settings to an `Embedder`, made once for each: its graph takes time."""

    @functools.cache
    def of(settings):
        return Embedder(encoder, tokenizer, settings)

    return lambda **settings: of(EmbedderSettings(**settings))


@pytest.fixture(scope="session")
def model_folder(encoder, tokenizer, tmp_path_factory):
    from keras_bert.checkpoints import save_folder

    folder = tmp_path_factory.mktemp("embeddings") / "model"
    save_folder(encoder, tokenizer, folder)
    return folder


@pytest.fixture(scope="session")
def texts():
    return [
        "the bank of the river",
        "",
        "  Ünïcödé, naïve!  ",
        "a",
        "words " * 60,  # many windows
        "好 bank 好",
        "x" * 300,  # one [UNK]
        "abc " * 12,
    ]
