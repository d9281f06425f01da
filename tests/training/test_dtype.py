"""The dtype that a run computes in by default, on a device that pretends to be fast in bfloat16."""

import dataclasses
import json

import pytest

from keras_bert.training import devices
from keras_bert.training.devices import with_dtype
from keras_bert.training.pretrain import pretrain
from keras_bert.training.settings import PretrainSettings
from tests.pretraining_folder import VOCABULARY, make_data_folder


@pytest.mark.usefixtures("eager")
def test_it_is_that_of_the_device_and_a_run_that_resumes_keeps_its_own(tmp_path, monkeypatch):
    make_data_folder(tmp_path / "rows", rows=8, eval_examples=4, objective="mlm")
    config = {"vocab_size": len(VOCABULARY), "hidden_size": 8, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16}
    (tmp_path / "config.json").write_text(json.dumps(config))
    given = {"data": tmp_path / "rows", "architecture": tmp_path / "config.json", "steps": 1}
    given |= {"batch_size": 2, "output": tmp_path / "run"}

    def dtype():
        return json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["dtype"]

    metrics = pretrain(**given)
    assert dtype() == "float32"
    monkeypatch.setattr(devices, "computes_in_bfloat16", lambda: True)
    assert pretrain(**given) == metrics and dtype() == "float32"
    said = []
    pretrain(**given, force=True, report=said.append)
    assert dtype() == "mixed_bfloat16"
    assert any(line.startswith("Computing in mixed_bfloat16") for line in said)


class Chief:
    """The first of several workers, which tells the others its dtype."""

    def broadcast(self, value):
        self.told = value
        return value


class Follower:
    """A worker that is told the dtype of the chief."""

    def __init__(self, dtype):
        self.dtype = dtype

    def broadcast(self, value):
        return self.dtype


@pytest.mark.parametrize("is_fast_in_bfloat16", [False, True])
def test_that_of_several_workers_is_the_chiefs(is_fast_in_bfloat16, monkeypatch):
    """Two processes that resume on other devices are in tests/runs_on_jax.py."""
    default, other = "float32", "mixed_bfloat16"
    if is_fast_in_bfloat16:
        default, other = other, default
    monkeypatch.setattr(devices, "computes_in_bfloat16", lambda: is_fast_in_bfloat16)
    settings, said = PretrainSettings(data="rows", steps=1, output="run"), []

    def dtype(workers, settings=settings, **options):
        return with_dtype(settings, said.append, workers=workers, **options).dtype

    for earlier, expected in ((None, default), ({"settings": {"dtype": other}}, other)):
        chief = Chief()
        assert dtype(chief, earlier=earlier) == chief.told == expected
        assert dtype(Follower(expected)) == expected
    given = dataclasses.replace(settings, dtype=default)  # which the workers compare
    assert dtype(Follower(other), settings=given) == default
    assert dtype(chief := Chief(), settings=given) == chief.told == default
