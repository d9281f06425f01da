"""Labels by name and by number, and their weights."""

import math

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import quoted
from keras_bert.tasks.classification import BALANCED, NO_WEIGHTS


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
