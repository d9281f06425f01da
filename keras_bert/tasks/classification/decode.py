"""From logits to answers, and the wrong answers as a person reads them."""

from keras_bert.base.formatting import percent
from keras_bert.tasks.probabilities import sigmoid, softmax


def texts_of(example):
    """The text or the two texts of an example, as an answer shows them."""
    names = ("text",) if example.text_b is None else ("text_a", "text_b")
    return dict(zip(names, example.texts, strict=True))


def classifier_answers(logits, examples, *, labels):
    """logits (N, C) -> N dictionaries, as `keras-bert predict` prints them."""
    answers = []
    for example, row in zip(examples, softmax(logits), strict=True):
        best = int(row.argmax())
        answer = {**texts_of(example), "label": labels[best], "score": float(row[best])}
        if example.label is not None:
            answer["expected"] = example.label
        answer["probabilities"] = dict(zip(labels, map(float, row), strict=True))
        answers.append(answer)
    return answers


def multi_label_answers(logits, examples, *, labels, threshold):
    """logits (N, C) -> N dictionaries, with every label that is likelier than the threshold."""
    answers = []
    for example, row in zip(examples, sigmoid(logits), strict=True):
        probabilities = dict(zip(labels, map(float, row), strict=True))
        said = [label for label, probability in probabilities.items() if probability > threshold]
        answer = {**texts_of(example), "labels": said}
        if example.label is not None:
            answer["expected"] = list(example.label)
        answers.append({**answer, "probabilities": probabilities})
    return answers


def score_answers(scores, examples):
    """scores (N,) -> N dictionaries."""
    answers = []
    for example, score in zip(examples, scores, strict=True):
        answer = {**texts_of(example), "score": float(score)}
        if example.label is not None:
            answer["expected"] = example.label
        answers.append(answer)
    return answers


_SHOWN = 200  # characters of a text


def label_errors(answers, examples):
    """[(how sure the wrong answer was, its text)] of answers with one label."""
    return [
        (
            answer["score"],
            f'{where(example)}: "{example.label}", and not "{answer["label"]}" '
            f"({percent(answer['score'])}): {shown(example)}",
        )
        for answer, example in zip(answers, examples, strict=True)
        if answer["label"] != example.label
    ]


def multi_label_errors(answers, examples):
    """[(how sure the surest wrong decision was, its text)] of answers with any number of labels."""
    found = []
    for answer, example in zip(answers, examples, strict=True):
        wrong = set(answer["labels"]) ^ set(example.label)
        if wrong:
            probabilities = answer["probabilities"]
            most_confident = max(
                probabilities[label] if label in answer["labels"] else 1 - probabilities[label]
                for label in wrong
            )
            right, said = ("|".join(labels) for labels in (example.label, answer["labels"]))
            line = f'{where(example)}: "{right}", and not "{said}": {shown(example)}'
            found.append((most_confident, line))
    return found


def score_errors(answers, examples):
    """[(how far off, the text)] of all scores."""
    return [
        (
            abs(answer["score"] - example.label),
            f"{where(example)}: {example.label:g}, and not {answer['score']:.2f}: {shown(example)}",
        )
        for answer, example in zip(answers, examples, strict=True)
    ]


def where(example):
    """Where an example stands: "line 3" of its file, from 1."""
    return f"line {example.line}"


def shown(example):
    """The texts of an example in one line, each cut where it is long."""
    return " / ".join(map(in_one_line, example.texts))


def in_one_line(text):
    """A text without line breaks, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
