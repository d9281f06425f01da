"""The predictions of a task from the outputs of its SavedModel, as `Task.decode` has them.

Each kind of task names its function as `exported_prediction`. An example with words of its own is
joined by spaces, or has its text, and what the outputs say of characters is said of its words.

The arguments of each function: the `task` (an `ExportedTask`), an `example`, and the `outputs` of
the SavedModel for it, {name: NumPy array without the batch}.
"""

import numpy as np

from keras_bert.readers.objects import joined


def words_in_text(example):
    """(the text, int (W, 2) the characters of its words or None without words)."""
    words, text, starts = example.words, example.text, getattr(example, "starts", None)
    if words is None:
        return text, None
    if text is None or starts is None:
        text, starts = joined(words)
    ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
    return text, np.array([starts, ends]).T.reshape(-1, 2)


def characters_of(example, span):
    """(start, end) in characters of a span that counts words, if the example has words."""
    _, words = words_in_text(example)
    if words is None:
        return span.start, span.end
    return int(words[span.start, 0]), int(words[span.end - 1, 1])


def _place(example, start, end):
    """[first, after the last]: characters of the text as words, if the example has words."""
    _, words = words_in_text(example)
    if words is None:
        return [start, end]
    first = np.searchsorted(words[:, 1], start, side="right")
    return [int(first), int(np.searchsorted(words[:, 0], end, side="left"))]


def whole_text_prediction(task, example, outputs):
    """Reads a label, labels or a score of a text, a pair, or two spans."""
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
    start, end = characters_of(example, span)
    return _described(example, start, end)


def _described(example, start, end):
    """A span of characters, as predictions describe it."""
    text, _ = words_in_text(example)
    words = _place(example, start, end)
    return {"start": start, "end": end, "words": words, "text": text[start:end]}


def tagged_words_prediction(task, example, outputs):
    """Reads a tag for each word."""
    text, words = words_in_text(example)
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


def question_prediction(task, example, outputs):
    """Reads the answer to a question."""
    prediction = {} if example.id is None else {"id": example.id}
    prediction |= {"question": example.question, "answer": outputs["answer"].decode()}
    prediction |= {name: int(outputs[name]) for name in ("start", "end")}
    prediction |= {name: float(outputs[name]) for name in ("score", "null_score")}
    if example.answers is not None:
        prediction["expected"] = [answer.text for answer in example.answers]
    return prediction


def choice_prediction(task, example, outputs):
    """Reads one of several choices."""
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


def spans_prediction(task, example, outputs):
    """Reads labelled spans."""
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
            {**_span(example, span), "label": task.span_label(span.label)}
            for span in sorted(example.spans, key=lambda span: span[:2])
        ]
    return prediction


def clusters_prediction(task, example, outputs):
    """Reads clusters of spans."""
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
