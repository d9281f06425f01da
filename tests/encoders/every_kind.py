"""Labelled files of every task type that is fine-tuned, and requests to their exports."""

import json

import tensorflow as tf


def _json(**record):
    return json.dumps(record) + "\n"


def _tags(n, words):
    return [
        ("B-X" if k == 0 or words[k - 1] != "w1" else "I-X") if word in ("w1", "w2") else "O"
        for k, word in enumerate(words)
    ]


def _answers(text):
    return {"text": [text[:2]], "answer_start": [0]}


# A line of each kind's file for the example number n and its text, of four words at least.
LINES = {
    "classifier": lambda n, text: f"{text}\t{'ab'[n % 2]}\n",
    "pair-classifier": lambda n, text: f"{text}\tw1 w2\t{'ab'[n % 2]}\n",
    "regression": lambda n, text: f"{text}\tw1 w2\t{n / 2}\n",
    "multiple-choice": lambda n, text: _json(context=text, choices=["w1", "w2 w3"], label=n % 2),
    "tagger": lambda n, text: (
        "".join(
            f"{word} {tag}\n"
            for word, tag in zip(text.split(), _tags(n, text.split()), strict=True)
        )
        + "\n"
    ),
    "semantic-roles": lambda n, text: _json(
        words=text.split(), predicate=[n % 2, n % 2 + 1], tags=_tags(n, text.split())
    ),
    "question-answering": lambda n, text: _json(
        id=str(n), question="w1 w2", context=text, answers=_answers(text)
    ),
    "span-classifier": lambda n, text: _json(words=text.split(), spans=[[0, 1, "XY"[n % 2]]]),
    "relation-classifier": lambda n, text: _json(
        words=text.split(),
        head=[0, 1],
        tail=[2, 3] if n % 3 else [len(text.split()) - 1, len(text.split())],
        label="ab"[n % 2],
    ),
    "text-embedding": lambda n, text: f"{text}\t{' '.join(text.split()[::-1])}\n",
    "coreference": lambda n, text: _json(
        words=text.split(), clusters=[[[0, 1], [2, 3 + n % 2]], [[1, 2], [3, 4]]]
    ),
}
HEADERS = {
    "classifier": "text\tlabel\n",
    "pair-classifier": "text_a\ttext_b\tlabel\n",
    "regression": "text_a\ttext_b\tscore\n",
    "text-embedding": "anchor\tpositive\n",
}


def write_examples(path, kind, texts, *, line=None, header=None):
    """Writes the labelled file of a kind, one example per text; returns its path."""
    line, header = line or LINES[kind], HEADERS.get(kind, "") if header is None else header
    path.write_text(header + "".join(line(n, text) for n, text in enumerate(texts)))
    return path


def request_of(kind, file, answers):
    """The inputs of the SavedModel for the examples of a file that were answered."""
    if kind == "tagger":
        columns = {"text": [" ".join(answer["words"]) for answer in answers]}
    elif kind in ("semantic-roles", "span-classifier", "relation-classifier", "coreference"):
        columns = {"text": [answer["text"] for answer in answers]}
    elif kind == "question-answering":
        questions = [json.loads(line) for line in file.read_text().splitlines()]
        columns = {name: [q[name] for q in questions] for name in ("question", "context")}
    elif kind == "text-embedding":
        columns = {"text": [answer.get("anchor", answer.get("text")) for answer in answers]}
    else:
        names = ("text", "text_a", "text_b", "context", "choices")
        columns = {name: [a[name] for a in answers] for name in names if name in answers[0]}
    request = {name: tf.constant(column) for name, column in columns.items()}
    if kind == "semantic-roles":
        for part in ("start", "end"):
            places = [answer["predicate"][part] for answer in answers]
            request[f"predicate_{part}"] = tf.constant(places, tf.int32)
    if kind == "relation-classifier":
        for which in ("head", "tail"):
            for part in ("start", "end"):
                places = [answer[which][part] for answer in answers]
                request[f"{which}_{part}"] = tf.constant(places, tf.int32)
    return request
