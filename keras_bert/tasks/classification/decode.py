"""From logits to predictions of whole texts, and descriptions of the errors among them."""

import numpy as np
from scipy.special import expit, softmax


def classifier_predictions(logits, examples, *, labels):
    """Logits (N, C) -> N dictionaries, as `keras-bert predict` prints them."""
    predictions = []
    for example, row in zip(examples, softmax(logits.astype(np.float64), axis=-1), strict=True):
        best = int(row.argmax())
        decision = {"label": labels[best], "score": float(row[best])}
        predictions.append(
            _prediction(example, decision, zip(labels, map(float, row), strict=True))
        )
    return predictions


def multi_label_predictions(logits, examples, *, labels, threshold):
    """Logits (N, C) -> N dictionaries, with every label whose probability is over the threshold."""
    predictions = []
    for example, row in zip(examples, expit(logits.astype(np.float64)), strict=True):
        probabilities = dict(zip(labels, map(float, row), strict=True))
        chosen = [label for label, probability in probabilities.items() if probability > threshold]
        predictions.append(_prediction(example, {"labels": chosen}, probabilities))
    return predictions


def score_predictions(scores, examples):
    """Scores (N,) -> N dictionaries."""
    return [
        _prediction(example, {"score": float(score)})
        for example, score in zip(examples, scores, strict=True)
    ]


def _prediction(example, decision, probabilities=None):
    names = ("text",) if example.text_b is None else ("text_a", "text_b")
    prediction = {**dict(zip(names, example.texts, strict=True)), **decision}
    if example.label is not None:
        several = isinstance(example.label, tuple)
        prediction["expected"] = list(example.label) if several else example.label
    if probabilities is not None:
        prediction["probabilities"] = dict(probabilities)
    return prediction


def label_errors(predictions, examples):
    """[(probability of the wrong label, description)]."""
    return [
        (
            prediction["score"],
            f"{_true(example, example.label)}, predicted: {prediction['label']} "
            f"({prediction['score']:.2f}): {_shown(example)}",
        )
        for prediction, example in zip(predictions, examples, strict=True)
        if prediction["label"] != example.label
    ]


def multi_label_errors(predictions, examples):
    """[(probability of the most confident wrong decision, description)]."""
    errors = []
    for prediction, example in zip(predictions, examples, strict=True):
        wrong = set(prediction["labels"]) ^ set(example.label)
        if wrong:
            probabilities = prediction["probabilities"]
            most_confident = max(
                probabilities[label] if label in prediction["labels"] else 1 - probabilities[label]
                for label in wrong
            )
            true, predicted = (
                "|".join(labels) or "none" for labels in (example.label, prediction["labels"])
            )
            line = f"{_true(example, true)}, predicted: {predicted}: {_shown(example)}"
            errors.append((most_confident, line))
    return errors


def score_errors(predictions, examples):
    """[(absolute error, description)] of all scores."""
    return [
        (
            abs(prediction["score"] - example.label),
            f"{_true(example, f'{example.label:g}')}, predicted: {prediction['score']:.2f}: "
            f"{_shown(example)}",
        )
        for prediction, example in zip(predictions, examples, strict=True)
    ]


def _true(example, label):
    return f"line {example.line}, true: {label}"


def _shown(example):
    return " / ".join(map(in_one_line, example.texts))


def in_one_line(text, most=200):
    """A text without line breaks, cut after `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]}…"
