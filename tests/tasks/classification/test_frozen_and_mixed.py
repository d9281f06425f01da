"""Fine-tuning with the encoder frozen and with a mix of its layers: all that a run promises."""

import dataclasses
import functools
import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.cli.main import main
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.exports.saved_model import export
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.training.finetune import finetune
from keras_bert.training.plan import plan_epochs
from tests.eagerly import eagerly
from tests.messages import raises_input_error
from tests.seeds import shifted
from tests.tasks.classification.killed_runs import assert_same_weights, copied

MIX = {"layers": "mix-all", "scalar_mix_l2": 0.01, "scalar_mix_layer_norm": True}
WAYS = {"frozen": {"freeze_encoder": True}, "mixed": MIX, "both": {"freeze_encoder": True, **MIX}}
EACH_WAY = [pytest.param("frozen", marks=pytest.mark.slow), "mixed", "both"]


@pytest.fixture(scope="module")
def start(config, tokenizer, tmp_path_factory):
    """A model folder to start from, with dropout everywhere."""
    keras.utils.set_random_seed(shifted(11))
    folder = tmp_path_factory.mktemp("start") / "model"
    encoder = BertEncoder(config)
    encoder.new_pooler()
    save_folder(encoder, tokenizer, folder)
    return folder


@pytest.fixture(scope="module")
def given(arguments, start):
    from_folder = {**arguments, "model": start, "learning_rate": 0.02, "epochs": 2}
    return {name: v for name, v in from_folder.items() if name not in ("architecture", "vocab")}


@pytest.fixture(scope="module")
def finished(given, tmp_path_factory):
    """A function from a way to (what is asked for, the run's folder, its metrics).

    Beside the folder lies `killed`, as it was in the second epoch.
    """

    @functools.cache
    def run(way):
        output = tmp_path_factory.mktemp("runs") / "unbroken"
        arguments = {**given, **WAYS[way]}
        with copied(output, output.with_name("killed"), after_step=15):
            return arguments, output, finetune(**arguments, output=output)

    return run


def frozen_weights(encoder):
    """The weights that a frozen encoder does not train."""
    return [w for layer in (encoder.embeddings, *encoder.blocks) for w in layer.weights]


@pytest.mark.parametrize("way", EACH_WAY)
def test_a_frozen_encoder_stays_as_it_was_bit_for_bit(way, finished, start):
    arguments, output, metrics = finished(way)
    before, after = load(start)[0], load(output / "model")[0]
    same = [
        np.array_equal(one, other)
        for one, other in zip(frozen_weights(before), frozen_weights(after), strict=True)
        if "seed_generator" not in one.path
    ]
    assert all(same) if "freeze_encoder" in arguments else not any(same)
    assert not np.array_equal(before.pooler.dense.kernel, after.pooler.dense.kernel)
    task = load_task(output / "model")
    head_parameters = (task.encoder.config.hidden_size + 1) * (task.encoder.config.hidden_size + 2)
    mix_parameters = task.encoder.config.num_hidden_layers + 2 if "layers" in arguments else 0
    all_of_it = metrics["parameters"] == metrics["trainable_parameters"]
    assert (metrics["trainable_parameters"] == head_parameters + mix_parameters) == (
        "freeze_encoder" in arguments
    )
    assert all_of_it == ("freeze_encoder" not in arguments)


@pytest.mark.parametrize("way", EACH_WAY)
def test_the_folder_holds_the_whole_task(way, finished, files):
    arguments, output, metrics = finished(way)
    names = ["logs", "metrics.json", "model", "run.json"]  # checkpoints and features are gone
    assert sorted(entry.name for entry in output.iterdir()) == names
    assert json.loads((output / "metrics.json").read_text()) == metrics
    with eagerly():
        measures = evaluate(model=output, data=files / "dev.tsv")
    assert measures["confusion"] == metrics["dev"]["confusion"]
    assert ("scalar_mix" in metrics) == ("layers" in arguments)
    assert measures["cross_entropy"] == pytest.approx(metrics["dev"]["cross_entropy"], rel=1e-4)
    evaluations = [row["eval"] for row in metrics["history"] if "eval" in row]
    by_epoch = [(evaluation["accuracy"], -evaluation["loss"]) for evaluation in evaluations]
    assert metrics["kept"]["epoch"] == 1 + by_epoch.index(max(by_epoch))
    assert max(by_epoch)[0] == pytest.approx(metrics["dev"]["accuracy"], abs=1e-6)


@pytest.mark.parametrize("way", ["both"])
def test_predicts_the_same_when_it_is_served(way, finished, tmp_path):
    _, output, _ = finished(way)
    text = "the great film"
    with eagerly():
        (answer,) = predict(model=output, text=text)
    served = tf.saved_model.load(str(export(model=output, output=tmp_path / "served")))
    served = served.signatures["serving_default"](text=tf.constant([text]))
    expected = list(answer["probabilities"].values())
    np.testing.assert_allclose(served["probabilities"][0], expected, atol=1e-5)


@pytest.mark.parametrize("way", ["mixed", "both"])
def test_the_learned_mix_is_told(way, finished):
    _, output, metrics = finished(way)
    task = load_task(output / "model")
    assert task.reader.mix == {"layer_norm_eps": task.config.layer_norm_eps, "l2": 0.01}
    fractions, gamma = metrics["scalar_mix"]["layer_weights"], metrics["scalar_mix"]["gamma"]
    np.testing.assert_allclose(fractions, task.reader.scalar_mix.layer_weights, atol=1e-6)
    assert sum(fractions) == pytest.approx(1, abs=1e-5) and max(fractions) - min(fractions) > 1e-3
    assert gamma == pytest.approx(float(task.reader.scalar_mix.gamma), rel=1e-5)


@pytest.mark.parametrize("way", ["mixed", "both"])
def test_a_run_that_is_gone_on_with_ends_with_the_same_weights(way, finished):
    arguments, output, metrics = finished(way)
    killed = output.with_name("killed")
    resumed = finetune(**arguments, output=killed)
    for name in ("kept", "dev", "scalar_mix"):
        assert resumed.get(name) == metrics.get(name)
    assert_same_weights(killed, output)


def test_is_the_same_as_training_with_the_encoder_held(config, tokenizer, given, tmp_path):
    """The head's own dropout is on in both; an encoder that is frozen has none to begin with."""
    still = dataclasses.replace(
        config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout=0.3
    )
    encoder = BertEncoder(still)
    encoder.new_pooler()
    save_folder(encoder, tokenizer, tmp_path / "model")
    given = {**given, "model": tmp_path / "model", "keep": "last", **WAYS["both"]}
    finetune(**given, output=tmp_path / "run")
    loaded = load_task(tmp_path / "run" / "model")

    keras.utils.set_random_seed(given["seed"])
    encoder, _ = load(tmp_path / "model")
    task = Classifier(
        encoder,
        tokenizer,
        labels=["bad", "good"],
        max_length=given["max_length"],
        layer_mix={"layer_norm_eps": config.layer_norm_eps, "l2": 0.01},
    )
    for layer in (encoder.embeddings, *encoder.blocks):
        layer.trainable = False
    sequences = task.features(list(task.read(given["train"])), labelled=True)
    plan = plan_epochs(
        2,
        examples=len(sequences),
        batch_size=given["batch_size"],
        checkpoint_every=given["checkpoint_every"],
    )
    an_epoch = plan.evaluate_every
    optimizer = make_optimizer(
        task, learning_rate=0.02, warmup=0.1, weight_decay=0.01, steps=2 * an_epoch
    )
    task.compile_defaults(optimizer, jit_compile=False)
    task.fit(
        sequences.training_batches(steps=an_epoch, seed=given["seed"], epochs=2),
        verbose=0,
        shuffle=False,
    )
    moved = [task.classifier, task.transform, task.reader.scalar_mix]
    ours = [loaded.classifier, loaded.transform, loaded.reader.scalar_mix]
    for layer, other in zip(moved, ours, strict=True):
        for one, two in zip(layer.weights, other.weights, strict=True):
            np.testing.assert_allclose(one, two, atol=1e-5, err_msg=one.path)
    assert not np.allclose(task.reader.scalar_mix.scores, 0, atol=1e-2)


def test_the_command_says_what_was_learned_and_its_settings_repeat_the_run(given, tmp_path, capsys):
    first, again = str(tmp_path / "first"), str(tmp_path / "again")
    files = [flag for name in ("train", "dev", "model") for flag in (f"--{name}", str(given[name]))]
    mix = ["--layers", "mix-all", "--scalar-mix-l2", "0.01", "--scalar-mix-layer-norm"]
    short = ["--epochs", "1", "--batch-size", "8", "--max-length", "16", "--deterministic"]
    assert main(["finetune", *files, "--freeze-encoder", *mix, *short, "--output", first]) == 0
    out, err = capsys.readouterr()
    assert "of them trainable)" in out
    assert re.search(r"layer weights, the lowest layer first: [\d.]+ %, [\d.]+ %, times \d", out)
    assert "computing features: 100%" in err and "136/136" in err
    assert main(["finetune", "--settings", f"{first}/run.json", "--output", again]) == 0
    assert_same_weights(tmp_path / "first", tmp_path / "again")
    settings = json.loads((tmp_path / "again" / "run.json").read_text())["settings"]
    assert settings["freeze_encoder"] and settings["scalar_mix_l2"] == 0.01
    assert main(["finetune", "--settings", f"{first}/run.json", "--output", first]) == 0
    assert "finished already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"layers": "mix-all", "scalar_mix_l2": -0.1}, "`scalar_mix_l2` ... Received: -0.1."),
        ({"scalar_mix_l2": 0.1}, "`scalar_mix_l2` needs `layers` mix-last-4 or mix-all"),
        ({"scalar_mix_layer_norm": True}, "`scalar_mix_layer_norm` needs `layers` mix-last-4"),
        ({"layers": "penultimate"}, "`layers` is 'penultimate'. It should be last, second-to-last"),
        ({"layers": "layer-0"}, "or layer-K with the number of a layer, from layer-1"),
        ({"layers": "sum-last-4"}, "needs a model of at least 4 layers. Received: a model with"),
        ({"freeze_encoder": True, "learning_rate": 0.0}, "`learning_rate` ... Received: 0.0."),
    ],
)
def test_bad_arguments(given, tmp_path, changes, message):
    with raises_input_error(message):
        finetune(**{**given, **changes}, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
