"""Few labels: the loss on pairs, even batches, the regression, and whole runs."""

import keras
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.inference.evaluate import evaluate
from keras_bert.tasks.outputs import Outputs
from keras_bert.tasks.text_embedding.text_embedder import TextEmbedder
from keras_bert.training.contrastive import (
    LabelCosines,
    even_batch,
    members_of_labels,
    regression,
    vector_model,
)
from keras_bert.training.finetune import finetune
from keras_bert.training.finetuning_settings import finetune_settings
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

WORDS_OF_LABELS = {"good": ("fun", "great"), "bad": ("dull", "awful"), "mixed": ("fine", "so")}
WORDS = [
    *WORDS_OF_LABELS,
    *(word for words in WORDS_OF_LABELS.values() for word in words),
    "film",
    "plot",
]


@pytest.mark.parametrize("several", [False, True])
def test_the_loss_is_that_of_all_pairs(several):
    rng = make_rng(1)
    vectors = rng.normal(size=(7, 5))
    labels = rng.integers(2, size=(7, 3)) if several else np.array([0, 1, 1, 2, 0, 1, 3])
    expected = []
    for i in range(7):
        errors = {True: [0.0], False: [0.0]}
        for j in set(range(7)) - {i}:
            one, other = labels[i], labels[j]
            cosine = vectors[i] @ vectors[j] / np.prod(np.linalg.norm(vectors[[i, j]], axis=1))
            target = float(np.all(one == other))
            if several and (one | other).any():
                target = (one & other).sum() / (one | other).sum()
            errors[target > 0].append((cosine - target) ** 2)
        expected.append(sum(sum(part) / max(1, len(part) - 1) for part in errors.values()))
    loss = LabelCosines()(labels.astype("float32"), vectors.astype("float32"))
    np.testing.assert_allclose(float(loss), np.mean(expected), rtol=1e-5)


def test_a_batch_has_as_many_of_each_label_as_there_are():
    labels, rng = np.repeat([0, 1, 2, 3], [1, 3, 20, 30]), make_rng(2)
    for size in (4, 12, 17, 54):
        batch = even_batch(labels, size=size, rng=rng)
        counts = np.bincount(labels[batch], minlength=4)
        assert len(batch) == len({*batch}) == size
        most = counts.max()
        for count, there in zip(counts, [1, 3, 20, 30], strict=True):
            assert count >= min(most - 2, there)
    several = np.array([[1, 1, 0]] * 5 + [[0, 0, 1]] * 2 + [[0, 0, 0]] * 3)
    assert [len(members) for members in members_of_labels(several)] == [5, 5, 2, 3]
    batch = even_batch(several, size=10, rng=rng)
    assert sorted(batch) == [*range(10)]


@pytest.mark.parametrize("classes", [2, 4])
def test_the_regression_is_that_of_scikit_learn(classes):
    rng = make_rng(3)
    vectors, labels = rng.normal(size=(60, 6)), rng.integers(classes, size=60)
    kernel, bias = regression(vectors, labels, classes + 1)
    logits = vectors @ kernel + bias
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    their_probabilities = (
        LogisticRegression(max_iter=1000).fit(vectors, labels).predict_proba(vectors)
    )
    np.testing.assert_allclose(probabilities[:, :classes], their_probabilities, atol=1e-6)
    assert probabilities[:, classes].max() < 1e-6  # which no example has


def test_with_several_labels_it_is_one_for_each():
    rng = make_rng(4)
    vectors, labels = rng.normal(size=(40, 3)), rng.integers(2, size=(40, 4))
    labels[:, 2], labels[:, 3] = 0, 1
    kernel, bias = regression(vectors, labels, 4)
    found = 1 / (1 + np.exp(-(vectors @ kernel + bias)))
    for column in (0, 1):
        their_model = LogisticRegression(max_iter=1000).fit(vectors, labels[:, column])
        np.testing.assert_allclose(
            found[:, column], their_model.predict_proba(vectors)[:, 1], atol=1e-6
        )
    assert found[:, 2].max() < 1e-6 and found[:, 3].min() > 1 - 1e-6


def sentences(count, rng):
    rows = []
    for number in range(count):
        label = [*WORDS_OF_LABELS][number % 3]
        rest = rng.choice(["film", "plot"], size=rng.integers(1, 4)).tolist()
        rows.append({"text": " ".join([rng.choice(WORDS_OF_LABELS[label]), *rest]), "label": label})
    return rows


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder, tokenizer, rng = (
        tmp_path_factory.mktemp("contrastive"),
        make_tokenizer(WORDS),
        make_rng(5),
    )
    encoder = make_encoder(tokenizer, num_hidden_layers=2, hidden_dropout_prob=0.1)
    save_folder(encoder, tokenizer, folder / "model")
    return {
        "model": folder / "model",
        "train": sentences(24, rng),
        "dev": sentences(15, rng),
        "contrastive": True,
        "batch_size": 12,
        "epochs": 60,
        "learning_rate": 3e-3,
    }


def test_a_run_is_a_classifier_whose_head_is_the_regression_and_ends_the_same_after_a_stop(
    given, tmp_path
):
    whole, part, lines = tmp_path / "whole", tmp_path / "part", []
    options = {"deterministic": True, "checkpoint_every": 7}
    with copied(whole, part, after_step=60):
        metrics = finetune(**given, **options, output=whole, report=lines.append)
    losses = [record["train"]["loss"] for record in metrics["history"]]
    assert losses[-1] < losses[0]  # the mean of all later steps
    assert metrics["kept"] == {"which": "last", "epoch": 60, "step": 120}
    assert metrics["dev"]["accuracy"] == metrics["history"][-1]["eval"]["accuracy"] > 0.9
    again = finetune(**given, **options, output=part)
    assert_same_weights(whole, part)
    assert again["dev"] == metrics["dev"]
    task = load_task(whole / "model")
    assert task.settings.pooling == "mean"
    assert evaluate(model=whole, data=given["dev"])["cross_entropy"] == pytest.approx(
        metrics["dev"]["cross_entropy"], rel=1e-5
    )
    examples = task.features([*task.read(given["train"])], labelled=True)
    vectors = Outputs(vector_model(task), batch_size=8)(examples)["vector"]
    scale = 1 / np.linalg.norm(vectors, axis=1).mean()
    labels = examples.labels["logits"]
    their_model = LogisticRegression(max_iter=1000).fit(scale * vectors.astype(float), labels)
    logits = Outputs(task, batch_size=8)(examples)["logits"]
    ours = np.array(keras.ops.softmax(logits))
    np.testing.assert_allclose(ours, their_model.predict_proba(scale * vectors), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "mixed_bfloat16"},
        {"lora_rank": 2},
        {"train_layers": 1, "layer_decay": 0.9},
        {"layers": "mix-all"},
        {"pooling": "cls"},
        {"calibrate": True, "num_seeds": 2},
        {"dev": None, "folds": 3},
        {"train_fraction": [0.5, 1.0]},
    ],
)
def test_other_settings_beside_it(options, given, tmp_path):
    metrics = finetune(**{**given, **options}, output=tmp_path)
    measured = evaluate(model=tmp_path, data=given["dev"])
    if "folds" not in options:
        assert measured["accuracy"] == pytest.approx(metrics["dev"]["accuracy"])
    assert measured["accuracy"] > 1 / 3  # of three labels, as often as the others


def test_several_labels_per_text(given, tmp_path):
    rng, several = make_rng(6), []
    for number in range(32):
        labels = [label for place, label in enumerate(WORDS_OF_LABELS) if number >> place & 1]
        words = ["film", *(rng.choice(WORDS_OF_LABELS[label]) for label in labels)]
        several.append({"text": " ".join(words), "label": labels})
    run = {**given, "train": several, "dev": several, "multi_label": True}
    metrics = finetune(**run, output=tmp_path)
    assert metrics["dev"]["micro_f1"] > 0.8
    measured = evaluate(model=tmp_path, data=several)
    assert measured["micro_f1"] == pytest.approx(metrics["dev"]["micro_f1"])


def test_few_labels_are_told_of_it_with_a_model_of_text_vectors(given, tmp_path):
    encoder, tokenizer = load(given["model"])
    TextEmbedder(encoder, tokenizer, pooling="mean").save(tmp_path / "vectors")
    told = []
    runs = (("vectors", 2, False), ("vectors", 2, True), ("vectors", 3, False), ("plain", 2, False))
    for number, (name, labels, contrastive) in enumerate(runs):
        model = tmp_path / name if name == "vectors" else given["model"]
        known = [*WORDS_OF_LABELS][:labels]
        train, dev = (
            [row for row in given[part] if row["label"] in known] for part in ("train", "dev")
        )
        options = {"contrastive": contrastive, "epochs": 1, "output": tmp_path / str(number)}
        given_data = {"model": model, "train": train, "dev": dev}
        lines = []
        finetune(**{**given, **options, **given_data}, report=lines.append)
        told.append(any("--contrastive" in line for line in lines))
    assert told == [True, False, False, False]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"freeze_encoder": True}, "`contrastive` has no use for `freeze_encoder`"),
        ({"patience": 2}, "`contrastive` has no use for `patience`"),
        ({"class_weights": "balanced"}, "`contrastive` has no use for `class_weights`"),
        ({"hidden_layers": 1}, "`contrastive` has no use for `hidden_layers`"),
        ({"dropout": 0.2}, "`contrastive` has no use for `dropout`"),
        ({"long_texts": "windows"}, "reads one vector of a text, and `long_texts` windows several"),
        ({"task": "tagger"}, "`contrastive` is for `task` classifier, not tagger"),
    ],
)
def test_settings_that_do_not_go_together(settings, message):
    run_arguments = {"model": "m", "train": "a", "dev": "b", "output": "o", "contrastive": True}
    with raises_input_error(message):
        finetune_settings(settings.get("task", "classifier")).of({**run_arguments, **settings})


def test_texts_that_all_have_the_same_labels_are_an_error(given, tmp_path):
    rows = [{"text": f"film {n}", "label": ["good", "bad"]} for n in range(8)]
    run = {**given, "train": rows[:6], "dev": rows[6:], "multi_label": True}
    with raises_input_error("All 6 training examples have the same"):
        finetune(**run, output=tmp_path)
