"""The dtype that a run computes in by default, on a device that pretends to be fast in bfloat16."""

import json

import pytest

from keras_bert.training import devices
from keras_bert.training.pretrain import pretrain
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
