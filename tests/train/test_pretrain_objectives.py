"""Rows of spans and of swapped segments: what is trained, resumed, kept and measured."""

import json
import math
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file
from tensorflow.python.autograph.pyct import loader

import keras_bert.train.pretrain as module
from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main
from keras_bert.encoder import BertEncoder
from keras_bert.errors import InputError
from keras_bert.inference.evaluate import evaluate
from keras_bert.records import DataFolder
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.pretraining.fill_mask import FillMask
from keras_bert.tasks.pretraining.sentence_order_pretrainer import SentenceOrderPretrainer
from keras_bert.tasks.pretraining.span_pretrainer import SpanPretrainer
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.train.checkpoint import Checkpoint
from keras_bert.train.pretrain import pretrain
from tests.pretraining_folder import VOCABULARY, make_data_folder

SHORT = {"steps": 12, "batch_size": 8, "checkpoint_every": 5, "eval_every": 10, "seed": 4}
# The longest spans of such rows have two tokens.
KINDS = {"span": {"max_span_length": 1, "span_boundary_weight": 0.5}, "mlm-sop": {}}
OTHER_HEAD = {"span": "span_boundary", "mlm-sop": "sentence_order"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("rows")
    sizes = {"rows": 44, "eval_rows": 30}
    return {
        "span": make_data_folder(root / "span", objective="span", masking="dynamic", **sizes),
        "mlm-sop": make_data_folder(root / "sop", objective="mlm-sop", **sizes),
        "mlm": make_data_folder(root / "mlm", objective="mlm", **sizes),
        "untested": make_data_folder(root / "untested", objective="span", rows=9, eval_rows=0),
    }


@pytest.fixture(scope="module")
def run(folders, tmp_path_factory):
    """Calls `pretrain` with a very small model."""
    architecture = tmp_path_factory.mktemp("architecture") / "config.json"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 16}
    architecture.write_text(json.dumps({"vocab_size": len(VOCABULARY), **sizes}))

    def call(output, objective, **settings):
        folder = folders[objective]
        if "model" not in settings:
            settings["architecture"] = architecture
        settings = {**SHORT, **KINDS.get(objective, {}), **settings}
        return pretrain(data=folder, vocab=folder / "vocab.txt", output=output, **settings)

    return call


@pytest.fixture(scope="module")
def unbroken(run, tmp_path_factory):
    """Objective -> (the folder of a run, its metrics).

    Beside it, under the name FOLDER-killed, is what a kill after step 5 would have left.
    """
    root = tmp_path_factory.mktemp("unbroken")
    save = Checkpoint.save

    def save_and_keep(self, step, state):
        save(self, step, state)
        if step == 5:
            output = self.folder.parent
            killed = output.with_name(f"{output.name}-killed")
            shutil.copytree(self.folder, killed / "checkpoints")
            shutil.copy(output / "run.json", killed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_keep)
        return {
            objective: (root / objective, run(root / objective, objective, deterministic=True))
            for objective in KINDS
        }


@pytest.fixture(params=KINDS)
def objective(request):
    return request.param


def without_clock(metrics):
    timed = ("seconds", "tokens_per_second")
    return [{k: v for k, v in row.items() if k not in timed} for row in metrics["curve"]]


def test_a_run_killed_after_a_checkpoint_ends_bit_for_bit_like_an_unbroken_one(
    run, unbroken, objective
):
    folder, expected = unbroken[objective]
    killed = folder.with_name(f"{folder.name}-killed")
    assert [path.name for path in (killed / "checkpoints").iterdir()] == [
        "step-000000005.safetensors"
    ]
    metrics = run(killed, objective, deterministic=True)
    assert without_clock(metrics) == without_clock(expected)
    found, wanted = (load_file(next((path / "checkpoints").iterdir())) for path in (killed, folder))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_every_head_has_its_figures_and_what_the_model_saw_parts_those_of_tokens(
    unbroken, objective
):
    _, metrics = unbroken[objective]
    names = {"loss", "masked_lm_loss", "masked_lm_accuracy"}
    other = OTHER_HEAD[objective]
    names |= {f"{other}_loss", f"{other}_accuracy"}
    of_tokens = ["masked_lm", other] if objective == "span" else ["masked_lm"]
    parts = {
        f"{output}_{part}_{figure}"
        for output in of_tokens
        for part in ("masked", "replaced", "kept")
        for figure in ("loss", "accuracy")
    }
    assert names | {f"{output}_masked_loss" for output in of_tokens} <= set(metrics["eval"])
    assert set(metrics["eval"]) | set(metrics["train"]) <= names | parts
    assert parts <= set().union(*(row["train"] for row in metrics["curve"]))
    figures = metrics["eval_at_start"]
    assert figures["masked_lm_loss"] == pytest.approx(math.log(25), rel=0.1)
    weight = KINDS[objective].get("span_boundary_weight", 1.0)
    total = figures["masked_lm_loss"] + weight * figures[f"{other}_loss"]
    assert figures["loss"] == pytest.approx(total, abs=2e-6)


def test_spans_are_a_masked_lm_to_others_and_their_head_lies_beside_it(unbroken):
    folder, _ = unbroken["span"]
    config = json.loads((folder / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForMaskedLM"]
    kept = {"task": "span-pretrainer", "max_span_length": 1, "span_boundary_weight": 0.5}
    assert kept.items() <= config["keras_bert"].items()
    own = {
        name.removeprefix("keras_bert.span_boundary."): tensor.shape
        for name, tensor in load_file(folder / "model" / "model.safetensors").items()
        if name.startswith("keras_bert.")
    }
    assert own == {
        "offset_embedding.embeddings": (1, 200),
        "first_dense.kernel": (2 * 16 + 200, 16),
        "first_dense.bias": (16,),
        "first_layer_norm.gamma": (16,),
        "first_layer_norm.beta": (16,),
        "second_dense.kernel": (16, 16),
        "second_dense.bias": (16,),
        "second_layer_norm.gamma": (16,),
        "second_layer_norm.beta": (16,),
        "bias": (25,),
    }
    assert type(load_task(folder / "model")) is SpanPretrainer


def test_the_order_of_sentences_has_the_place_of_next_sentences(unbroken):
    folder, _ = unbroken["mlm-sop"]
    config = json.loads((folder / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForPreTraining"]
    assert "cls.seq_relationship.weight" in load_file(folder / "model" / "model.safetensors")
    assert type(load_task(folder / "model")) is SentenceOrderPretrainer


def test_evaluate_gives_the_figures_of_the_run_and_what_follows_from_them(
    unbroken, folders, objective, capsys
):
    folder, metrics = unbroken[objective]
    data = folders[objective]
    assert main(["evaluate", "--model", str(folder), "--data", str(data), "--batch-size", "7"]) == 0
    printed = capsys.readouterr()
    assert "Next: keras-bert finetune" in printed.err
    figures = json.loads(printed.out)
    reported = {name: figures[name] for name in metrics["eval"]}
    assert reported == pytest.approx(metrics["eval"], rel=1e-4, abs=1e-6)
    assert figures["objective"] == objective and figures["rows"] == 30
    task = load_task(folder / "model")
    predictions, letters = 0, 0
    for _, labels, weights in task.dataset(DataFolder.open(data), split="eval", batch_size=30):
        ids = labels["masked_lm"].numpy()[weights["masked_lm"].numpy() > 0]
        predictions += len(ids)
        letters += sum(len(VOCABULARY.piece(id)) for id in ids)
    assert figures["predictions"] == predictions
    loss = figures["masked_lm_loss"]
    assert figures["masked_lm_perplexity"] == pytest.approx(math.exp(loss), rel=1e-5)
    bits = loss * predictions / math.log(2) / letters
    assert figures["masked_lm_bits_per_character"] == pytest.approx(bits, rel=1e-5)
    boundary = "span_boundary_perplexity"
    assert (boundary in figures) == (objective == "span")
    if boundary in figures:
        expected = math.exp(figures["span_boundary_loss"])
        assert figures[boundary] == pytest.approx(expected, rel=1e-5)


def test_offsets_beyond_the_longest_are_not_predicted_from_the_boundaries(unbroken, folders):
    task = load_task(unbroken["span"][0] / "model")
    dataset = task.dataset(DataFolder.open(folders["span"]), split="eval", batch_size=30)
    [(x, _, weights)] = dataset.as_numpy_iterator()
    expected = weights["masked_lm"] * (x["span_offset"] <= 1)
    np.testing.assert_array_equal(weights["span_boundary"], expected)
    assert 0 < expected.sum() < weights["masked_lm"].sum()


def test_of_other_rows_what_they_have_labels_for_is_measured(unbroken, folders, monkeypatch):
    converted = []  # by AutoGraph, which writes Python files into the temporary folder
    monkeypatch.setattr(loader, "load_source", lambda source, *_: converted.append(source))
    said = []
    found = evaluate(
        model=unbroken["mlm-sop"][0], data=folders["span"], batches=2, batch_size=8,
        report=said.append,
    )  # fmt: skip
    assert said == [
        "Note: the rows were made for the objective span; of the model, sentence-order is not "
        "measured."
    ]
    assert found["rows"] == 16 and found["masked_lm_loss"] > 0
    assert not converted
    assert not any(name.startswith(("sentence_order", "span_boundary")) for name in found)


@pytest.fixture()
def begun(run, tmp_path, monkeypatch):
    """The task that a run would train."""
    monkeypatch.setattr(module, "_train", lambda model, *others: model)
    return lambda objective, **settings: run(tmp_path, objective, **settings)


def test_a_run_goes_on_from_a_folder_with_its_head(begun, unbroken):
    folder, _ = unbroken["span"]
    with pytest.raises(InputError, match="`max_span_length` is 3, and the model in .* with 1; le"):
        begun("span", model=folder, max_span_length=3)
    task, source = begun("span", model=folder, max_span_length=None), load_task(folder / "model")
    assert type(task) is SpanPretrainer
    for found, expected in zip(task.get_weights(), source.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_weight_of_0_trains_masked_spans_without_the_head(begun, folders):
    task = begun("span", max_span_length=None, span_boundary_weight=0)
    assert type(task) is FillMask
    x, y, _ = task.dataset(DataFolder.open(folders["span"]), batch_size=2, seed=0).element_spec
    assert set(y) == {"masked_lm"} and "span_left" not in x


@pytest.mark.parametrize(
    "objective, settings, message",
    [
        ("mlm", {"max_span_length": 4}, "`max_span_length` is about the boundaries .* mlm; leave"),
        ("mlm-sop", {"span_boundary_weight": 0}, "`span_boundary_weight` is about .* mlm-sop; lea"),
        ("span", {"span_boundary_weight": 0}, "`max_span_length` .* `span_boundary_weight` is 0; "),
        ("span", {"max_span_length": 0}, "`max_span_length` is 0; at least 1"),
        ("span", {"span_boundary_weight": -1}, "`span_boundary_weight` is -1.0; at least 0"),
    ],
)
def test_settings_of_no_use_are_refused(run, tmp_path, objective, settings, message):
    with pytest.raises(InputError, match=message):
        run(tmp_path / "run", objective, **settings)
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_measured_is_said(unbroken, folders, tmp_path):
    folder, _ = unbroken["span"]
    with pytest.raises(InputError, match="has no eval rows to measure on"):
        evaluate(model=folder, data=folders["untested"])
    tokenizer = Tokenizer.from_vocab(VOCABULARY, lowercase=False)
    config = load_task(folder / "model").config
    with pytest.raises(InputError, match="are uncased, and the model"):
        evaluate(model=SpanPretrainer(BertEncoder(config), tokenizer), data=folders["span"])
    pooled = BertEncoder(type(config)(**{**config.to_dict(), "add_pooling_layer": True}))
    classifier = Classifier(pooled, tokenizer, labels=["a", "b"])
    with pytest.raises(InputError, match="task classifier, and a data folder measures what was"):
        evaluate(model=classifier, data=folders["span"])
