"""Students that learn the answers of a teacher: by the call and by the command."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, log_softmax, logit, softmax

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.exports.saved_model import export
from keras_bert.tasks import task_class
from keras_bert.tasks.distillation import (
    DECISIONS,
    LABELS,
    SCORES,
    VECTORS,
    TaughtLoss,
    taught_rows,
)
from keras_bert.training.distill import read_taught_data
from keras_bert.training.distillation_settings import distill_settings
from tests.checkpoints.conftest import shake
from tests.encoders.every_kind import HEADERS, LINES, request_of, write_examples
from tests.exports.answers import CHECKS
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

WORDS = [f"w{number}" for number in range(9)]
SIZES = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2}
SIZES["initializer_range"] = 0.5  # vectors that differ by the words
# Task type -> the arguments of a teacher with random weights, whose answers differ by the words.
TEACHERS = {
    "classifier": {"labels": ["a", "b"]},
    "pair-classifier": {"labels": ["a", "b"]},
    "regression": {},
    "tagger": {"labels": ["O", "B-X", "I-X"]},
    "text-embedding": {"normalize": True},
}


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(WORDS)


def texts(count, *, seed=0):
    rng = make_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(4, 8))) for _ in range(count)]


@pytest.fixture(scope="module")
def teachers(tokenizer, tmp_path_factory):
    folders = {}

    def teacher(task_type, **changes):
        key = task_type, str(changes)
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("teacher") / "model"
            arguments = {"max_length": 24, **TEACHERS[task_type], **changes}
            encoder = make_encoder(tokenizer, **SIZES)
            made = task_class(task_type)(encoder, tokenizer, **arguments)
            # Its numbers would be those of another embedder, too.
            (made if task_type == "text-embedding" else shake(made)).save(folders[key])
        return folders[key]

    return teacher


@pytest.fixture(scope="module")
def architecture(tmp_path_factory):
    path = tmp_path_factory.mktemp("architecture") / "config.json"
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = {"model_type": "bert", "vocab_size": 200, "intermediate_size": 16, **sizes}
    path.write_text(json.dumps({**config, "max_position_embeddings": 40}))
    return path


def labelled_file(folder, task_type, examples):
    ending = "tsv" if task_type in HEADERS else "conll" if task_type == "tagger" else "jsonl"
    return write_examples(folder / f"labelled.{ending}", task_type, examples)


def weights(run):
    return [np.asarray(weight) for weight in kb.load_task(run).weights]


def quick(*names):
    """The task types as parameters; those that are not named are slow."""
    return [pytest.param(t, marks=() if t in names else pytest.mark.slow) for t in TEACHERS]


@pytest.mark.parametrize("task_type", quick("classifier"))
def test_a_student_is_made_and_its_export_answers_as_predict(
    task_type, teachers, architecture, tmp_path
):
    data = labelled_file(tmp_path, task_type, texts(40))
    metrics = kb.distill(
        teacher=teachers(task_type),
        data=data,
        architecture=architecture,
        output=tmp_path / "run",
        epochs=1,
        batch_size=8,
    )
    assert metrics["task"] == task_type and metrics["distillation"]["answers"] > 30
    student = kb.load_task(tmp_path / "run")
    assert student.TASK_TYPE == task_type and student.config.hidden_size == 8
    assert student.settings.max_length == 24  # the teacher's
    if task_type == "text-embedding":
        assert student.settings.normalize and student.width == 16
    answers = list(kb.predict(model=tmp_path / "run", data=data))
    version = export(model=tmp_path / "run", output=tmp_path / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(**request_of(task_type, data, answers))
    for number, answer in enumerate(answers):
        outputs_of_one = {name: column[number].numpy() for name, column in outputs.items()}
        CHECKS[task_type](outputs_of_one, answer)


def test_losses_are_those_of_the_formulas():
    """In float64; 0 without labels if the student answers as its teacher."""
    rng, temperature, weight = make_rng(3), 3.0, 0.25
    answers, predictions = rng.normal(size=(2, 5, 3)) * 2
    known = np.array([1, 0, 1, 1, 0], bool)
    options = {"size": 3, "temperature": temperature, "label_weight": weight, "reduction": "none"}

    def loss(kind, labels, predictions, answers=answers, **changes):
        rows = taught_rows(kind, labels, known, answers)
        return np.asarray(TaughtLoss(kind, **{**options, **changes})(rows, predictions))

    numbers = rng.integers(3, size=5)
    t, s = answers / temperature, predictions / temperature
    kl = (softmax(t, axis=1) * (log_softmax(t, axis=1) - log_softmax(s, axis=1))).sum(axis=1)
    own = -log_softmax(predictions, axis=1)[np.arange(5), numbers]
    mixed = np.where(known, (1 - weight) * temperature**2 * kl + weight * own, temperature**2 * kl)
    np.testing.assert_allclose(loss(LABELS, numbers, predictions), mixed, rtol=1e-5)
    alone = np.asarray(TaughtLoss(LABELS, **options)(numbers, predictions.astype("float32")))
    np.testing.assert_allclose(alone, own, rtol=1e-5)

    tags, token_predictions = (
        rng.integers(3, size=(2, 4)),
        rng.normal(size=(2, 4, 3)).astype("float32"),
    )
    own_of_tokens = -np.take_along_axis(
        log_softmax(token_predictions, axis=-1), tags[..., None], axis=-1
    )[..., 0]
    actual = np.asarray(TaughtLoss(LABELS, **options)(tags, token_predictions))
    np.testing.assert_allclose(actual, own_of_tokens, rtol=1e-5)

    bits = rng.integers(2, size=(5, 3))
    p, q = expit(t), expit(s)
    kl = (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean(axis=1)
    own = -(bits * np.log(expit(predictions)) + (1 - bits) * np.log(expit(-predictions)))
    own = own.mean(axis=1)
    mixed = np.where(known, (1 - weight) * temperature**2 * kl + weight * own, temperature**2 * kl)
    np.testing.assert_allclose(loss(DECISIONS, bits, predictions), mixed, rtol=1e-4, atol=1e-6)

    scores, teacher_scores = rng.normal(size=(2, 5, 1))
    distance, own = (predictions[:, :1] - teacher_scores) ** 2, (predictions[:, :1] - scores) ** 2
    mixed = np.where(known, (1 - weight) * distance[:, 0] + weight * own[:, 0], distance[:, 0])
    actual = loss(SCORES, scores, predictions[:, :1], teacher_scores, size=1)
    np.testing.assert_allclose(actual, mixed, rtol=1e-5)

    actual = loss(VECTORS, None, predictions[:, None])
    np.testing.assert_allclose(actual, ((predictions - answers) ** 2).sum(axis=1), rtol=1e-5)
    for kind, labels in ((LABELS, numbers), (DECISIONS, bits)):
        same = loss(kind, labels, answers.astype("float32"), label_weight=0.0)
        np.testing.assert_allclose(same, 0, atol=1e-5)
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(TaughtLoss(LABELS, **options))
    )
    np.testing.assert_allclose(
        np.asarray(copy(taught_rows(LABELS, numbers, known, answers), predictions)),
        loss(LABELS, numbers, predictions),
    )
    assert logit(0.5) == 0


def data_of(task_type, given, **changes):
    settings = {"task": task_type, **given, **changes}
    return read_taught_data(distill_settings(task_type).of(settings), settings, lambda line: None)


@pytest.mark.parametrize("task_type", quick("tagger", "text-embedding"))
def test_each_row_of_a_batch_has_the_teachers_answer_for_it(
    task_type, teachers, architecture, tmp_path
):
    """In the vocabulary of the student, which has other tokens for the words."""
    other = make_tokenizer(["w1", "w22"])
    other.save(tmp_path / "vocab")
    data = labelled_file(tmp_path, task_type, texts(30, seed=1))
    given = {"teacher": teachers(task_type), "data": data, "architecture": architecture}
    given |= {"vocab": tmp_path / "vocab", "output": tmp_path / "run"}
    data, settings = data_of(task_type, given)
    settings = data.recipe.resolved(settings)
    student = data.recipe.build(settings, print)
    other_student = data.recipe.build(dataclasses.replace(settings, seed=3), print)
    assert other_student.settings == student.settings and student.settings.max_length == 24
    teaching = data.teaching
    taught = teaching.examples(student, data.train)
    rows = taught.batch(tf.range(len(taught)))[1][teaching.output].numpy()
    teacher = kb.load_task(teachers(task_type))
    assert teaching.known.all() == (task_type != "text-embedding")
    for number, example in enumerate(taught.examples):
        [expected] = kb.predict(model=teacher, data=[_unlabelled(example)])
        row = rows[number]
        if task_type in ("classifier", "pair-classifier"):
            probabilities = softmax(row[2:].astype(np.float64))
            np.testing.assert_allclose(
                probabilities, [*expected["probabilities"].values()], atol=1e-4
            )
            assert row[0] == 1 and teacher.labels[int(row[1])] == example.label
        elif task_type == "regression":
            np.testing.assert_allclose(row[2], expected["score"], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(row[1], example.label)
        elif task_type == "text-embedding":
            np.testing.assert_allclose(row[1:], expected["embedding"], atol=1e-5)
        else:
            weights = taught.batch(tf.constant([number]))[2]["logits"].numpy()[0]
            tagged_words_prediction = rows[number][: len(weights)][weights > 0]
            assert len(tagged_words_prediction) == len(example.words)
            scores = softmax(tagged_words_prediction[:, 2:].astype(np.float64), axis=1)
            best = [teacher.labels[n] for n in scores.argmax(axis=1)]
            assert best == expected["tags"]
            np.testing.assert_allclose(scores.max(axis=1), expected["scores"], atol=1e-4)


def _unlabelled(example):
    if hasattr(example, "tags"):
        return list(example.words)
    texts = example.texts
    return texts[0] if len(texts) == 1 else tuple(texts)


def test_texts_without_labels_have_the_teachers(teachers, architecture, tmp_path):
    """A teacher with all its layers kept is its own student, and agrees with itself."""
    given_texts, said = texts(60, seed=2), []
    rows = [
        {"text": text, "label": "a" if n % 3 == 0 else None} for n, text in enumerate(given_texts)
    ]
    arguments = {"teacher": teachers("classifier"), "epochs": 1, "learning_rate": 1e-30}
    arguments["keep_layers"] = [0, 1, 2, 3]
    metrics = kb.distill(data=rows, output=tmp_path / "run", **arguments, report=said.append)
    known = metrics["distillation"]
    assert 0 < known["labelled"] < known["answers"] < 60
    assert any("have no label of their own" in line for line in said)
    for one, other in zip(weights(teachers("classifier")), weights(tmp_path / "run"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    rows = [{"text": row["text"]} for row in rows]
    metrics = kb.distill(data=rows, output=tmp_path / "again", **arguments)
    assert metrics["dev"]["accuracy"] == 1.0 and metrics["distillation"]["labelled"] == 0


def test_kept_layers_are_the_teachers(teachers, tmp_path):
    metrics = kb.distill(
        teacher=teachers("tagger"),
        data=labelled_file(tmp_path, "tagger", texts(30)),
        keep_layers=[1, 3],
        output=tmp_path / "run",
        epochs=1,
        learning_rate=1e-30,
    )
    student, teacher = kb.load_task(tmp_path / "run"), kb.load_task(teachers("tagger"))
    assert student.config.num_hidden_layers == 2
    assert metrics["parameters"] == student.count_params() < teacher.count_params()
    for student_layer, teacher_layer in ((0, 1), (1, 3)):
        one, other = (
            np.concatenate([np.ravel(w) for w in task.encoder.blocks[n].weights])
            for task, n in ((student, student_layer), (teacher, teacher_layer))
        )
        np.testing.assert_allclose(one, other, rtol=1e-6)
    np.testing.assert_allclose(student.classifier.kernel, teacher.classifier.kernel, rtol=1e-6)


@pytest.mark.slow
def test_a_student_learns_of_texts_without_labels(teachers, tokenizer, tmp_path):
    """Another start than the teacher comes nearer to it; the metric is of its similarities."""
    kb.TextEmbedder(make_encoder(tokenizer, **SIZES, seed=7), tokenizer).save(tmp_path / "student")
    teacher = teachers("text-embedding")
    given = texts(120, seed=3)
    metrics = kb.distill(
        teacher=teacher,
        data=given,
        student=tmp_path / "student",
        output=tmp_path / "run",
        epochs=6,
        learning_rate=3e-3,
    )
    losses = [record["train"]["loss"] for record in metrics["history"]]
    assert losses[-1] < losses[0]
    held_out = texts(40, seed=4)
    vectors = {
        name: kb.load_task(folder).encode(held_out)
        for name, folder in (("teacher", teacher), ("run", tmp_path / "run"))
    }
    before = kb.load_task(tmp_path / "student")
    before = before.encode(held_out)
    before /= np.linalg.norm(before, axis=1, keepdims=True)
    cosines = [
        (vectors["teacher"] * other).sum(axis=1).mean() for other in (before, vectors["run"])
    ]
    assert cosines[1] > cosines[0]
    assert metrics["best_metric"] == "spearman"


@pytest.mark.slow
def test_a_run_that_is_interrupted_ends_bit_for_bit_like_another(teachers, architecture, tmp_path):
    data = [*texts(40, seed=5)]
    given = {
        **{"teacher": teachers("classifier"), "data": data, "architecture": architecture},
        **{"epochs": 3, "batch_size": 8, "checkpoint_every": 2, "deterministic": True},
    }
    whole = kb.distill(**given, output=tmp_path / "whole")

    class Interrupt(keras.callbacks.Callback):
        batches = 0

        def on_train_batch_end(self, batch, logs=None):
            Interrupt.batches += 1
            if Interrupt.batches in (3, 8):
                raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt, match="Run the same command again to resume"):
            kb.distill(**given, output=tmp_path / "run", callbacks=[Interrupt()])
    said = []
    again = kb.distill(
        **given, output=tmp_path / "run", callbacks=[Interrupt()], report=said.append
    )
    assert any("Resumed at step" in line for line in said)
    assert again["dev"] == whole["dev"]
    for one, other in zip(weights(tmp_path / "whole"), weights(tmp_path / "run"), strict=True):
        np.testing.assert_array_equal(one, other)
    told = []
    kb.distill(**given, output=tmp_path / "whole", report=told.append)
    assert any("is finished already" in line for line in told)
    with raises_input_error("contains a run with different settings: label_weight 0.5, now 0.1"):
        kb.distill(**given, output=tmp_path / "whole", label_weight=0.1)


@pytest.mark.slow
def test_several_seeds_and_the_command(teachers, architecture, tmp_path, capsys):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts(30)) + "\n")
    command = ["distill", "--teacher", str(teachers("classifier")), "--data", str(path)]
    command += ["--architecture", str(architecture), "--epochs", "1", "--num-seeds", "2"]
    assert main([*command, "--output", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert "over 2 seeds" in said.out and "Next: keras-bert predict" in said.out
    assert "have no label of their own" in said.err
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["command"] == "distill" and run["settings"]["task"] == "classifier"
    assert (tmp_path / "run" / "model" / "README.md").exists()
    once = ["distill", "--settings", str(tmp_path / "run" / "run.json"), "--num-seeds", "1"]
    assert main([*once, "--output", str(tmp_path / "once")]) == 0
    assert main(["evaluate", "--model", str(tmp_path / "once"), "--data", str(path)]) == 2


BAD = {
    "no start": ({"architecture": None}, "starts from one of...Received: none."),
    "two starts": ({"keep_layers": [0]}, "Received: architecture, keep_layers."),
    "another task": ({"task": "tagger"}, "is of the task classifier. Leave `task` tagger out."),
    "other labels": (
        {"data": [("w1", "a"), ("w2", "z"), ("w3", "a")]},
        'has the labels "z", which the teacher does not have ("a", "b").',
    ),
    "one text": ({"data": ["w1 w2"]}, "has a single text"),
    "no layer": ({"architecture": None, "keep_layers": [0, 9]}, "has the layer 9"),
    "no static student": ({"sif": 1e-3}, "`sif` is for `static`"),
    "empty texts": ({"data": ["", " "]}, "no texts"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, teachers, architecture, tmp_path):
    changes, message = BAD[case]
    given = {"data": texts(20), "architecture": architecture, **changes}
    with raises_input_error(message):
        kb.distill(teacher=teachers("classifier"), output=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_bad_teachers_and_students(teachers, architecture, tokenizer, tmp_path):
    wide = json.loads(architecture.read_text()) | {"hidden_size": 64}
    (tmp_path / "config.json").write_text(json.dumps(wide))
    given = {"data": texts(20), "output": tmp_path / "run"}
    with raises_input_error("hidden size 64, and its teacher 16. A student may not be wider"):
        kb.distill(teacher=teachers("classifier"), architecture=tmp_path / "config.json", **given)
    choice = kb.MultipleChoice(make_encoder(tokenizer), tokenizer)
    choice.save(tmp_path / "choice")
    given["architecture"] = architecture
    with raises_input_error("is of the task multiple-choice, whose answers cannot be learned"):
        kb.distill(teacher=tmp_path / "choice", **given)
    with_crf = kb.Tagger(make_encoder(tokenizer), tokenizer, labels=["O", "B-X"], crf=True)
    with_crf.save(tmp_path / "crf")
    with raises_input_error("The teacher has a CRF"):
        kb.distill(teacher=tmp_path / "crf", **given)
    for name, value, message in (
        ("distillation_temperature", 4.0, "is for probabilities"),
        ("label_weight", 0.1, "is for labels"),
    ):
        with raises_input_error(f"`{name}` {message}"):
            kb.distill(teacher=teachers("text-embedding"), **given, **{name: value})
    with raises_input_error("makes a student of a text embedder...the task classifier"):
        kb.distill(teacher=teachers("classifier"), static=True, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert LINES.keys() >= TEACHERS.keys() and dataclasses.is_dataclass(distill_settings("tagger"))
