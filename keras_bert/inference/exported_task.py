"""An exported task, a SavedModel, in the place of the task that it was made of: its predictions.

An export has the file `ABOUT_EXPORT`, which says what its outputs do not: the type of the task, its
labels and its settings. What a task computes without its weights (how a file is read, what the
metrics are) is then computed here by the methods of its class.
"""

import inspect
import json
from itertools import islice
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  the operations of tokenizers

from keras_bert.base.errors import InputError, damaged
from keras_bert.base.files import parse_json, read_small
from keras_bert.inference import ABOUT_EXPORT
from keras_bert.readers.objects import joined
from keras_bert.tasks import task_class, task_type_named

_SIGNATURE = "serving_default"
_EXAMPLE_PARTS = ("text", "question", "context", "choices")


def about_export(task):
    """The content of the file `ABOUT_EXPORT` of an exported task, JSON."""
    about = {
        "task": task.TASK_TYPE,
        "metric": task.METRIC,
        "labels": list(task.labels) if task.MIN_LABELS else [],
        "settings": {name: getattr(task.settings, name) for name in task.stored_settings()},
        "inferred_arguments": task.inferred_arguments,
        "columns": task.columns,
    }
    return json.dumps(about, ensure_ascii=False, indent=2) + "\n"


class ExportedTask:
    """A SavedModel that `export` made of a task, with the task's methods that need no weights.

    Its words are the tokenizer's. A file with words of its own, such as CoNLL, is joined by spaces,
    and each of its words has the tag of the first word that the SavedModel finds in it.

    Args:
        folder: a version of an export.

    Attributes: `labels`, `settings`, `columns`, `inferred_arguments` and METRIC as in the task;
    `inputs`, the names of the SavedModel's inputs.

    Raises:
        InputError: the folder has no file `ABOUT_EXPORT`: it is an encoder's, or of an earlier
            version.
    """

    def __init__(self, folder):
        path = Path(folder, ABOUT_EXPORT)
        advice = "Export the model again."
        if not path.is_file():
            raise InputError(
                f"{folder} does not say what task it is of: it is the export of an encoder, of "
                f"pre-training or of an earlier version. {advice}"
            )
        with damaged(path, advice):
            about = parse_json(read_small(path))
            self._class = task_class(task_type_named(about["task"]))
            self.METRIC, self.labels = about["metric"], tuple(about["labels"])
            self.settings = self._class.SETTINGS.of(about["settings"])
            self.inferred_arguments, self.columns = about["inferred_arguments"], about["columns"]
        self._model = tf.saved_model.load(str(folder))
        self._compute = self._model.signatures[_SIGNATURE]
        self.inputs = [*self._compute.structured_input_signature[1]]
        if "embedding" in self._compute.structured_outputs:
            raise InputError(
                f"{folder} is an exported text embedder, which gives vectors and no predictions. "
                "Evaluate the folder that it was exported from."
            )

    def __getattr__(self, name):
        if name.startswith("__") or name == "_class":  # of a copy that has no attributes yet
            raise AttributeError(name)
        attribute = inspect.getattr_static(self._class, name)
        bind = getattr(type(attribute), "__get__", None)
        return attribute if bind is None else bind(attribute, self, self._class)

    def outputs(self, columns):
        """The outputs of the SavedModel, NumPy arrays by name, for a list of inputs by name."""
        inputs = {name: _column([c[name] for c in columns]) for name in self.inputs}
        return {name: x.numpy() for name, x in self._compute(**inputs).items()}


class ExportedInference:
    """The `Inference` of an `ExportedTask`; it counts no tokens."""

    tokens = unknown = 0

    def __init__(self, task, *, batch_size):
        self._task, self._batch_size = task, batch_size

    def of_examples(self, examples):
        """Yields (list of examples, list of predictions), as `Inference.of_examples`."""
        iterator = iter(examples)
        while chunk := [*islice(iterator, self._batch_size)]:
            outputs = self._task.outputs([_inputs_of(e, self._task.inputs) for e in chunk])
            rows = ({name: x[n] for name, x in outputs.items()} for n in range(len(chunk)))
            yield chunk, [self._prediction(e, row) for e, row in zip(chunk, rows, strict=True)]

    def _prediction(self, example, outputs):
        """The prediction for an example, as the task's `decode` has it, of a row of outputs."""
        if "words" in outputs:
            return _of_words(example, outputs)
        if "answer" in outputs:
            return _of_question(example, outputs)
        if "clusters" in outputs:
            return _of_clusters(example, outputs)
        if "starts" in outputs:
            return _of_spans(example, outputs, label_of=self._task.span_label)
        if "choice" in outputs:
            return _of_choices(example, outputs)
        return _of_whole_text(example, outputs)


def _column(values):
    """The tensor of an input: int32 (B,), string (B,) or, of lists, (B, n) padded with ""."""
    if isinstance(values[0], int):
        return tf.constant(values, tf.int32)
    if isinstance(values[0], str):
        return tf.constant(values)
    width = max(map(len, values))
    return tf.constant([[*value, *[""] * (width - len(value))] for value in values])


def _inputs_of(example, names):
    """The inputs of an example by name."""
    texts = getattr(example, "texts", None)  # one, or the two of a pair
    if texts is not None:
        return dict(zip(names, texts, strict=True))
    inputs = {name: getattr(example, name) for name in names if name in _EXAMPLE_PARTS}
    if "text" in names:
        inputs["text"], _ = _words_in_text(example)
    for name in names:
        part, _, side = name.rpartition("_")
        if name not in inputs:
            inputs[name] = _characters(example, getattr(example, part))[side == "end"]
    return inputs


def _words_in_text(example):
    """(the text, int (W, 2) the characters of its words or None without words)."""
    words, text, starts = example.words, example.text, getattr(example, "starts", None)
    if words is None:
        return text, None
    if text is None or starts is None:
        text, starts = joined(words)
    ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
    return text, np.array([starts, ends]).T.reshape(-1, 2)


def _characters(example, span):
    """(start, end) in characters of a span that counts words, if the example has words."""
    _, words = _words_in_text(example)
    if words is None:
        return span.start, span.end
    return int(words[span.start, 0]), int(words[span.end - 1, 1])


def _place(example, start, end):
    """[first, after the last]: characters of the text as words, if the example has words."""
    _, words = _words_in_text(example)
    if words is None:
        return [start, end]
    first = np.searchsorted(words[:, 1], start, side="right")
    return [int(first), int(np.searchsorted(words[:, 0], end, side="left"))]


def _of_whole_text(example, outputs):
    prediction = _parts_of(example)
    if "labels" not in outputs:
        prediction["score"] = float(outputs["score"])
    elif "given" in outputs:
        prediction["labels"] = _texts(outputs["labels"][outputs["given"]])
    else:
        prediction["label"] = outputs["label"].decode() or None
        prediction["score"] = float(outputs["score"])
    expected = example.label
    if expected is not None:
        prediction["expected"] = list(expected) if isinstance(expected, tuple) else expected
    if "labels" in outputs:
        probabilities = outputs["probabilities"].astype(float).tolist()
        labels = _texts(outputs["labels"])
        prediction["probabilities"] = dict(zip(labels, probabilities, strict=True))
    return prediction


def _parts_of(example):
    """The texts of a `LabelledText`, or the text and spans of a `SpanPair`."""
    texts = getattr(example, "texts", None)
    if texts is not None:
        return dict(zip(("text",) if len(texts) == 1 else ("text_a", "text_b"), texts, strict=True))
    spans = {name: _span(example, getattr(example, name)) for name in ("head", "tail")}
    return {"text": example.text, **spans}


def _texts(array):
    return [value.decode() for value in array.tolist()]


def _span(example, span):
    start, end = _characters(example, span)
    return _described(example, start, end)


def _described(example, start, end):
    """A span of characters, as predictions describe it."""
    text, _ = _words_in_text(example)
    words = _place(example, start, end)
    return {"start": start, "end": end, "words": words, "text": text[start:end]}


def _of_words(example, outputs):
    text, words = _words_in_text(example)
    length = int(outputs["lengths"])
    tags, served = _texts(outputs["tags"][:length]), _texts(outputs["words"][:length])
    starts, ends = (outputs[name][:length] for name in ("starts", "ends"))
    scores = outputs["scores"][:length].astype(float)
    if words is not None:
        at = np.searchsorted(ends, words[:, 0], side="right")
        is_there = (at < length) & (np.append(starts, 0)[np.minimum(at, length)] < words[:, 1])
        tags = [tags[n] if there else "O" for n, there in zip(at, is_there, strict=True)]
        scores = np.where(is_there, np.append(scores, 0.0)[np.minimum(at, length)], 0.0)
        served, (starts, ends) = list(example.words), words.T
    prediction = {
        "text": text,
        "words": served,
        "tags": tags,
        "scores": scores.tolist(),
        "starts": starts.tolist(),
        "ends": ends.tolist(),
    }
    return prediction if example.tags is None else {**prediction, "expected": list(example.tags)}


def _of_question(example, outputs):
    prediction = {} if example.id is None else {"id": example.id}
    prediction |= {"question": example.question, "answer": outputs["answer"].decode()}
    prediction |= {name: int(outputs[name]) for name in ("start", "end")}
    prediction |= {name: float(outputs[name]) for name in ("score", "null_score")}
    if example.answers is not None:
        prediction["expected"] = [answer.text for answer in example.answers]
    return prediction


def _of_choices(example, outputs):
    probabilities = outputs["probabilities"][: len(example.choices)].astype(float).tolist()
    prediction = {
        "context": example.context,
        "choices": list(example.choices),
        "label": int(outputs["label"]),
        "choice": outputs["choice"].decode(),
        "score": float(outputs["score"]),
    }
    if example.label is not None:
        prediction["expected"] = example.label
    return {**prediction, "probabilities": probabilities}


def _of_spans(example, outputs, *, label_of):
    length = int(outputs["lengths"])
    names = ("starts", "ends", "scores")
    columns = (outputs[name][:length].tolist() for name in names)
    spans = zip(*columns, _texts(outputs["labels"][:length]), strict=True)
    prediction = {
        "text": example.text,
        "spans": [
            {**_described(example, start, end), "label": label, "score": score}
            for start, end, score, label in spans
        ],
    }
    if example.spans is not None:
        prediction["expected"] = [
            {**_span(example, span), "label": label_of(span.label)}
            for span in sorted(example.spans, key=lambda span: span[:2])
        ]
    return prediction


def _of_clusters(example, outputs):
    length = int(outputs["lengths"])
    columns = (outputs[name][:length].tolist() for name in ("clusters", "starts", "ends"))
    clusters = {}
    for number, start, end in zip(*columns, strict=True):
        clusters.setdefault(number, []).append(_described(example, start, end))
    prediction = {"text": example.text, "clusters": list(clusters.values())}
    if example.spans is not None:
        expected = {}
        for span in sorted(example.spans, key=lambda span: span[:2]):
            expected.setdefault(span.label, []).append(_span(example, span))
        prediction["expected"] = list(expected.values())
    return prediction
