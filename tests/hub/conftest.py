"""A hub on the loopback, and the environment in which `huggingface_hub` asks nobody else."""

import pytest

from tests.hub.local_hub import LocalHub
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The model folder of a small encoder."""
    from keras_bert.checkpoints import save_folder

    tokenizer = make_tokenizer(["hub"])
    path = tmp_path_factory.mktemp("model") / "small"
    save_folder(make_encoder(tokenizer, hidden_act="gelu_new"), tokenizer, path)
    return path


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache of the hub's client, without a token; its network is on."""
    from huggingface_hub import constants

    # The client reads its environment when it is imported, which it long is.
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # the loopback speaks plain LFS
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "converted"))
    return tmp_path / "hub"


@pytest.fixture
def hub(cache, monkeypatch):
    local = LocalHub()
    monkeypatch.setenv("HF_ENDPOINT", local.endpoint)
    yield local
    local.close()
