"""`fit`, `evaluate` and `predict` of Keras on a file, for every task that reads files."""

import json

import keras
import numpy as np
import pytest

import keras_bert as kb
from keras_bert.tasks import finetuned_task_types, task_class
from tests.small_model import make_encoder, make_tokenizer

pytestmark = pytest.mark.usefixtures("eager")

LENGTHS = (20, 1, 3, 9)  # words: batches of one example have different shapes
WORDS = [["a"] * (length - 1) + ["b"] for length in LENGTHS]
LABELS = ("x", "y", "x", "y")


def lines(*names, columns):
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def question(words):
    answer = {"text": "b", "answer_start": len(" ".join(words)) - 1}
    question_prediction = {"id": str(len(words)), "question": "who", "answers": [answer]}
    return {"paragraphs": [{"context": " ".join(words), "qas": [question_prediction]}]}


TEXTS = [" ".join(words) for words in WORDS]
# {task type: (arguments of the task, the contents of a file, official metrics)}
TASKS = {
    "classifier": ({}, lines("text", "label", columns=(TEXTS, LABELS)), "accuracy macro_f1 f1"),
    "pair-classifier": (
        {},
        lines("text_a", "text_b", "label", columns=(TEXTS, TEXTS, LABELS)),
        "accuracy macro_f1 f1",
    ),
    "regression": (
        {},
        lines("text_a", "text_b", "score", columns=(TEXTS, TEXTS, LENGTHS)),
        "pearson spearman mse",
    ),
    "multiple-choice": (
        {},
        lines("text", "choices", "label", columns=(TEXTS, (["a"] * 2, ["b"] * 4) * 2, [0] * 4)),
        "accuracy",
    ),
    "tagger": (
        {"labels": ["O", "B-x"]},
        lines("words", "tags", columns=(WORDS, [["B-x"] * n for n in LENGTHS])),
        "f1 precision recall",
    ),
    "semantic-roles": (
        {"labels": ["B-V", "O"]},
        [
            {"words": words, "predicate": [0, 1], "tags": ["B-V", *["O"] * (len(words) - 1)]}
            for words in WORDS
        ],
        "f1 precision recall",
    ),
    "question-answering": (
        {},
        {"version": "1.1", "data": [{"title": "a", **question(words)} for words in WORDS]},
        "exact f1",
    ),
    "span-classifier": (
        {"labels": ["x"]},
        [{"words": words, "spans": [[0, 1, "x"]]} for words in WORDS],
        "f1 precision recall",
    ),
    "relation-classifier": (
        {},
        lines(
            *("words", "head", "tail", "label"),
            columns=([["c", *words] for words in WORDS], [[0, 1]] * 4, [[1, 2]] * 4, LABELS),
        ),
        "f1 accuracy",
    ),
    "text-embedding": (
        {},
        lines("anchor", "positive", columns=(TEXTS, [f"{text} c" for text in TEXTS])),
        "ndcg@10 mrr@10 map@100",
    ),
    "coreference": (
        {},
        [{"words": ["c", *w], "clusters": [[[0, 1], [len(w), len(w) + 1]]]} for w in WORDS],
        "f1 muc_f1 b_cubed_f1",
    ),
}


def test_the_table_has_every_task():
    assert TASKS.keys() == {*finetuned_task_types()}


# Those that are classifiers and taggers, too.
SLOW = ("pair-classifier", "semantic-roles")


@pytest.mark.parametrize(
    "task_type",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in TASKS],
)
def test_fit_has_the_official_metrics_and_predict_keeps_the_order(task_type, tmp_path):
    arguments, contents, metrics = TASKS[task_type]
    if isinstance(contents, dict):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(contents))
    else:
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in contents))
    cls, tokenizer = task_class(task_type), make_tokenizer()
    if cls.MIN_LABELS and not arguments:
        arguments = {"labels": ["x", "y"]}
    task = cls(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, dropout=0.0, **arguments)
    monitor = f"val_{metrics.split()[0]}"
    stopping = keras.callbacks.EarlyStopping(monitor, mode="max", patience=0)
    stopping.set_model(task)
    history = task.fit(
        path, validation_data=path, batch_size=3, epochs=1, callbacks=[stopping], verbose=0
    ).history
    assert {f"val_{name}" for name in metrics.split()} <= set(history)
    assert stopping.best == history[monitor][0]  # it found what it monitors
    losses = task.evaluate(path, verbose=0, batch_size=3, return_dict=True)
    assert losses["loss"] == pytest.approx(history["val_loss"][0], rel=1e-4)
    outputs = task.predict(path, batch_size=1, verbose=0)
    for name, whole in task(path).items():
        assert isinstance(outputs[name], np.ndarray)
        assert len(outputs[name]) == len(whole)
        if outputs[name].ndim < 3:  # the others have values at padding, which are undefined
            np.testing.assert_allclose(outputs[name], whole, atol=1e-4)
    predictions = list(kb.predict(task, path))
    assert len(predictions) == 4
