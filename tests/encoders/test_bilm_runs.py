"""ELMo from pre-training to served answers, under every task type."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task
from keras_bert.cli.main import main
from keras_bert.encoders.bilm import BilmConfig
from keras_bert.encoders.bilm.encoder import BilmEncoder
from keras_bert.exports.saved_model import export
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.records import DataFolder
from keras_bert.training.finetune import finetune
from keras_bert.training.pretrain import pretrain
from tests.eagerly import eagerly
from tests.encoders.every_kind import LINES, request_of
from tests.exports.answers import CHECKS
from tests.pretraining_folder import VOCABULARY, WORDS
from tests.tasks.classification.killed_runs import assert_same_weights, copied

CONFIG = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 16,
    "lstm_size": 12,
    "character_filters": [[1, 8], [3, 12]],
    "num_highway_layers": 1,
}
# What the paper does with the features: a mix of the layers, frozen, under a BiLSTM.
FEATURES = {"freeze_encoder": True, "layers": "mix-all", "scalar_mix_l2": 0.001, "dropout": 0.5}
OPTIONS = {
    "tagger": {**FEATURES, "bilstm": 8},
    "classifier": {**FEATURES, "bilstm": 8, "pooling": "max"},
    "multiple-choice": {"layers": "mix-all"},
}
QUICK = ("classifier",)
TRAIN_ROWS = 64
KINDS = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in LINES]


def arguments(data, **changes):
    (data.parent / "elmo.json").write_text(json.dumps(BilmConfig(**CONFIG).to_dict()))
    return {
        "data": data,
        "vocab": data / "vocab.txt",
        "architecture": str(data.parent / "elmo.json"),
        "steps": 60,
        "batch_size": 16,
        "learning_rate": 0.04,
        "checkpoint_every": 20,
        "deterministic": True,
        **changes,
    }


@pytest.fixture(scope="module")
def pretrained(data, tmp_path_factory):
    """(the folder of a pre-training run, its metrics); beside it `killed`, as after step 20."""
    output = tmp_path_factory.mktemp("elmo_pretrained") / "run"
    with copied(output, output.with_name("killed"), after_step=20):
        return output, pretrain(**arguments(data), output=output)


def test_pretraining_learns_in_both_directions(pretrained):
    output, metrics = pretrained
    start, end = metrics["eval_at_start"], metrics["eval"]
    assert math.log(len(VOCABULARY)) == pytest.approx(start["forward_lm_loss"], rel=0.1)
    # Each word is followed by the next of a circle, so both neighbours can be told.
    for way in ("forward_lm", "backward_lm"):
        assert end[f"{way}_loss"] < 0.9 * math.log(WORDS)  # the unigram entropy
        for split in (end, metrics["train"]):
            perplexity = split[f"{way}_perplexity"]
            assert perplexity == pytest.approx(math.exp(split[f"{way}_loss"]), rel=1e-4)
    mean = (end["forward_lm_loss"] + end["backward_lm_loss"]) / 2
    assert end["loss"] == pytest.approx(mean, rel=1e-5)
    config = json.loads((output / "model" / "config.json").read_text())
    assert config["model_type"] == "bilm" and config["architectures"] == ["BilmEncoder"]
    assert config["keras_bert"]["task"] == "bidirectional-lm"
    assert metrics["parameters"] == load_task(output).count_params()


@pytest.mark.slow  # as a fine-tuning run of each kind does
def test_a_killed_run_ends_with_the_same_weights(pretrained, data):
    killed = pretrained[0].with_name("killed")
    pretrain(**arguments(data), output=killed)
    assert_same_weights(killed, pretrained[0])


def test_a_run_continues_from_the_folder_and_is_evaluated(pretrained, data, tmp_path):
    metrics = pretrain(
        **arguments(data, architecture=None, steps=2, checkpoint_every=2),
        model=pretrained[0],
        output=tmp_path / "run",
    )
    loss = pretrained[1]["eval"]["backward_lm_loss"]
    assert metrics["eval_at_start"]["backward_lm_loss"] == pytest.approx(loss, rel=1e-4)
    measured = evaluate(model=pretrained[0], data=data)
    assert measured["backward_lm_loss"] == pytest.approx(loss, rel=1e-4)
    assert measured["backward_lm_perplexity"] == pytest.approx(math.exp(loss), rel=1e-4)


def test_it_is_trained_by_fit_on_batches_of_tokens(data):
    tokenizer = kb.Tokenizer.from_vocab(data / "vocab.txt")
    task = kb.BidirectionalLM(BilmEncoder(BilmConfig(**CONFIG)), tokenizer)
    task.compile_defaults(learning_rate=0.02)
    batches = task.dataset(data, batch_size=8).take(20)
    losses = [
        task.fit(batches, epochs=1, verbose=0).history["forward_lm_cross_entropy"][0]
        for _ in range(2)
    ]
    assert losses[1] < losses[0]


def test_labels_are_the_neighbours(data):
    folder = DataFolder.open(data)
    tokenizer = kb.Tokenizer.from_vocab(data / "vocab.txt")
    task = kb.BidirectionalLM(BilmEncoder(BilmConfig(**CONFIG)), tokenizer)
    x, y, weights = next(iter(task.dataset(folder, split="eval", batch_size=4)))
    ids, mask = np.asarray(x["input_ids"]), np.asarray(x["input_mask"])
    assert tokenizer.vocabulary.mask_id not in ids
    np.testing.assert_array_equal(y["forward_lm"], ids[:, 1:])
    np.testing.assert_array_equal(y["backward_lm"], ids[:, :-1])
    for name in y:
        np.testing.assert_array_equal(weights[name], mask[:, 1:])


def test_what_it_cannot_do_is_one_sentence(pretrained, data, tmp_path):
    with pytest.raises(InputError, match="be pre-trained with the objective mlm-nsp. Choose"):
        pretrain(**arguments(data, objective="mlm-nsp"), output=tmp_path / "run")
    with pytest.raises(InputError, match="A bert encoder cannot be .* objective bidirectional-lm"):
        given = arguments(data, architecture="tiny", objective="bidirectional-lm")
        pretrain(**given, output=tmp_path / "run")
    with pytest.raises(InputError, match="A bilm encoder has no attention to show."):
        kb.draw_attention(model=pretrained[0], text="w1 w2", output=tmp_path / "picture.png")
    with pytest.raises(InputError, match="A bidirectional LM cannot be exported"):
        export(model=pretrained[0], output=tmp_path / "served")


@pytest.mark.slow  # as that of a causal encoder
def test_the_preset_is_trained_by_the_command(data, tmp_path, capsys):
    folder = str(tmp_path / "run")
    given = ["--data", str(data), "--vocab", str(data / "vocab.txt"), "--steps", "1"]
    given += ["--architecture", "elmo-tiny", "--output", folder]
    assert main(["pretrain", *given]) == 0
    assert "previous-token loss" in capsys.readouterr().out
    encoder, _ = load(folder)
    assert type(encoder) is BilmEncoder and encoder.config.hidden_size == 128


# Fine-tuning.


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_task_is_trained_resumed_evaluated_exported(kind, pretrained, files, tmp_path):
    output, killed, file = tmp_path / "run", tmp_path / "killed", files[kind]
    given = {
        "task": kind,
        "train": file,
        "dev": file,
        "model": pretrained[0],
        "batch_size": 4,
        "epochs": 2,
        "learning_rate": 0.02,
        "checkpoint_every": 2,
        "deterministic": True,
        **OPTIONS.get(kind, {}),
    }
    with eagerly():
        with copied(output, killed, after_step=4):
            metrics = finetune(**given, output=output)
        finetune(**given, output=killed)
    assert_same_weights(killed, output)
    if kind in OPTIONS:
        assert load_task(output).reader.scalar_mix.num_layers == 3
    with eagerly():
        measured = evaluate(model=output, data=file)
        answers = list(predict(model=output, data=file))
    for name, value in metrics["dev"].items():
        if isinstance(value, float):
            assert measured[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name
    version = export(model=output, output=tmp_path / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(**request_of(kind, file, answers))
    for number, answer in enumerate(answers):
        CHECKS[kind]({name: column[number].numpy() for name, column in outputs.items()}, answer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [{"layer_decay": 0.5}, {"gradual_unfreezing": True}, {"train_layers": 1}], ids=str
)
def test_layers_are_slowed_frozen_and_unfrozen_by_their_groups(way, pretrained, files, tmp_path):
    given = {"task": "classifier", "train": files["classifier"], "dev": files["classifier"]}
    given |= {"model": pretrained[0], "batch_size": 4, "epochs": 2, "keep": "last"}
    finetune(**given, **way, learning_rate=0.02, output=tmp_path / "run")
    before, after = (load(folder)[0] for folder in (pretrained[0], tmp_path / "run"))
    moved = [
        any(
            not np.array_equal(one, other)
            for layer, changed in zip(group, changed_group, strict=True)
            for one, other in zip(layer.weights, changed.weights, strict=True)
        )
        for group, changed_group in zip(before.layer_groups, after.layer_groups, strict=True)
    ]
    all_move = "layer_decay" in way
    assert moved == [all_move, all_move, True]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_other_precisions_are_exported(precision, pretrained, files, tmp_path):
    output, file = tmp_path / "run", files["classifier"]
    given = {"task": "classifier", "train": file, "dev": file, "model": pretrained[0]}
    finetune(**given, epochs=1, output=output)
    version = export(model=output, output=tmp_path / "served", precision=precision)
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(text=tf.constant(["w1 w2 w3"]))
    (answer,) = predict(model=output, text="w1 w2 w3")
    score = max(answer["probabilities"].values())
    assert float(outputs["score"][0]) == pytest.approx(score, abs=0.05)
