"""Prediction and evaluation: the same answers however they are asked for, and the measures."""

import io
import json

import numpy as np
import pytest

from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.tasks.classification.metrics import classification_metrics
from tests.messages import raises_input_error


@pytest.mark.usefixtures("eager")
def test_answers_are_those_of_the_model_one_text_at_a_time(task, texts, predictions):
    answers = list(predict(model=task, text=texts, batch_size=5))
    assert [answer["text"] for answer in answers] == texts
    assert len({answer["label"] for answer in answers}) > 1  # the fixture tells texts apart
    for answer, row in zip(answers, predictions, strict=True):
        assert answer["label"] == task.labels[row.argmax()]
        assert answer["score"] == pytest.approx(row.max(), abs=1e-5)
        assert list(answer["probabilities"].values()) == pytest.approx(row, abs=1e-5)


def test_a_run_folder_and_its_model_folder_hold_one_model(task, model_folder, texts):
    for folder in (model_folder, model_folder.parent):
        saved = load_task(find_model_folder(folder))
        assert (saved.labels, saved.settings.max_length) == (task.labels, task.settings.max_length)
        for saved_weight, weight in zip(saved.weights, task.weights, strict=True):
            np.testing.assert_array_equal(saved_weight, weight)


@pytest.mark.usefixtures("eager")
def test_files_and_standard_input(task, tmp_path, monkeypatch):
    texts = ["good film", "buy pills now", "dull plot"]
    labels = ["ham", "spam", "ham"]
    lines = [f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)]
    (tmp_path / "labelled.tsv").write_text("".join(["phrase\tlabel\n", *lines]))
    expected = list(predict(model=task, text=texts))
    told = []
    labelled = list(predict(model=task, data=tmp_path / "labelled.tsv", report=told.append))
    assert [answer.pop("expected") for answer in labelled] == labels
    assert labelled == expected
    assert 'text in "phrase" (the only column left), label in "label"' in told[0]
    assert told[1:] == ['First example: text: "good film", label: "ham".']
    plain = "".join(f"{text}\n" for text in texts).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(plain)))
    assert list(predict(model=task, data="-")) == expected


@pytest.mark.usefixtures("eager")
def test_a_text_of_python_is_one_text(task):
    assert [answer["text"] for answer in predict(model=task, text="good film")] == ["good film"]


@pytest.mark.usefixtures("eager")
def test_evaluate_measures_the_answers(task, texts, predictions):
    labels = [task.labels[(row.argmax() + (i % 4 == 0)) % 3] for i, row in enumerate(predictions)]
    measures = evaluate(model=task, data=list(zip(texts, labels, strict=True)), report=print)
    kept = [number for number, text in enumerate(texts) if text.strip()]  # as of a table
    predictions = predictions[kept]
    expected = np.array([task.labels.index(labels[number]) for number in kept])
    assert measures["accuracy"] == np.mean(predictions.argmax(axis=1) == expected)
    assert measures["examples"] == len(kept)
    cross_entropy = -np.log(predictions[np.arange(len(kept)), expected]).mean()
    assert measures["cross_entropy"] == pytest.approx(cross_entropy, rel=1e-4)
    json.dumps(measures)


def test_measures_against_metrics_worked_out_by_hand():
    expected = np.array([0, 0, 0, 0, 1, 1])
    probabilities = np.eye(3)[[0, 0, 0, 1, 1, 0]]
    measures = classification_metrics(expected, probabilities, labels=["x", "y", "z"])
    assert measures["accuracy"] == pytest.approx(4 / 6)
    assert measures["confusion"] == [[3, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert measures["labels"]["x"] == {"precision": 0.75, "recall": 0.75, "f1": 0.75, "examples": 4}
    assert measures["labels"]["z"]["f1"] == 0
    assert measures["macro_f1"] == pytest.approx((0.75 + 0.5) / 2)
    assert measures["micro_f1"] == pytest.approx(4 / 6)
    # (TP TN - FP FN) / sqrt((TP+FP) (TP+FN) (TN+FP) (TN+FN)) with y as the positive label
    assert measures["matthews"] == pytest.approx((1 * 3 - 1 * 1) / (2 * 2 * 4 * 4) ** 0.5)


def test_matthews_of_one_label_is_zero_without_a_warning(recwarn):
    measures = classification_metrics(np.array([1, 1]), np.eye(2)[[1, 1]], labels=["x", "y"])
    assert (measures["matthews"], measures["accuracy"]) == (0, 1)
    assert not recwarn.list


@pytest.mark.parametrize(
    "given, message",
    [
        ({}, "Pass `data`, a file of examples, or `text`"),
        ({"text": "x", "max_length": 100}, "`max_length` must be at most 64...Received: 100"),
        ({"data": "none.tsv"}, "does not exist"),
        ({"text": "x", "model": "none"}, "There is no model folder"),
        ({"text": "x", "model": "."}, "Could not detect the model format of"),
        ({"data": "text.txt"}, "text.txt, line 2: byte 2 is not UTF-8"),
    ],
)
def test_what_cannot_be_predicted_is_named(task, given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_bytes(b"good film\nb\xffd film\n")
    with raises_input_error(message):
        list(predict(**{"model": task, **given}))


BORING = "text\tlabel\ngood film\tham\nbad film\tspam\n\ndull film\tboring\n"


@pytest.mark.parametrize(
    "content, options, message",
    [
        (BORING, {"unknown_labels": "error"}, 'data.tsv, line 5: unknown label "boring"'),
        (BORING, {"max_length": 100}, "`max_length` must be at most 64...Received: 100"),
        # Whatever the labels are: not that there is no column of labels.
        (
            "text\tlabel\n" + "good film\ttrue\nbad film\tfalse\n" * 2,
            {},
            'line 2: unknown label "True"..."ham"',
        ),
        (
            'text\tlabel\ngood film\tham\nbad film\t"spam"\n',
            {"unknown_labels": "error"},
            'line 3: unknown label ""spam""...Without its quotes ... "spam"',
        ),
    ],
)
def test_what_cannot_be_evaluated_is_named(task, content, options, message, tmp_path):
    (tmp_path / "data.tsv").write_text(content)
    with raises_input_error(message):
        evaluate(model=task, data=tmp_path / "data.tsv", **options)


@pytest.mark.usefixtures("eager")
def test_texts_without_a_word_are_left_out_and_told(task, tmp_path):
    file = tmp_path / "data.tsv"
    file.write_text("text\tlabel\ngood film\tham\n \tspam\nbad film\tham\n")
    told = []
    metrics = evaluate(model=task, data=file, report=told.append)
    assert metrics["examples"] == 2
    assert told[2] == f"Note: {file}, line 3: 1 row without a text, left out."
    # A label that is predicted and that no example has lowers the macro F1, which is told.
    absent = [name for name, label in metrics["labels"].items() if not label["examples"]]
    table = dict(zip(metrics["labels"], zip(*metrics["confusion"], strict=True), strict=True))
    predicted = [f'"{name}"' for name in absent if sum(table[name])]
    assert len(told) == 3 + bool(predicted)
    assert all(name in told[3] and "F1 of 0 in macro_f1" in told[3] for name in predicted)
