"""Rates and first steps by layer: what moves, when, how far, and the same after a stop."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.inference.evaluate import evaluate
from keras_bert.optimizers.optimizer import depths, layers_to_train, train_last_layers
from keras_bert.optimizers.update_rules import AdamW, LayerwiseAdamW
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.training import run_folder
from keras_bert.training.checkpoint import Checkpoint, latest_checkpoint
from keras_bert.training.finetune import finetune
from keras_bert.training.finetuning_settings import finetune_settings
from keras_bert.training.parts.early_stopping import EarlyStopping
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

ADAM = {"weight_decay": 0.3, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6}


def adamw(rate=0.1, **changes):
    settings = {"fractions": [1.0, 0.5, 0.25], "first_steps": [0, 2, 4], **ADAM, **changes}
    return LayerwiseAdamW(rate, **settings)


def draw(steps, seed=0):
    """Three variables of shape (3,), and for each step their gradients."""
    arrays = make_rng(seed).normal(size=(steps + 1, 3, 3)).astype("float32")
    return [keras.Variable(value) for value in arrays[0]], arrays[1:]


def apply(optimizer, gradients, variables):
    optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients], variables)


def test_each_variable_moves_as_in_an_adamw_of_its_own_from_its_first_step_on():
    (variables, gradients), (alone, _) = draw(8), draw(8)
    layerwise = adamw()
    singles = [keras.optimizers.AdamW(0.1 * fraction, **ADAM) for fraction in layerwise.fractions]
    for step in range(8):
        before = [np.array(variable) for variable in variables]
        apply(layerwise, gradients[step], variables)
        for i, first in enumerate(layerwise.first_steps):
            if step >= first:
                apply(singles[i], [gradients[step][i]], [alone[i]])
            else:  # not moved by decay either, and its moments are what they were
                np.testing.assert_array_equal(variables[i], before[i])
                assert not np.any(layerwise._momentums[i]) and not np.any(layerwise._velocities[i])
            np.testing.assert_allclose(variables[i], alone[i], rtol=1e-4, atol=1e-6)


def test_the_clipping_norm_is_of_what_is_trained():
    (variables, gradients), (alone, _) = draw(1), draw(1)
    apply(adamw(global_clipnorm=0.1), gradients[0], variables)
    apply(AdamW(0.1, global_clipnorm=0.1, **ADAM), gradients[0][:1], alone[:1])
    np.testing.assert_allclose(variables[0], alone[0], rtol=1e-6)


def test_an_embedding_s_gradient_of_rows_waits_and_moves_as_a_dense_one_does():
    rows, dense = (keras.Variable(np.ones((4, 2), "float32")) for _ in range(2))
    gradient = np.array([[1.0, 2.0]], "float32")
    whole = np.zeros((4, 2), "float32")
    whole[1] = gradient
    one, other = (adamw(fractions=[0.5], first_steps=[1]) for _ in range(2))
    for step in range(3):
        one.apply([tf.IndexedSlices(gradient, [1], dense_shape=[4, 2])], [rows])
        apply(other, [whole], [dense])
        np.testing.assert_allclose(rows, dense, rtol=1e-6)
        assert np.array_equal(rows, np.ones((4, 2))) == (step == 0)


def test_the_optimizer_survives_serialisation_and_wants_a_fraction_for_each_variable():
    config = keras.saving.serialize_keras_object(adamw())
    assert keras.saving.deserialize_keras_object(config).get_config() == adamw().get_config()
    with pytest.raises(ValueError, match="3 fractions, 3 first steps, 1 variables"):
        adamw().build([keras.Variable(np.ones(2))])


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer(["good", "bad"])
    return Classifier(make_encoder(tokenizer, num_hidden_layers=3), tokenizer, labels=["a", "b"])


def test_depth_counts_from_the_head_down(task):
    trained = task.trainable_variables
    depth_of_path = dict(zip([v.path for v in trained], depths(task, trained), strict=True))
    for part, depth in {
        "classifier/": 0,
        "pooler/": 0,
        "block_2/": 1,
        "block_1/": 2,
        "block_0/": 3,
        "embeddings/": 4,
    }.items():
        part_depths = {depth for path, depth in depth_of_path.items() if path.startswith(part)}
        assert part_depths == {depth}, part
        depth_of_path = {
            path: depth for path, depth in depth_of_path.items() if not path.startswith(part)
        }
    assert not depth_of_path


def test_how_many_layers_are_trained(task):
    assert layers_to_train(task.read_groups) == 4
    assert layers_to_train(task.read_groups, last=3) == 3
    assert layers_to_train(task.read_groups, epochs=3) == 2
    assert layers_to_train(task.read_groups, last=1, epochs=3) == 1
    assert layers_to_train(task.read_groups, epochs=9) == 4
    with raises_input_error("`train_layers` is 4, but the head reads 3 layers. Leave"):
        layers_to_train(task.read_groups, last=4)
    train_last_layers(task, 2)
    assert max(depths(task, task.trainable_variables)) == 2


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"freeze_encoder": True, "train_layers": 1},
            "`train_layers` trains ... and `freeze_encoder` none",
        ),
        ({"freeze_encoder": True, "layer_decay": 0.9}, "`layer_decay` trains layers"),
        ({"freeze_encoder": True, "gradual_unfreezing": True}, "unfreezing` trains layers"),
        ({"gradual_unfreezing": True, "epochs": 1}, "needs `epochs` of 2 or more"),
        ({"layer_decay": 1.1}, "`layer_decay` must be at most 1. Received: 1.1"),
        ({"train_layers": 0}, "`train_layers` must be at least 1. Received: 0."),
        ({"schedule": "square"}, "`schedule` is 'square'. It should be linear, slanted"),
        ({"patience": -1}, "`patience` must be at least 0. Received: -1."),
    ],
)
def test_settings_that_do_not_go_together(settings, message):
    with raises_input_error(message):
        finetune_settings("classifier").of({"train": "a", "dev": "b", "output": "o", **settings})


# Whole runs.


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A model of two blocks, and reviews of a few words."""
    folder = tmp_path_factory.mktemp("layerwise")
    tokenizer = make_tokenizer(["good", "bad", "film", "plot"])
    encoder = make_encoder(tokenizer, num_hidden_layers=2, hidden_dropout_prob=0.1)
    save_folder(encoder, tokenizer, folder / "model")
    for name, count in (("train", 22), ("dev", 7)):
        lines = [
            f"{'film plot ' * (i % 3)}{w}\t{w}\n" for i in range(count) for w in ("good", "bad")
        ]
        (folder / f"{name}.tsv").write_text("".join(["text\tlabel\n", *lines]))
    return {
        "model": folder / "model",
        "train": folder / "train.tsv",
        "dev": folder / "dev.tsv",
        "batch_size": 16,
        "epochs": 3,
        "learning_rate": 0.01,
        "checkpoint_every": 1,
        "deterministic": True,
        "keep": "last",
    }


def by_depth(task):
    """Depth -> the weights there in one vector; the pooler is at 0."""
    vectors = {}
    weights = [*task.encoder.weights, *task.transform.weights]
    weights = [weight for weight in weights if "seed_generator" not in weight.path]
    for depth, variable in zip(depths(task, weights), weights, strict=True):
        vectors.setdefault(depth, []).append(np.ravel(variable))
    return {depth: np.concatenate(parts) for depth, parts in vectors.items()}


def test_gradual_unfreezing_moves_what_it_says_and_ends_the_same_after_a_stop(
    given, tmp_path, monkeypatch
):
    given = {**given, "gradual_unfreezing": True, "layer_decay": 0.8}
    given["schedule"] = "slanted-triangular"
    at, optimizers, told = (
        {0: by_depth(Classifier(load(given["model"])[0], labels=["bad", "good"]))},
        [],
        [],
    )
    save = Checkpoint.save

    def look_and_save(self, step, state):
        at[step] = by_depth(self.model)
        optimizers.append(self.model.optimizer)
        save(self, step, state)

    whole, part = tmp_path / "whole", tmp_path / "part"
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", look_and_save)
        with copied(whole, part, after_step=4):
            metrics = finetune(**given, output=whole, report=told.append)
    assert "Training the head and the last 2 of 2 layers." in told
    assert sorted(at) == list(range(10))  # 3 steps an epoch
    for step in range(9):
        moved = [d for d in range(4) if not np.array_equal(at[step][d], at[step + 1][d])]
        assert moved == [0, 1, 2][: 1 + step // 3], step
    assert set(optimizers[0].fractions) == {0.8**depth for depth in (0, 1, 2)}
    again = finetune(**given, output=part)
    assert again["dev"] == metrics["dev"]
    assert_same_weights(whole, part)


def without_dropout(given, folder):
    """The settings with a model that drops nothing, which is written into `folder`."""
    _, tokenizer = load(given["model"])
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    save_folder(
        make_encoder(tokenizer, num_hidden_layers=2, **dropout), tokenizer, folder / "model"
    )
    return {**given, "model": folder / "model"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_the_last_block_alone_in_mixed_precision(given, dtype, tmp_path):
    """All examples are one batch, nothing is dropped, and the rate is low: the loss falls."""
    given = {**without_dropout(given, tmp_path), "batch_size": 64, "learning_rate": 1e-3}
    given |= {"dtype": dtype, "train_layers": 1, "schedule": "cosine"}
    told = []
    metrics = finetune(**given, output=tmp_path / "run", report=told.append)
    assert "Training the head and the last 1 of 2 layers." in told
    losses = [record["train"]["loss"] for record in metrics["history"]]
    assert losses[-1] < losses[0]
    before = by_depth(Classifier(load(given["model"])[0], labels=["bad", "good"]))
    after = by_depth(load_task(tmp_path / "run" / "model"))
    assert [np.array_equal(before[d], after[d]) for d in range(4)] == [False, False, True, True]
    assert {array.dtype for array in after.values()} == {np.dtype("float32")}
    measures = evaluate(model=tmp_path / "run", data=given["dev"])  # in float32
    assert measures["cross_entropy"] == pytest.approx(metrics["dev"]["cross_entropy"], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("freeze_encoder", [False, True])
def test_float16_has_the_losses_of_float32_and_a_scaled_loss(
    given, freeze_encoder, tmp_path, monkeypatch
):
    given = {**without_dropout(given, tmp_path), "learning_rate": 1e-3, "epochs": 1}
    is_scaled, fit = [], keras.Model.fit

    def noted(self, *arguments, **options):
        is_scaled.append(isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer))
        return fit(self, *arguments, **options)

    monkeypatch.setattr(keras.Model, "fit", noted)
    losses = []
    for dtype in ("float32", "mixed_float16"):
        options = {"dtype": dtype, "freeze_encoder": freeze_encoder, "output": tmp_path / dtype}
        metrics = finetune(**given, **options)
        losses.append([record["train"]["loss"] for record in metrics["history"]])
    np.testing.assert_allclose(*losses, atol=2e-3)
    assert is_scaled == [False, True]


@pytest.fixture(scope="module")
def patient(given, tmp_path_factory):
    """A head whose rate is too low to change any answer: the first epoch is the best.

    It predicts both labels: a run goes on while it predicts one for everything.
    """
    output = tmp_path_factory.mktemp("patient") / "run"
    task = Classifier(*load(given["model"]), labels=["bad", "good"])
    texts = [f"{'film plot ' * i}{word}" for i in range(3) for word in ("good", "bad")]
    bad, good = task.predict(texts, verbose=0)["logits"].T
    task.classifier.bias.assign([np.median(good - bad), 0.0])
    task.save(output.with_name("start"))
    given = {**given, "freeze_encoder": True, "epochs": 5, "patience": 2, "keep": "best"}
    given["model"] = output.with_name("start")
    given |= {"learning_rate": 1e-9, "checkpoint_every": 500}
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_folder, "delete", lambda path: None)  # for the last of the tests
        with copied(output, output.with_name("second"), after_step=6):
            return given, output, finetune(**given, output=output, report=told.append), told


def test_a_run_ends_when_its_patience_does(patient):
    _, output, metrics, told = patient
    assert metrics["steps"] == metrics["history"][-1]["step"] == 9
    assert metrics["kept"] == {"which": "best", "epoch": 1, "step": 3}
    assert EarlyStopping("accuracy", patience=2).line() in told
    assert latest_checkpoint(output / "checkpoints").name == "step-000000009.safetensors"


def test_patience_counts_on_after_a_stop(patient):
    given, output, metrics, _ = patient
    second = output.with_name("second")
    assert finetune(**given, output=second)["steps"] == 9
    assert_same_weights(second, output)
    # Killed between the last checkpoint and the results: nothing is trained any more.
    (output / "metrics.json").unlink()
    assert finetune(**given, output=output) == metrics
