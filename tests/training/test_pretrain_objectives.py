"""Rows of spans and of swapped segments: what is trained, resumed, kept and measured."""

import itertools
import json
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file
from tensorflow.python.autograph.pyct import loader

import keras_bert.training.pretrain as module
from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.inference.evaluate import evaluate
from keras_bert.records import DataFolder
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.pretraining.features import training_dataset
from keras_bert.tasks.pretraining.language_models import CausalLM, MaskedCausalLM
from keras_bert.tasks.pretraining.pretrainer import (
    FillMask,
    SentenceOrderPretrainer,
    SpanPretrainer,
)
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.training.checkpoint import Checkpoint
from keras_bert.training.pretrain import pretrain
from tests.messages import raises_input_error
from tests.peers import torch, transformers
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import shifted
from tests.tasks.classification.killed_runs import assert_same_weights, copied

SHORT = {"steps": 12, "batch_size": 8, "checkpoint_every": 5, "eval_every": 10, "seed": shifted(4)}
SHORT["keep_last_checkpoint"] = True
# The longest spans of such rows have two tokens.
KINDS = {
    "span": {"max_span_length": 1, "span_boundary_weight": 0.5, "layer_decay": 0.9},
    "mlm-sop": {"gradient_accumulation": 2, "optimizer": "lamb", "schedule": "one-cycle"},
}
OTHER_HEAD = {"span": "span_boundary", "mlm-sop": "sentence_order"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("rows")
    sizes = {"rows": 44, "eval_examples": 30}
    return {
        "span": make_data_folder(root / "span", objective="span", masking="dynamic", **sizes),
        "mlm-sop": make_data_folder(root / "sop", objective="mlm-sop", **sizes),
        "mlm": make_data_folder(root / "mlm", objective="mlm", **sizes),
        "mlm-nsp": make_data_folder(root / "nsp", **sizes),
        "untested": make_data_folder(root / "untested", objective="span", rows=9, eval_examples=0),
    }


@pytest.fixture(scope="module")
def run(folders, tmp_path_factory):
    """Calls `pretrain` with a very small model."""
    architecture = tmp_path_factory.mktemp("architecture") / "config.json"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 16}
    architecture.write_text(json.dumps({"vocab_size": len(VOCABULARY), **sizes}))

    def call(output, rows, **settings):
        folder = folders[rows]
        if not {"model", "architecture"} & {*settings}:
            settings["architecture"] = architecture
        settings = {**SHORT, **KINDS.get(rows, {}), **settings}
        return pretrain(data=folder, vocab=folder / "vocab.txt", output=output, **settings)

    return call


@pytest.fixture(scope="module")
def uninterrupted(run, tmp_path_factory):
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
    timed = ("seconds", "tokens_per_second", "input_wait", "mfu")
    return [{k: v for k, v in row.items() if k not in timed} for row in metrics["history"]]


@pytest.mark.slow
def test_a_run_killed_after_a_checkpoint_ends_bit_for_bit_like_an_uninterrupted_one(
    run, uninterrupted
):
    """LAMB and the gradients of a step's parts: tests/training/test_checkpoint.py."""
    folder, expected = uninterrupted["span"]
    killed = folder.with_name(f"{folder.name}-killed")
    assert [path.name for path in (killed / "checkpoints").iterdir()] == [
        "step-000000005.safetensors"
    ]
    metrics = run(killed, "span", deterministic=True)
    assert without_clock(metrics) == without_clock(expected)
    tensors, wanted = (
        load_file(max((path / "checkpoints").iterdir())) for path in (killed, folder)
    )
    assert tensors.keys() == wanted.keys()
    for name, value in wanted.items():
        if name == "state":  # the history, with what a clock says
            continue
        np.testing.assert_array_equal(tensors[name], value, err_msg=name)


@pytest.mark.slow
def test_muon_and_a_level_rate_with_a_modern_encoder(run, tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    given = {"optimizer": "muon", "schedule": "wsd", "decay": 0.25, "architecture": "modern-tiny"}
    given |= {"deterministic": True, "layer_decay": 0.9, "gradient_accumulation": 2}
    with copied(whole, part, after_step=5):
        metrics = run(whole, "mlm", **given)
    assert without_clock(run(part, "mlm", **given)) == without_clock(metrics)
    assert_same_weights(whole, part)
    rates = {row["step"]: row["learning_rate"] for row in metrics["history"]}
    assert rates[5] == rates[9] == pytest.approx(5e-4)
    assert rates[11] == pytest.approx(5e-4 * (1 - (2 / 3) ** 0.5), rel=1e-4)
    config = json.loads((whole / "model" / "config.json").read_text())
    assert config["model_type"] == "modernbert" and config["num_hidden_layers"] == 3


def test_a_step_may_have_parts_and_schedules_count_steps(uninterrupted):
    folder, metrics = uninterrupted["mlm-sop"]
    assert [row["step"] for row in metrics["history"]] == list(range(13))
    tensors = load_file(max((folder / "checkpoints").iterdir()))
    assert tensors["optimizer/lamb/iteration"] == 2 * SHORT["steps"]
    assert not any(tensors[name].any() for name in tensors if "gradient_accumulator" in name)
    # One cycle, whose warm-up is a tenth of 12 steps.
    rates = {row["step"]: row["learning_rate"] for row in metrics["history"]}
    for step in (1, 5, 12):
        left = 0.5 * (1 + math.cos(math.pi * (step - 1) / 11))
        expected = 5e-4 * (4e-6 + (1 - 4e-6) * left)
        assert rates[step] == pytest.approx(expected, rel=1e-4)


def test_every_head_has_its_metrics_and_what_the_model_saw_parts_those_of_tokens(
    uninterrupted, objective
):
    _, metrics = uninterrupted[objective]
    names = {"loss", "masked_lm_loss", "masked_lm_accuracy"}
    other = OTHER_HEAD[objective]
    names |= {f"{other}_loss", f"{other}_accuracy"}
    token_heads = ["masked_lm", other] if objective == "span" else ["masked_lm"]
    parts = {
        f"{output}_{part}_{metric}"
        for output in token_heads
        for part in ("masked", "replaced", "kept")
        for metric in ("loss", "accuracy")
    }
    assert names | {f"{output}_masked_loss" for output in token_heads} <= set(metrics["eval"])
    assert set(metrics["eval"]) | set(metrics["train"]) <= names | parts
    assert parts <= set().union(*(row["train"] for row in metrics["history"]))
    scores = metrics["eval_at_start"]
    assert math.log(25) < scores["masked_lm_loss"] < math.log(25) + 1
    weight = KINDS[objective].get("span_boundary_weight", 1.0)
    total = scores["masked_lm_loss"] + weight * scores[f"{other}_loss"]
    assert scores["loss"] == pytest.approx(total, abs=2e-6)


def test_spans_are_a_masked_lm_to_others_and_their_head_lies_beside_it(uninterrupted):
    folder, _ = uninterrupted["span"]
    config = json.loads((folder / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForMaskedLM"]
    settings = {"task": "span-pretrainer", "max_span_length": 1, "span_boundary_weight": 0.5}
    assert settings.items() <= config["keras_bert"].items()
    head_shapes = {
        name.removeprefix("keras_bert.span_boundary."): tensor.shape
        for name, tensor in load_file(folder / "model" / "model.safetensors").items()
        if name.startswith("keras_bert.")
    }
    assert head_shapes == {
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


def test_the_order_of_sentences_has_the_place_of_next_sentences(uninterrupted):
    folder, _ = uninterrupted["mlm-sop"]
    config = json.loads((folder / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForPreTraining"]
    assert "cls.seq_relationship.weight" in load_file(folder / "model" / "model.safetensors")
    assert type(load_task(folder / "model")) is SentenceOrderPretrainer


def test_evaluate_gives_the_metrics_of_the_run_and_what_follows_from_them(
    uninterrupted, folders, objective, capsys
):
    folder, metrics = uninterrupted[objective]
    data = folders[objective]
    assert (
        main(
            ["evaluate", "--json", "--model", str(folder), "--data", str(data), "--batch-size", "7"]
        )
        == 0
    )
    printed = capsys.readouterr()
    assert "Next: keras-bert finetune" in printed.err
    scores = json.loads(printed.out)
    reported = {name: scores[name] for name in metrics["eval"]}
    assert reported == pytest.approx(metrics["eval"], rel=1e-4, abs=1e-6)
    assert scores["objective"] == objective and scores["rows"] == 30
    task = load_task(folder / "model")
    predictions, letters = 0, 0
    for _, labels, weights in task.dataset(DataFolder.open(data), split="eval", batch_size=30):
        ids = labels["masked_lm"].numpy()[weights["masked_lm"].numpy() > 0]
        predictions += len(ids)
        letters += sum(len(VOCABULARY.token(id)) for id in ids)
    assert scores["predictions"] == predictions
    loss = scores["masked_lm_loss"]
    assert scores["masked_lm_perplexity"] == pytest.approx(math.exp(loss), rel=1e-5)
    bits = loss * predictions / math.log(2) / letters
    assert scores["masked_lm_bits_per_character"] == pytest.approx(bits, rel=1e-5)
    boundary = "span_boundary_perplexity"
    assert (boundary in scores) == (objective == "span")
    if boundary in scores:
        expected = math.exp(scores["span_boundary_loss"])
        assert scores[boundary] == pytest.approx(expected, rel=1e-5)


def test_offsets_beyond_the_longest_are_not_predicted_from_the_boundaries(uninterrupted, folders):
    task = load_task(uninterrupted["span"][0] / "model")
    dataset = task.dataset(DataFolder.open(folders["span"]), split="eval", batch_size=30)
    [(x, _, weights)] = dataset.as_numpy_iterator()
    expected = weights["masked_lm"] * (x["span_offset"] <= 1)
    np.testing.assert_array_equal(weights["span_boundary"], expected)
    assert 0 < expected.sum() < weights["masked_lm"].sum()


def test_of_other_rows_what_they_have_labels_for_is_measured(uninterrupted, folders, monkeypatch):
    converted = []  # by AutoGraph, which writes Python files into the temporary folder
    monkeypatch.setattr(loader, "load_source", lambda source, *_: converted.append(source))
    said = []
    metrics = evaluate(
        model=uninterrupted["mlm-sop"][0], data=folders["span"], batches=2, batch_size=8,
        report=said.append,
    )  # fmt: skip
    assert said == [
        "Note: the examples were made for the objective span; the model's sentence-order is not "
        "evaluated."
    ]
    assert metrics["rows"] == 16 and metrics["masked_lm_loss"] > 0
    assert not converted
    assert not any(name.startswith(("sentence_order", "span_boundary")) for name in metrics)


class Begun(Exception):
    """Carries the task of a run that is about to train."""


@pytest.fixture()
def begun(run, tmp_path, monkeypatch):
    """The task that a run would train."""
    outputs = (tmp_path / f"run-{number}" for number in itertools.count())

    def stop(model, *others, **more):
        raise Begun(model)

    def begin(rows, **settings):
        with pytest.raises(Begun) as stopped:
            run(next(outputs), rows, **settings)
        return stopped.value.args[0]

    monkeypatch.setattr(module, "_steps", stop)
    return begin


def test_a_run_goes_on_from_a_folder_with_its_head(begun, uninterrupted):
    folder, _ = uninterrupted["span"]
    with raises_input_error("that of the model in ..., 1. Received: 3"):
        begun("span", model=folder, max_span_length=3)
    task, source = begun("span", model=folder, max_span_length=None), load_task(folder / "model")
    assert type(task) is SpanPretrainer
    for weight, expected in zip(task.get_weights(), source.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)


def changed(folder, output, *, tensors=lambda weights: weights, **config):
    """A copy of a model folder with other tensors and entries of its config (None: left out)."""
    shutil.copytree(folder / "model", output)
    path = output / "config.json"
    fields = {**json.loads(path.read_text()), **config}
    path.write_text(json.dumps({name: value for name, value in fields.items() if value}))
    weights = load_file(output / "model.safetensors")
    save_file(tensors(dict(weights)), output / "model.safetensors")
    return output


def test_a_run_starts_with_new_heads_only_where_a_folder_lacks_them(begun, uninterrupted, tmp_path):
    """Its class or its tensors may say that it has one."""
    folder, _ = uninterrupted["span"]
    source = load_task(folder / "model")
    bias = np.asarray(source.lm_head.bias)
    said = []
    unnamed = changed(folder, tmp_path / "unnamed", architectures=None, keras_bert=None)
    task = begun("mlm", model=unnamed, report=said.append)
    np.testing.assert_array_equal(task.lm_head.bias, bias)
    assert not any("random weights" in line for line in said)
    begun("mlm-sop", model=folder, max_span_length=None, report=said.append)
    lines = [line for line in said if "random weights" in line]
    assert lines == [
        f"New, from random weights, since {folder} lacks them: pooler, next sentence head."
    ]
    left_out = "Left out, since this run does not train them: keras_bert.span_boundary."
    assert said.count(left_out) == 2  # for mlm, too

    def without_head(weights):
        return {name: x for name, x in weights.items() if not name.startswith(("cls.", "keras_"))}

    def without_bias(weights):
        return {name: x for name, x in weights.items() if name != "cls.predictions.bias"}

    bare = {"architectures": None, "keras_bert": None, "tensors": without_head}
    task = begun("mlm", model=changed(folder, tmp_path / "bare", **bare), report=said.append)
    assert not np.asarray(task.lm_head.bias).any()
    assert said[-1].endswith("bare lacks them: lm head.")
    with raises_input_error("lacks the tensor cls.predictions.bias"):
        begun("mlm", model=changed(folder, tmp_path / "torn", tensors=without_bias))
    with raises_input_error("lacks the tensor cls.predictions"):
        begun("mlm", model=changed(folder, tmp_path / "said", tensors=without_head))
    untied = {"cls.predictions.decoder.weight": np.zeros((len(VOCABULARY), 16), np.float32)}
    with raises_input_error("decoder.weight differs from ...word_emb"):
        begun("mlm", model=changed(folder, tmp_path / "untied", tensors=lambda x: x | untied))


DEFAULTS = [
    ("mlm", {}, "modernbert"),
    ("mlm", {"causal_fraction": 0.25}, "modernbert"),
    ("mlm", {"objective": "rtd"}, "modernbert"),
    ("mlm", {"objective": "causal-lm"}, "bert"),
    ("span", {}, "modernbert"),
    ("mlm-sop", {}, "bert"),
    ("mlm-nsp", {}, "bert"),
]


@pytest.mark.parametrize(("rows", "settings", "expected"), DEFAULTS)
def test_the_default_architecture_has_the_objective(begun, rows, settings, expected):
    task = begun(rows, architecture=None, **settings)
    config = task.encoder.config
    assert (config.model_type, config.hidden_size) == (expected, 128)
    assert settings.get("objective", rows) in task.encoder.OBJECTIVES


def test_a_weight_of_0_trains_masked_spans_without_the_head(begun, folders):
    task = begun("span", max_span_length=None, span_boundary_weight=0)
    assert type(task) is FillMask
    x, y, _ = task.dataset(DataFolder.open(folders["span"]), batch_size=2, seed=0).element_spec
    assert set(y) == {"masked_lm"} and "span_left" not in x


@pytest.fixture(scope="module")
def hybrid(run, tmp_path_factory):
    """(the folder of a masked and causal run, its metrics)."""
    output = tmp_path_factory.mktemp("hybrid") / "run"
    return output, run(output, "mlm", causal_fraction=0.25)


def test_masked_and_causal_rows_are_trained_and_measured_together(hybrid, folders, capsys):
    folder, metrics = hybrid
    scores = metrics["eval"]
    total = 0.75 * scores["masked_lm_loss"] + 0.25 * scores["causal_lm_loss"]
    assert scores["loss"] == pytest.approx(total, abs=2e-6)
    assert not any(name.startswith("causal_lm_masked") for name in scores)
    assert main(["evaluate", "--json", "--model", str(folder), "--data", str(folders["mlm"])]) == 0
    evaluation = json.loads(capsys.readouterr().out)
    assert {name: evaluation[name] for name in scores} == pytest.approx(scores, rel=1e-4, abs=1e-6)
    assert evaluation["causal_lm_perplexity"] == pytest.approx(
        math.exp(scores["causal_lm_loss"]), rel=1e-4
    )
    # Every token after [CLS] is predicted, and [SEP] has no characters.
    task = load_task(folder / "model")
    [(x, y, weights)] = task.dataset(DataFolder.open(folders["mlm"]), split="eval", batch_size=30)
    ids = y["causal_lm"].numpy()[weights["causal_lm"].numpy() > 0]
    assert len(ids) == int(tf.reduce_sum(x["input_mask"])) - 30
    letters = sum(len(VOCABULARY.token(id)) for id in ids if id != VOCABULARY.sep_id)
    bits = scores["causal_lm_loss"] * len(ids) / math.log(2) / letters
    assert evaluation["causal_lm_bits_per_character"] == pytest.approx(bits, rel=1e-4)
    config = json.loads((folder / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForMaskedLM"] and not config.get("is_decoder")
    assert type(task) is MaskedCausalLM and task.settings.causal_fraction == 0.25


def test_a_causal_lm_sees_what_came_before_and_has_a_folder_of_its_own(
    begun, hybrid, folders, tmp_path
):
    """It goes on from the masked and causal one, and computes what that computes of causal rows."""
    hybrid_task = load_task(hybrid[0] / "model")
    task = begun("mlm", model=hybrid[0], objective="causal-lm")
    assert type(task) is CausalLM
    data = DataFolder.open(folders["mlm"])
    [(x, y, _)] = task.dataset(data, split="eval", batch_size=30)
    [(hybrid_inputs, labels, _)] = hybrid_task.dataset(data, split="eval", batch_size=30)
    np.testing.assert_array_equal(y["causal_lm"], labels["causal_lm"])
    np.testing.assert_array_equal(x["input_ids"], hybrid_inputs["causal_input_ids"])
    logits = task(x, training=False)["causal_lm"]  # (B, S - 1, V)
    expected = hybrid_task(hybrid_inputs, training=False)["causal_lm"]
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
    ids = x["input_ids"]
    changed = {**x, "input_ids": tf.concat([ids[:, :5], 0 * ids[:, 5:] + 7], axis=1)}
    changed_logits = task(changed, training=False)["causal_lm"]
    np.testing.assert_allclose(changed_logits[:, :5], logits[:, :5], rtol=1e-4, atol=1e-5)
    assert not np.allclose(changed_logits[:, 5:10], logits[:, 5:10], atol=1e-3)
    task.save(tmp_path / "causal")
    config = json.loads((tmp_path / "causal" / "config.json").read_text())
    assert config["architectures"] == ["BertLMHeadModel"] and config["is_decoder"]
    again = load_task(tmp_path / "causal")
    assert type(again) is CausalLM
    np.testing.assert_array_equal(again(x, training=False)["causal_lm"], logits)


@pytest.mark.peers
def test_a_causal_lm_opens_in_transformers(begun, hybrid, folders, tmp_path):
    task = begun("mlm", model=hybrid[0], objective="causal-lm")
    [(x, _, _)] = task.dataset(DataFolder.open(folders["mlm"]), split="eval", batch_size=30)
    logits = task(x, training=False)["causal_lm"]
    task.save(tmp_path / "causal")
    its = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "causal").eval()
    assert type(its).__name__ == "BertLMHeadModel"
    batch = {"input_ids": x["input_ids"], "attention_mask": x["input_mask"]}
    batch = {name: torch.tensor(value.numpy()) for name, value in batch.items()}
    with torch.no_grad():
        their_logits = its(**batch).logits.numpy()[:, :-1]
    is_token = x["input_mask"].numpy()[:, 1:] > 0
    np.testing.assert_allclose(
        logits.numpy()[is_token], their_logits[is_token], rtol=1e-3, atol=1e-4
    )


def test_causal_rows_are_without_masks_and_the_others_as_ever(folders):
    for objective, batch_size in (("mlm", 8), ("span", 6)):
        folder = DataFolder.open(folders[objective])
        options = {"vocabulary": VOCABULARY, "batch_size": batch_size, "seed": shifted(3)}
        [(masked, labels, weights)] = training_dataset(folder, **options).take(1)
        original = masked["input_ids"].numpy()
        row, number = np.nonzero(weights["masked_lm"])
        columns = masked["masked_lm_positions"].numpy()[row, number]
        original[row, columns] = labels["masked_lm"].numpy()[row, number]
        causal = SimpleNamespace(
            input=("input_ids", "input_mask"),
            output=("causal_lm",),
            settings=None,
            context_windows=lambda card, vocabulary: None,
        )
        [(x, y, counts)] = training_dataset(folder, task=causal, **options).take(1)
        np.testing.assert_array_equal(x["input_ids"], original)
        np.testing.assert_array_equal(y["causal_lm"], original[:, 1:])
        np.testing.assert_array_equal(counts["causal_lm"], masked["input_mask"][:, 1:])
        both = SimpleNamespace(
            input=("input_ids", "masked_lm_positions", "causal_input_ids", "causal_input_mask"),
            output=("masked_lm", "causal_lm"),
            settings=SimpleNamespace(causal_fraction=0.25),
            context_windows=lambda card, vocabulary: None,
        )
        first = round(batch_size / 4)
        [(x, y, counts)] = training_dataset(folder, task=both, **options).take(1)
        np.testing.assert_array_equal(x["causal_input_ids"], original[:first])
        np.testing.assert_array_equal(x["input_ids"], masked["input_ids"][first:])
        np.testing.assert_array_equal(y["masked_lm"], labels["masked_lm"][first:])
        assert y["causal_lm"].shape == (first, original.shape[1] - 1)


@pytest.mark.parametrize(
    "objective, settings, message",
    [
        ("mlm-sop", {"causal_fraction": 0.5}, "`causal_fraction` needs ... mlm. ... mlm-sop"),
        (
            "span",
            {"objective": "causal-lm"},
            "`max_span_length` ... `objective` is causal-lm. Leave",
        ),
        (
            "mlm",
            {"objective": "span"},
            "`objective` is span, but ... was made for mlm. Expected mlm",
        ),
        (
            "mlm",
            {"causal_fraction": 0.5, "batch_size": 1},
            "`causal_fraction` needs at least 2 examples",
        ),
        ("mlm", {"max_span_length": 4}, "`max_span_length` is for span boundaries, ... mlm. Leave"),
        ("mlm-sop", {"span_boundary_weight": 0}, "`span_boundary_weight` is for ...mlm-sop. Leave"),
        (
            "span",
            {"span_boundary_weight": 0},
            "`max_span_length` ... `span_boundary_weight` is 0. Leave",
        ),
        ("span", {"max_span_length": 0}, "`max_span_length` must be at least 1. Received: 0."),
        (
            "span",
            {"span_boundary_weight": -1},
            "`span_boundary_weight` must be at least 0. Received: -1.0.",
        ),
    ],
)
def test_settings_of_no_use_are_rejected(run, tmp_path, objective, settings, message):
    with raises_input_error(message):
        run(tmp_path / "run", objective, **settings)
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_measured_is_said(uninterrupted, folders, tmp_path):
    folder, _ = uninterrupted["span"]
    with raises_input_error("has no examples in its eval split"):
        evaluate(model=folder, data=folders["untested"])
    tokenizer = Tokenizer.from_vocab(VOCABULARY, lowercase=False)
    config = load_task(folder / "model").config
    with raises_input_error("is uncased, but the model"):
        evaluate(model=SpanPretrainer(BertEncoder(config), tokenizer), data=folders["span"])
    classifier = Classifier(BertEncoder(config), tokenizer, labels=["a", "b"])
    with raises_input_error("task classifier, but a data folder is for pre-trained"):
        evaluate(model=classifier, data=folders["span"])
