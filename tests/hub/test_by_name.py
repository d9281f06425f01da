"""Models by name from a hub on the loopback, and every way in which that goes wrong."""

import errno
import json
import os
import pickle
import shutil
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import find_model_folder
from keras_bert.cli.task_types import stored_task_type
from tests.peers import torch
from tests.seeds import make_rng

NAME = "hf://somebody/small"


def set_offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def published(hub, folder, tmp_path):
    """The hub with the model in several forms, as repositories there have them."""
    full = shutil.copytree(folder, tmp_path / "full")
    (full / "pytorch_model.bin").write_bytes(b"another form of the same")
    (full / "tf_model.h5").write_bytes(b"and another")
    (full / "training_args.bin").write_bytes(b"not needed")
    hub.add("somebody/small", full)
    return hub


def same(model, folder):
    """Whether an encoder has the weights of a folder."""
    saved, _ = kb.load(folder)
    pairs = zip(model.get_weights(), saved.get_weights(), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_a_name_loads_and_only_what_is_needed_is_fetched(published, folder):
    encoder, tokenizer = kb.load(NAME)
    assert same(encoder, folder)
    assert len(tokenizer) == encoder.config.vocab_size
    wanted = {"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}
    assert set(published.fetched()) <= wanted | {"tokenizer.json"}
    assert wanted <= set(published.fetched())


def test_a_download_shows_how_far_it_is_in_a_terminal_alone(published, monkeypatch, capsys):
    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS")
    find_model_folder(NAME)
    assert capsys.readouterr().err == ""


def test_what_is_in_the_cache_is_not_fetched_again_and_needs_no_network(
    published, folder, monkeypatch
):
    first = find_model_folder(NAME)
    before = published.fetched()
    assert find_model_folder(NAME) == first and published.fetched() == before
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    assert find_model_folder(NAME) == first
    set_offline(monkeypatch)
    assert find_model_folder(NAME) == first


def test_a_revision_is_a_branch_or_a_commit(published, folder, tmp_path):
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "vocab.txt").write_text((folder / "vocab.txt").read_text().replace("hub", "bus"))
    published.add("somebody/small", other, revision="v2")
    vocabularies = {
        name: (find_model_folder(name) / "vocab.txt").read_text()
        for name in (NAME, f"{NAME}@v2", f"{NAME}@{find_model_folder(f'{NAME}@v2').name}")
    }
    assert ["bus" in text for text in vocabularies.values()] == [False, True, True]


def test_the_same_checks_as_for_a_folder(published, folder, tmp_path):
    broken = shutil.copytree(folder, tmp_path / "broken")
    whole = (folder / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(whole[:-10])
    published.add("somebody/broken", broken)
    with pytest.raises(InputError, match="not a whole safetensors file"):
        kb.load("hf://somebody/broken")


@pytest.mark.parametrize("is_of_peft", [False, True])
def test_an_adapter_by_name_is_fetched_with_its_base(is_of_peft, hub, folder, tmp_path):
    hub.add("somebody/base", folder)
    encoder, tokenizer = kb.load("hf://somebody/base")
    encoder.enable_lora(2)
    for weight in encoder.trainable_weights:
        weight.assign(make_rng(1).normal(size=weight.shape))
    task = kb.Classifier(encoder, tokenizer, labels=["a", "b"])
    adapter = tmp_path / "adapter"
    task.save_adapter(adapter, base="hf://somebody/base")
    wanted = {"adapter_config.json", "adapter_model.safetensors"}
    if is_of_peft:  # it writes no more
        for path in adapter.iterdir():
            if path.name not in wanted:
                path.unlink()
    hub.add("somebody/adapter", adapter)
    hub.requests.clear()
    again = kb.load_task("hf://somebody/adapter")
    assert wanted <= set(hub.fetched())
    expected, outputs = (x.predict(["hub"], verbose=0)["logits"] for x in (task, again))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    with pytest.raises(InputError, match="hf://somebody/adapter is an adapter, and the base"):
        task.save_adapter(tmp_path / "second", base="hf://somebody/adapter")


def refusal(name):
    with pytest.raises(InputError) as rejected:
        kb.load(name)
    sentence = str(rejected.value)
    assert "\n" not in sentence and sentence.endswith(".")
    return sentence


@pytest.mark.slow
def test_each_refusal_says_what_to_do(published, folder, monkeypatch):
    published.gated.add("somebody/gated")
    published.add("somebody/gated", folder)
    published.repos["somebody/bare"] = {"main": {"config.json": b"{}", "flax_model.msgpack": b""}}
    said = refusal("hf://somebody/none")
    assert f"somebody/none does not exist at {published.endpoint}" in said
    assert "hf auth login" in said
    said = refusal("hf://somebody/gated")
    assert f"accept its terms at {published.endpoint}/somebody/gated" in said
    monkeypatch.setenv("HF_TOKEN", "hf_known")
    assert same(kb.load("hf://somebody/gated")[0], folder)
    assert "has no revision v9. Use a branch" in refusal(f"{NAME}@v9")
    assert "flax_model.msgpack" in refusal("hf://somebody/bare")
    for name in ("hf://bert", "hf://a/b/c", "hf://a/b@", "hf://../x", "hf://a..b/c--d"):
        assert "Invalid name of a hub model" in refusal(name)


def test_without_a_network_the_sentence_says_what_to_do(cache, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    said = refusal(NAME)
    assert "cannot be reached. Connect to the network once" in said and str(cache) in said
    set_offline(monkeypatch)
    assert "HF_HUB_OFFLINE prevents its download. Unset it once" in refusal(NAME)


@pytest.mark.slow
def test_a_full_disk_and_one_that_cannot_be_written(published, cache, monkeypatch):
    def fails(number):
        def download(*args, **kwargs):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("huggingface_hub.file_download.http_get", download)
        return refusal(NAME)

    said = fails(errno.ENOSPC)
    assert f"The cache {cache} is full" in said and "HF_HOME" in said
    assert "cannot be written (Permission denied). Set HF_HOME" in fails(errno.EACCES)


@pytest.mark.peers
def test_weights_of_torch_without_a_pickle_that_runs(hub, folder, tmp_path):
    from safetensors.torch import load_file

    old = shutil.copytree(folder, tmp_path / "old")
    tensors = load_file(folder / "model.safetensors")
    (old / "model.safetensors").unlink()
    torch.save(tensors, old / "pytorch_model.bin")
    hub.add("somebody/old", old)
    assert same(kb.load("hf://somebody/old")[0], folder)
    assert "pytorch_model.bin" in hub.fetched()

    ran = tmp_path / "ran"

    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(ran),)

    for name, content in [
        ("evil", pickle.dumps({"a": Payload()})),
        ("cut", (old / "pytorch_model.bin").read_bytes()[:-100]),
        ("else", pickle.dumps({"a": 3})),
    ]:
        bad = shutil.copytree(old, tmp_path / name)
        (bad / "pytorch_model.bin").write_bytes(content)
        said = refusal(bad)
        assert "more than plain weights" in said or "something else than tensors" in said
    assert not ran.exists()

    def saved(change):
        bad = shutil.copytree(old, tmp_path / "saved", dirs_exist_ok=True)
        torch.save({name: change(t) for name, t in tensors.items()}, bad / "pytorch_model.bin")
        return bad

    for change in (torch.nn.Parameter, torch.Tensor.to_sparse):
        assert same(kb.load(saved(change))[0], folder)
    nested = saved(lambda tensor: torch.nested.nested_tensor([tensor]))
    assert "is nested. Expected a single shape" in refusal(nested)
    assert "(its device is meta)" in refusal(saved(lambda tensor: tensor.to("meta")))


@pytest.mark.peers
@pytest.mark.parametrize("version", ["2.5.1+cu121", "1.13.1", None])
def test_a_torch_whose_loader_is_not_safe_opens_nothing(
    hub, folder, tmp_path, monkeypatch, version
):
    """Up to 2.5.1 `torch.load(weights_only=True)` can run code (CVE-2025-32434)."""
    TorchVersion = torch.torch_version.TorchVersion
    from safetensors.torch import load_file

    old = shutil.copytree(folder, tmp_path / "old")
    torch.save(load_file(folder / "model.safetensors"), old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    hub.add("somebody/old", old)
    for current in ("2.6.0+cpu", "2.10.0"):
        monkeypatch.setattr("torch.__version__", TorchVersion(current))
        assert same(kb.load(old)[0], folder)
    if version is None:
        monkeypatch.setitem(sys.modules, "torch", None)
    else:
        monkeypatch.setattr("torch.__version__", TorchVersion(version))
        monkeypatch.setattr("torch.load", None)
    for name in (old, "hf://somebody/old"):
        said = refusal(name)
        assert "torch>=2.6" in said and (version or "pip install") in said
    assert "pytorch_model.bin" not in hub.fetched()


def test_weights_of_torch_without_torch(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    old = shutil.copytree(folder, tmp_path / "old")
    (old / "model.safetensors").unlink()
    (old / "pytorch_model.bin").write_bytes(b"PK")
    assert "pip install 'torch>=2.6'" in refusal(old)


def test_a_command_reads_the_kind_of_a_task_by_name(published, folder):
    from keras_bert.cli.task_types import task_type_of

    published.repos["somebody/tagger"] = {
        "main": {"config.json": b'{"keras_bert": {"task": "tagger"}}'}
    }
    assert task_type_of("hf://somebody/tagger") == "tagger"
    assert task_type_of("hf://somebody/none") == "classifier"  # told when the command runs


@pytest.fixture
def embedder(folder):
    encoder, tokenizer = kb.load(folder)
    return kb.TextEmbedder(encoder, tokenizer, normalize=True, max_length=9)


def test_a_text_embedder_by_name(embedder, hub, tmp_path):
    """It is of another program, whose config.json names no task."""
    embedder.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    del config["keras_bert"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    hub.add("somebody/small", tmp_path / "model")
    assert stored_task_type(NAME) == "text-embedding"
    np.testing.assert_array_equal(kb.load_task(NAME).encode("hub"), embedder.encode("hub"))


@pytest.mark.parametrize("form", ["0_Transformer", "0_StaticEmbedding"])
def test_a_text_embedder_with_its_weights_in_a_folder_of_its_own(embedder, hub, tmp_path, form):
    root, tokenizer = tmp_path / "root", embedder.tokenizer
    embedder.save(root)
    modules = json.loads((root / "modules.json").read_text())
    (root / form).mkdir()
    for path in [path for path in root.iterdir() if path.is_file()]:
        path.rename(root / form / path.name)
    modules[0]["path"] = form
    if form == "0_StaticEmbedding":
        modules = [{**modules[0], "type": "sentence_transformers.models.StaticEmbedding"}]
        (root / form / "config.json").unlink()
        vectors = make_rng(3).normal(size=(len(tokenizer), 4)).astype(np.float32)
        save_file({"embedding.weight": vectors}, root / form / "model.safetensors")
    (root / "modules.json").write_text(json.dumps(modules))
    hub.add("somebody/small", root)
    task = kb.load_task(NAME)
    assert stored_task_type(NAME) == "text-embedding"
    expected = embedder.encode("hub")
    if form == "0_StaticEmbedding":
        expected = vectors[tokenizer.vocabulary.id("hub")]
    np.testing.assert_array_equal(task.encode("hub"), expected)


@pytest.mark.slow
def test_a_preset_of_keras_hub_is_converted_once(hub, folder, tmp_path):
    pytest.importorskip("keras_nlp")
    from keras_bert.checkpoints.convert import convert

    convert(str(folder), str(tmp_path / "preset"), to="keras-nlp")
    hub.add("somebody/preset", tmp_path / "preset")
    converted = find_model_folder("hf://somebody/preset")
    assert same(kb.load("hf://somebody/preset")[0], folder)
    written = (converted / "model.safetensors").stat().st_mtime_ns
    assert find_model_folder("hf://somebody/preset") == converted
    assert (converted / "model.safetensors").stat().st_mtime_ns == written
