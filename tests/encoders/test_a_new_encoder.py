"""A new encoder is its own file and one line of ENCODERS: all that an encoder is put through."""

import json

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

import keras_bert as kb
from keras_bert import encoders
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.cli.main import main
from keras_bert.exports.saved_model import export
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.tasks import finetuned_task_types
from keras_bert.training.finetune import finetune
from keras_bert.training.pretrain import pretrain
from tests.eagerly import eagerly
from tests.encoders.every_kind import LINES, request_of
from tests.encoders.toy_encoder import HOME, ToyConfig, ToyEncoder
from tests.exports.answers import CHECKS
from tests.pretraining_folder import VOCABULARY
from tests.tasks.classification.killed_runs import assert_same_weights, copied

# A kind that reads one vector, and one that reads all; `make test` has the others over a BERT or a
# RoBERTa, in test_products.py.
QUICK = ("classifier", "tagger")
KINDS = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in LINES]
# Settings that train what a plain run does not.
WAYS = {
    "frozen": {"freeze_encoder": True},
    "layer-wise rates": {"layer_decay": 0.5},
    "gradual unfreezing": {"gradual_unfreezing": True},
}


@pytest.fixture(scope="module", autouse=True)
def entered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(encoders.ENCODERS, "toy", HOME)
        yield


@pytest.fixture(scope="module")
def pretrained(data, tmp_path_factory):
    """(the folder of a pre-training run, its metrics); beside it `killed`, as after step 4."""
    output = tmp_path_factory.mktemp("toy_pretrained") / "run"
    with copied(output, output.with_name("killed"), after_step=4):
        return output, pretrain(**arguments(data), output=output)


def arguments(data):
    return {
        "data": data,
        "vocab": data / "vocab.txt",
        "architecture": "toy",
        "objective": "causal-lm",
        "steps": 8,
        "batch_size": 8,
        "learning_rate": 0.01,
        "checkpoint_every": 4,
        "deterministic": True,
    }


@pytest.fixture(scope="module")
def given(files, pretrained):
    """A function from a task type to the arguments of its run."""

    def of(kind):
        file = files[kind]
        return {
            "task": kind,
            "train": file,
            "dev": file,
            "model": pretrained[0],
            "batch_size": 4,
            "epochs": 2,
            "learning_rate": 0.02,
            "checkpoint_every": 2,
            "deterministic": True,
        }

    return of


@pytest.fixture(scope="module")
def runs(given, tmp_path_factory):
    """A function from a kind to (the folder of a run, its metrics); beside it lies `killed`."""
    runs_by_kind = {}

    def run(kind):
        if kind not in runs_by_kind:
            output = tmp_path_factory.mktemp("toy_runs") / "run"
            with copied(output, output.with_name("killed"), after_step=4):
                runs_by_kind[kind] = output, finetune(**given(kind), output=output)
        return runs_by_kind[kind]

    return run


def test_all_kinds_are_here():
    assert set(LINES) == set(finetuned_task_types()) == set(CHECKS) - {"multi-label", "tagger-crf"}


def test_it_is_pretrained_from_left_to_right(pretrained):
    output, metrics = pretrained
    assert metrics["eval"]["causal_lm_loss"] < metrics["eval_at_start"]["causal_lm_loss"]
    encoder, tokenizer = load(output)
    assert type(encoder) is ToyEncoder and len(tokenizer) == len(VOCABULARY)
    assert metrics["parameters"] == encoder.count_params() + len(VOCABULARY)  # the head's bias
    assert encoder.config.parameter_count() == encoder.count_params()
    config = json.loads((output / "model" / "config.json").read_text())
    assert config["model_type"] == "toy" and config["architectures"] == ["ToyEncoder"]
    assert config["keras_bert"]["task"] == "causal-lm"


def test_a_pretraining_run_that_was_killed_ends_with_the_same_weights(pretrained, data):
    killed = pretrained[0].with_name("killed")
    pretrain(**arguments(data), output=killed)
    assert_same_weights(killed, pretrained[0])


def test_pretraining_goes_on_from_its_folder(pretrained, data, tmp_path):
    said = []
    given = {name: value for name, value in arguments(data).items() if name != "architecture"}
    metrics = pretrain(**given, model=pretrained[0], output=tmp_path / "run", report=said.append)
    start = metrics["eval_at_start"]["causal_lm_loss"]
    assert start == pytest.approx(pretrained[1]["eval"]["causal_lm_loss"], rel=1e-4)
    assert not any("random weights" in line for line in said)


def test_what_it_cannot_do_is_one_sentence(pretrained, data, tmp_path):
    with pytest.raises(InputError, match="cannot be pre-trained with the objective mlm-nsp. Ch"):
        pretrain(**{**arguments(data), "objective": "mlm-nsp"}, output=tmp_path / "run")
    with pytest.raises(InputError, match="A toy encoder has no attention to show."):
        kb.draw_attention(model=pretrained[0], text="w1 w2", output=tmp_path / "picture.png")
    encoder, tokenizer = load(pretrained[0])
    with pytest.raises(InputError, match="`pooling` cannot be cls for a causal encoder"):
        kb.Classifier(encoder, tokenizer, labels=["a", "b"], pooling="cls")


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_every_kind_is_evaluated_saved_and_resumed(kind, runs, given, files, tmp_path):
    output, metrics = runs(kind)
    killed = output.with_name("killed")
    resumed = finetune(**given(kind), output=killed)
    assert resumed["dev"] == metrics["dev"]
    assert_same_weights(killed, output)
    with eagerly():
        measured = evaluate(model=output, data=files[kind])
    for name, value in metrics["dev"].items():
        if isinstance(value, float):
            assert measured[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name
    load_task(output).save(tmp_path / "again")
    again, first = (
        load_file(folder / "model.safetensors") for folder in (tmp_path / "again", output / "model")
    )
    assert again.keys() == first.keys()
    for name in first:
        np.testing.assert_array_equal(again[name], first[name])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_exported_answers_as_predict_does(kind, runs, files, tmp_path):
    output, _ = runs(kind)
    with eagerly():
        answers = list(predict(model=output, data=files[kind]))
    version = export(model=output, output=tmp_path / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(**request_of(kind, files[kind], answers))
    assert len(answers) == 12
    for number, answer in enumerate(answers):
        row = {name: column[number].numpy() for name, column in outputs.items()}
        CHECKS[kind](row, answer)


@pytest.mark.parametrize("way", WAYS)
def test_its_layers_are_frozen_slowed_and_unfrozen_by_their_groups(
    way, given, pretrained, tmp_path
):
    output = tmp_path / "run"
    finetune(**{**given("classifier"), **WAYS[way]}, keep="last", output=output)
    before, after = (load(folder)[0] for folder in (pretrained[0], output))
    moved = [
        not np.array_equal(one, other)
        for one, other in zip(before.weights, after.weights, strict=True)
    ]
    # Of two epochs of gradual unfreezing the first trains the head, the second the GRU, too.
    expected = {"frozen": (False, False), "layer-wise rates": (True, True)}
    embedding, gru = expected.get(way, (False, True))
    assert moved == [embedding, gru, gru, gru]


def test_another_precision_and_more_tokens(pretrained):
    encoder, _ = load(pretrained[0])
    ids = np.array([[5, 6, 7]], "int32")
    inputs = {"input_ids": ids, "input_mask": np.ones_like(ids)}
    expected = np.asarray(encoder(inputs)["sequence_output"])
    half = encoder.rebuilt(dtype="bfloat16")(inputs)["sequence_output"]
    np.testing.assert_allclose(np.asarray(half, np.float32), expected, atol=0.05)
    larger = encoder.rebuilt(vocab_size=encoder.config.vocab_size + 2)
    np.testing.assert_array_equal(np.asarray(larger(inputs)["sequence_output"]), expected)


def test_the_commands_take_it(data, given, tmp_path, capsys):
    folder = tmp_path / "run"
    config = tmp_path / "config.json"
    config.write_text(json.dumps(ToyConfig(vocab_size=len(VOCABULARY), hidden_size=16).to_dict()))
    pretraining = ["--data", str(data), "--vocab", str(data / "vocab.txt"), "--steps", "2"]
    pretraining += ["--architecture", str(config), "--objective", "causal-lm"]
    assert main(["pretrain", *pretraining, "--output", str(folder)]) == 0
    file = str(given("classifier")["train"])
    tuned = ["--task", "classifier", "--train", file, "--dev", file, "--epochs", "1"]
    tuned += ["--model", str(folder), "--output", str(tmp_path / "tuned")]
    assert main(["finetune", *tuned]) == 0
    capsys.readouterr()
    assert main(["predict", "--model", str(tmp_path / "tuned"), "--text", "w1 w2"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] in ("a", "b")


def test_a_folder_is_saved_and_loaded_without_a_task(pretrained, tmp_path):
    encoder, tokenizer = load(pretrained[0])
    save_folder(encoder, tokenizer, tmp_path / "model")
    again, _ = load(tmp_path / "model")
    assert again.config == encoder.config
    for one, other in zip(again.weights, encoder.weights, strict=True):
        np.testing.assert_array_equal(one, other)
