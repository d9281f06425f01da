"""Labels of whole texts: as numbers with weights, and from logits back to predictions."""

import math

import numpy as np
from scipy.special import expit, softmax

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import quoted
from keras_bert.readers.texts import PAIR, TEXT
from keras_bert.tasks.classification import BALANCED, NO_WEIGHTS
from keras_bert.tasks.metrics import worst_first


def pooled_windows(outputs, example_of_window, *, pooling):
    """The mean or the maximum of the windows of each example: (R, …) -> (N, …).

    `example_of_window` is int (R,), in order, and has every example.
    """
    firsts = np.flatnonzero(np.diff(example_of_window, prepend=-1))
    if pooling == "max":
        return np.maximum.reduceat(outputs, firsts)
    counts = np.diff(firsts, append=len(outputs))
    sums = np.add.reduceat(outputs, firsts, dtype=np.float64)
    return (sums / counts.reshape(-1, *[1] * (outputs.ndim - 1))).astype(outputs.dtype)


def label_numbers(examples, labels):
    """int32 (N,): the number of each example's label; -1 if it is not among `labels`."""
    numbers = {label: number for number, label in enumerate(labels)}
    return np.array([numbers.get(example.label, -1) for example in examples], np.int32)


def label_matrix(examples, labels):
    """float32 (N, C): 1 at each of an example's labels that is among `labels`."""
    numbers = {label: number for number, label in enumerate(labels)}
    matrix = np.zeros((len(examples), len(labels)), np.float32)
    for row, example in zip(matrix, examples, strict=True):
        row[[numbers[label] for label in example.label if label in numbers]] = 1
    return matrix


def parse_class_weights(text, labels):
    """The setting `class_weights` as NO_WEIGHTS, BALANCED, or the weight of every label, in order.

    Raises InputError for anything else and for unknown labels.
    """
    if text in (NO_WEIGHTS, BALANCED):
        return text
    weights = dict.fromkeys(labels, 1.0)
    for part in text.split(","):
        label, _, value = part.rpartition("=")
        label = label.strip()
        try:
            weight = float(value)
        except ValueError:
            weight = math.nan
        if not 0 < weight < math.inf:
            raise InputError.naming(
                "{class_weights} must be none, balanced, or LABEL=WEIGHT,… with weights above 0. "
                "Received: {}.",
                part,
            )
        if label not in weights:
            raise InputError.naming(
                'Unknown label "{}" in {class_weights}. The labels are {}.', label, quoted(labels)
            )
        weights[label] = weight
    return tuple(weights.values())


def example_weights(numbers, weights):
    """float32 (N,): the weight of each example, from its label's number (N,).

    With balanced weights all labels that occur have the same total, and the mean is 1.
    """
    if weights == BALANCED:
        counts = np.bincount(numbers)
        weights = len(numbers) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return np.asarray(weights, np.float32)[numbers]


def decision_weights(matrix, weights):
    """float32 (N, C): the weight of each label in each example, from labels (N, C) of 0 and 1.

    A label's weight counts in examples that have it; in others it is 1 (PyTorch's `pos_weight`).
    With balanced weights the examples with and without a label have the same total, and the mean
    is 1.
    """
    if weights == BALANCED:
        columns = [example_weights(column, BALANCED) for column in matrix.T.astype(int)]
        return np.stack(columns, axis=1)
    return np.where(matrix > 0, np.asarray(weights, np.float32), np.float32(1))


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
    """Returns those with a wrong label, the most confident first (see `Task.errors`)."""
    return worst_first(
        _error(prediction, example.line, prediction["label"], score=prediction["score"])
        for prediction, example in zip(predictions, examples, strict=True)
        if prediction["label"] != example.label
    )


def multi_label_errors(predictions, examples):
    """Returns those with a wrong decision; `score` is the probability of the most confident one."""
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
