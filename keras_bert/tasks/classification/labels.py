"""Labels by name and by number, and what each weighs."""

import math

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import quoted
from keras_bert.tasks.classification.settings import BALANCED, NO_WEIGHTS


def sorted_labels(labels):
    """The labels in order: numbers by their size, then words by the alphabet."""
    return sorted(labels, key=_order)


def label_numbers(examples, labels):
    """int32 (N,): the place in `labels` of each example's label; InputError where it has none."""
    position = {label: number for number, label in enumerate(labels)}
    return np.array([_position(example, example.label, position) for example in examples], np.int32)


def label_matrix(examples, labels):
    """float32 (N, C): 1 at each of an example's labels; InputError where one is not known."""
    position = {label: number for number, label in enumerate(labels)}
    matrix = np.zeros((len(examples), len(labels)), np.float32)
    for row, example in zip(matrix, examples, strict=True):
        for label in example.label:
            row[_position(example, label, position)] = 1
    return matrix


def parse_class_weights(text, labels):
    """The setting `class_weights` as NO_WEIGHTS, BALANCED, or the weight of every label, in order.

    Raises InputError where it is none of these, or names a label that there is not.
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
            raise InputError(
                f'`class_weights` has the part "{part}"; it should be none, balanced, or '
                "LABEL=WEIGHT,… with weights above 0."
            )
        if label not in weights:
            raise InputError(
                f'`class_weights` names the label "{label}"; the labels are {quoted(labels)}.'
            )
        weights[label] = weight
    return tuple(weights.values())


def sequence_weights(numbers, weights):
    """float32 (N,): what each row weighs, of the numbers (N,) of its labels.

    Balanced weights make the labels that occur among the rows weigh the same in sum, and the rows
    1 in the mean.
    """
    if weights == BALANCED:
        counts = np.bincount(numbers)
        weights = len(numbers) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return np.asarray(weights, np.float32)[numbers]


def decision_weights(matrix, weights):
    """float32 (N, C): what each label weighs in each row, of the rows' labels (N, C), 0 or 1.

    A label's own weight counts where a row has it, and 1 where a row has it not (PyTorch's
    `pos_weight`). With balanced weights the rows that have a label and those that have it not weigh
    the same in sum, and all of them 1 in the mean.
    """
    if weights == BALANCED:
        return np.stack(
            [sequence_weights(column, BALANCED) for column in matrix.T.astype(int)], axis=1
        )
    return np.where(matrix > 0, np.asarray(weights, np.float32), np.float32(1))


def _position(example, label, position):
    if label not in position:
        bare = (label or "").strip("\"'")
        quotes = f" Without its quotes it would be {bare}." if bare in position else ""
        raise example.error(
            f'the label "{label}" is none of those that the model is trained with '
            f"({quoted(position)}).{quotes}"
        )
    return position[label]


def _order(label):
    return (0, int(label), label) if label.isdecimal() else (1, 0, label)
