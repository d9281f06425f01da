"""From logits to answers, and the wrong answers as a person reads them."""

import numpy as np
from scipy.special import expit, softmax

from keras_bert.base.formatting import percent


def texts_of(example):
    """The text or the two texts of an example, as an answer shows them."""
    names = ("text",) if example.text_b is None else ("text_a", "text_b")
    return dict(zip(names, example.texts, strict=True))


def classifier_predictions(logits, examples, *, labels):
    """logits (N, C) -> N dictionaries, as `keras-bert predict` prints them."""
    predictions = []
    for example, row in zip(examples, softmax(logits.astype(np.float64), axis=-1), strict=True):
        best = int(row.argmax())
        prediction = {**texts_of(example), "label": labels[best], "score": float(row[best])}
        if example.label is not None:
            prediction["expected"] = example.label
        prediction["probabilities"] = dict(zip(labels, map(float, row), strict=True))
        predictions.append(prediction)
    return predictions


def multi_label_predictions(logits, examples, *, labels, threshold):
    """logits (N, C) -> N dictionaries, with every label that is likelier than the threshold."""
    predictions = []
    for example, row in zip(examples, expit(logits.astype(np.float64)), strict=True):
        probabilities = dict(zip(labels, map(float, row), strict=True))
        said = [label for label, probability in probabilities.items() if probability > threshold]
        prediction = {**texts_of(example), "labels": said}
        if example.label is not None:
            prediction["expected"] = list(example.label)
        predictions.append({**prediction, "probabilities": probabilities})
    return predictions


def score_predictions(scores, examples):
    """scores (N,) -> N dictionaries."""
    predictions = []
    for example, score in zip(examples, scores, strict=True):
        prediction = {**texts_of(example), "score": float(score)}
        if example.label is not None:
            prediction["expected"] = example.label
        predictions.append(prediction)
    return predictions


_SHOWN = 200  # characters of a text


def label_errors(predictions, examples):
    """[(how sure the wrong answer was, its text)] of answers with one label."""
    return [
        (
            prediction["score"],
            f'{where(example)}: "{example.label}", and not "{prediction["label"]}" '
            f"({percent(prediction['score'])}): {shown(example)}",
        )
        for prediction, example in zip(predictions, examples, strict=True)
        if prediction["label"] != example.label
    ]


def multi_label_errors(predictions, examples):
    """[(how sure the surest wrong decision was, its text)] of answers with any number of labels."""
    found = []
    for prediction, example in zip(predictions, examples, strict=True):
        wrong = set(prediction["labels"]) ^ set(example.label)
        if wrong:
            probabilities = prediction["probabilities"]
            most_confident = max(
                probabilities[label] if label in prediction["labels"] else 1 - probabilities[label]
                for label in wrong
            )
            right, said = ("|".join(labels) for labels in (example.label, prediction["labels"]))
            line = f'{where(example)}: "{right}", and not "{said}": {shown(example)}'
            found.append((most_confident, line))
    return found


def score_errors(predictions, examples):
    """[(how far off, the text)] of all scores."""
    return [
        (
            abs(prediction["score"] - example.label),
            f"{where(example)}: {example.label:g}, and not {prediction['score']:.2f}: "
            f"{shown(example)}",
        )
        for prediction, example in zip(predictions, examples, strict=True)
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
