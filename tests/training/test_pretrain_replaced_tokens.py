"""Runs of `pretrain --objective rtd`: resumed bit for bit, watched, kept, continued, fine-tuned."""

import json

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load_task, save_folder
from keras_bert.inference.evaluate import evaluate
from keras_bert.training.pretrain import pretrain
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import shifted
from tests.tasks.classification.killed_runs import assert_same_weights, copied
from tests.training.test_pretrain_objectives import without_clock

SHORT = {"steps": 12, "batch_size": 8, "checkpoint_every": 5, "eval_every": 6, "seed": shifted(4)}
SHORT |= {"objective": "rtd", "generator_size": 0.5, "deterministic": True}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    sizes = {"rows": 44, "eval_examples": 30}
    return {
        "mlm": make_data_folder(root / "mlm", objective="mlm", masking="dynamic", **sizes),
        "mlm-nsp": make_data_folder(root / "nsp", objective="mlm-nsp", **sizes),
    }


@pytest.fixture(scope="module")
def architectures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("architectures")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 16, "vocab_size": len(VOCABULARY)}
    for name, more in (("bert", {}), ("electra", {"model_type": "electra", "embedding_size": 8})):
        (folder / f"{name}.json").write_text(json.dumps({**sizes, **more}))
    return folder


@pytest.fixture(scope="module")
def run(data, architectures):
    """Calls `pretrain` on data of an objective."""

    def call(output, rows="mlm", architecture="electra", **settings):
        if "model" not in settings:
            path = architectures / f"{architecture}.json"
            settings["architecture"] = path if path.exists() else architecture
        settings = {**SHORT, **settings}
        if "batch_tokens" in settings:
            del settings["batch_size"]
        return pretrain(data=data[rows], output=output, **settings)

    return call


@pytest.fixture(scope="module")
def uninterrupted(run, tmp_path_factory):
    """-> (the folder of a run, its metrics); in FOLDER-killed is what a kill would have left."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    with copied(folder, folder.with_name("whole-killed"), after_step=5):
        return folder, run(folder)


def test_a_killed_run_ends_bit_for_bit_like_an_uninterrupted_one(run, uninterrupted):
    folder, metrics = uninterrupted
    killed = folder.with_name("whole-killed")
    assert without_clock(run(killed)) == without_clock(metrics)
    assert_same_weights(folder, killed)
    tensors, killed_tensors = (
        load_file(path / "model" / "generator" / "model.safetensors") for path in (folder, killed)
    )
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, killed_tensors[name], err_msg=name)


def test_a_run_is_watched(uninterrupted):
    folder, metrics = uninterrupted
    names = {f"replaced_tokens_{name}" for name in ("loss", "accuracy", "fraction", "auc")}
    for scores in (metrics["eval"], metrics["eval_at_start"], metrics["train"]):
        assert names < set(scores) and 0 < scores["replaced_tokens_fraction"] < 0.25
    scores = metrics["eval"]
    total = scores["masked_lm_loss"] + 50 * scores["replaced_tokens_loss"]
    assert scores["loss"] == pytest.approx(total, abs=1e-4)
    assert any("told with an AUC of" in text for text in metrics["health"]["findings"])
    shown = {"train": set(), "eval": set(), "unigram_entropy": set()}
    for run, tags in shown.items():
        for path in (folder / "logs" / run).iterdir():
            for record in tf.data.TFRecordDataset(str(path)):
                event = tf.compat.v1.Event.FromString(record.numpy())
                tags |= {value.tag for value in event.summary.value}
    tags = {f"replaced_tokens/{name}" for name in ("loss", "fraction", "auc")}
    assert tags | {"masked_lm/loss"} <= shown["train"] & shown["eval"]
    assert "masked_lm/loss" in shown["unigram_entropy"] and "masked tokens" in shown["eval"]


def test_evaluate_gives_the_metrics_of_the_run(uninterrupted, data):
    folder, metrics = uninterrupted
    scores = evaluate(model=folder, data=data["mlm"])
    reported = {name: scores[name] for name in metrics["eval"]}
    assert reported == pytest.approx(metrics["eval"], rel=1e-4, abs=1e-5)
    assert scores["masked_lm_perplexity"] == pytest.approx(np.exp(scores["masked_lm_loss"]), 1e-4)


def test_a_run_goes_on_from_both_models_or_with_a_new_generator(run, uninterrupted, tmp_path):
    folder, _ = uninterrupted
    said = []
    run(tmp_path / "on", model=folder, generator_size=None, report=said.append, steps=1)
    assert not any("random weights" in line for line in said)
    assert load_task(tmp_path / "on" / "model").settings.generator_size == 0.5
    alone, _ = kb.load(folder)
    save_folder(alone, load_task(folder).tokenizer, tmp_path / "alone")
    run(tmp_path / "new", model=tmp_path / "alone", report=said.append, steps=1)
    assert any("lacks them: discriminator, generator." in line for line in said)
    with pytest.raises(InputError, match="Expected electra, 1 layer, hidden size 4"):
        run(tmp_path / "other", model=folder, generator_size=0.25)


def test_another_family_on_pairs_is_a_folder_of_its_encoder_for_every_task(run, tmp_path):
    output = tmp_path / "run"
    run(output, "mlm-nsp", "bert", gradient_accumulation=2)
    config = json.loads((output / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    tensors = load_file(output / "model" / "model.safetensors")
    kept = {name for name in tensors if name.startswith("keras_bert.discriminator.")}
    parts = ("dense.kernel", "dense.bias", "output_layer.kernel", "output_layer.bias")
    assert kept == {f"keras_bert.discriminator.{part}" for part in parts}
    generator = json.loads((output / "model" / "generator" / "config.json").read_text())
    assert generator["architectures"] == ["ElectraForMaskedLM"] and generator["hidden_size"] == 8
    texts = [("w1 w2 w3", "a"), ("w4 w5", "b")] * 4
    tuned = kb.finetune(
        model=output, task="classifier", train=texts, dev=texts, epochs=1, output=tmp_path / "tuned"
    )
    assert 0 <= tuned["dev"]["accuracy"] <= 1


def test_settings_of_replaced_tokens_are_for_that_objective(run, tmp_path):
    with pytest.raises(InputError, match="`temperature` is for the objective rtd. Leave it out."):
        run(tmp_path / "a", objective="mlm", temperature=2.0, **{"generator_size": None})
    with pytest.raises(InputError, match="`causal_fraction` is not for `objective` rtd"):
        run(tmp_path / "b", causal_fraction=0.5)


@pytest.mark.slow
def test_batches_of_tokens_recomputing_and_muon_in_a_modern_encoder(run, tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    given = {"batch_tokens": 96, "optimizer": "muon", "schedule": "wsd", "layer_decay": 0.9}
    given |= {"recompute": True, "dtype": "mixed_bfloat16", "architecture": "modern-tiny"}
    with copied(whole, part, after_step=5):
        metrics = run(whole, **given)
    assert without_clock(run(part, **given)) == without_clock(metrics)
    assert_same_weights(whole, part)
