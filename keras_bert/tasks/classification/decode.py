"""From logits to predictions of whole texts, and descriptions of the errors among them."""

import numpy as np
from scipy.special import expit, softmax

from keras_bert.readers.texts import PAIR, TEXT
from keras_bert.tasks.metrics import worst_first


def of_windows(outputs, example_of_window, *, pooling):
    """The mean or the maximum of the windows of each example: (R, …) -> (N, …).

    `example_of_window` is int (R,), in order, and has every example.
    """
    firsts = np.flatnonzero(np.diff(example_of_window, prepend=-1))
    if pooling == "max":
        return np.maximum.reduceat(outputs, firsts)
    counts = np.diff(firsts, append=len(outputs))
    sums = np.add.reduceat(outputs, firsts, dtype=np.float64)
    return (sums / counts.reshape(-1, *[1] * (outputs.ndim - 1))).astype(outputs.dtype)


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


def multi_label_predictions(logits, examples, *, labels, thresholds):
    """Logits (N, C) -> N dictionaries, with every label whose probability is over its threshold."""
    predictions = []
    for example, row in zip(examples, expit(logits.astype(np.float64)), strict=True):
        probabilities = dict(zip(labels, map(float, row), strict=True))
        chosen = [label for label, is_over in zip(labels, row > thresholds, strict=True) if is_over]
        predictions.append(_prediction(example, {"labels": chosen}, probabilities))
    return predictions


def score_predictions(scores, examples):
    """Scores (N,) -> N dictionaries."""
    return [
        _prediction(example, {"score": float(score)})
        for example, score in zip(examples, scores, strict=True)
    ]


def _prediction(example, decision, probabilities=None):
    names = TEXT if example.text_b is None else PAIR
    prediction = {**dict(zip(names, example.texts, strict=True)), **decision}
    if example.label is not None:
        several = isinstance(example.label, tuple)
        prediction["expected"] = list(example.label) if several else example.label
    if probabilities is not None:
        prediction["probabilities"] = dict(probabilities)
    return prediction


def label_errors(predictions, examples):
    """Those with a wrong label, the most confident first (see `Task.errors`)."""
    return worst_first(
        _error(prediction, example.line, prediction["label"], score=prediction["score"])
        for prediction, example in zip(predictions, examples, strict=True)
        if prediction["label"] != example.label
    )


def multi_label_errors(predictions, examples):
    """Those with a wrong decision; `score` is the probability of the most confident one."""
    errors = []
    for prediction, example in zip(predictions, examples, strict=True):
        predicted, probabilities = prediction["labels"], prediction["probabilities"]
        wrong = set(predicted) ^ set(example.label)
        if wrong:
            score = max(
                probabilities[label] if label in predicted else 1 - probabilities.get(label, 0.0)
                for label in wrong
            )
            errors.append(_error(prediction, example.line, predicted, score=score))
    return worst_first(errors)


def score_errors(predictions, examples):
    """All scores, with the absolute `error` of each, the largest first."""
    return worst_first(
        (
            _error(prediction, example.line, score, error=abs(score - example.label))
            for prediction, example in zip(predictions, examples, strict=True)
            for score in [prediction["score"]]
        ),
        by="error",
    )


def _error(prediction, line, predicted, **more):
    texts = {name: prediction[name] for name in (*TEXT, *PAIR) if name in prediction}
    expected = prediction["expected"]
    return {"line": line, **texts, "expected": expected, "predicted": predicted, **more}
