"""Texts, tables and files in the place of Keras's arrays, with labels and weights beside them."""

import numbers
from collections.abc import Mapping
from os import PathLike

import numpy as np

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import quoted
from keras_bert.readers.labels import label_or_none
from keras_bert.readers.memory import plain, rows_in_memory
from keras_bert.readers.sources import is_file


def is_raw(x, input_names):
    """Whether `x` are texts, a table or a file, and not batches of a task's inputs.

    Arrays of other types are neither: Keras says what is wrong with them.
    """
    if isinstance(x, str | bytes | PathLike) or hasattr(x, "itertuples"):
        return True
    if isinstance(x, Mapping):
        return bool(x) and {*input_names}.isdisjoint(x)
    if hasattr(x, "column_names"):  # of `datasets`
        return {*input_names}.isdisjoint(x.column_names)
    if hasattr(x, "element_spec"):
        spec = x.element_spec
        first = spec[0] if isinstance(spec, tuple) and spec else spec
        return not (isinstance(first, Mapping) and not {*input_names}.isdisjoint(first))
    if isinstance(x, list | tuple):
        first = x[0] if len(x) else None
        is_batch = isinstance(first, Mapping) and not {*input_names}.isdisjoint(first)
        return isinstance(first, str | bytes | PathLike | Mapping | list | tuple) and not is_batch
    dtype = getattr(x, "dtype", None)
    return getattr(dtype, "kind", None) in ("U", "S", "O") or "str" in str(dtype)


def check_in_memory(x, **beside):
    """Raises InputError for a file `x` with any of the arguments that have a value per row."""
    for name, value in beside.items():
        if value is not None and is_file(x):
            raise InputError.naming(
                "{} is for texts and tables in memory, and {x} is a file, which has its own "
                "labels. Read it first, such as with pandas.",
                argument(name),
            )


def rows_with_labels(x, y):
    """-> (the columns' names or None of a sequence, its rows or items, a label for each).

    Raises InputError if `y` has another length than `x`.
    """
    names, rows, _ = rows_in_memory(x)
    labels = plain(y)
    labels = labels if isinstance(labels, list) else [plain(label) for label in y]
    if len(labels) != len(rows):
        raise InputError.naming(
            "{x} and {y} must have the same length. Received: {} and {}.", len(rows), len(labels)
        )
    return names, rows, labels


def new_name(name, names):
    """The name of a column that a table does not have yet."""
    while name in names:
        name = f"{name}_"
    return name


def weights_of_rows(x, sample_weight):
    """float32 (N,): the weight of each row of `x`; InputError if they are not N weights from 0."""
    count = len(rows_in_memory(x)[1])
    try:
        weights = np.asarray(sample_weight, np.float32)
    except (TypeError, ValueError):
        weights = np.full(1, np.nan)
    if weights.shape != (count,) or not np.isfinite(weights).all() or weights.min(initial=0) < 0:
        raise InputError.naming(
            "{sample_weight} must be one number from 0 for each of the {} rows of {x}. "
            "Received: an array of shape {}.",
            count,
            weights.shape,
        )
    return weights


def weights_of_classes(class_weight, labels):
    """float32 (C,): the weight of each label; those that `class_weight` leaves out have 1.

    Args:
        class_weight: {a label as in the data: its weight}. A whole number may also be the index of
            a label, as in Keras, where the model has no label of that name.
        labels: those of the model.

    Raises InputError for an unknown label, for a weight that is not a number from 0, and for whole
    numbers that are the name of one label and the index of another.
    """
    if not isinstance(class_weight, Mapping):
        raise InputError.naming(
            "{class_weight} must be a dictionary of labels and their weights. Received: {!r}.",
            class_weight,
        )
    weights = np.ones(len(labels), np.float32)
    for key, weight in class_weight.items():
        number = _number_of_class(plain(key), labels)
        is_number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not (is_number and 0 <= weight < np.inf):
            raise InputError.naming(
                "The weight of {!r} in {class_weight} must be a number from 0. Received: {!r}.",
                key,
                weight,
            )
        weights[number] = weight
    return weights


def _number_of_class(key, labels):
    name = key if isinstance(key, str) and key in labels else label_or_none(key)
    by_name = labels.index(name) if name in labels else None
    if isinstance(key, str) or isinstance(key, bool) or not isinstance(key, int):
        by_index = None
    else:
        by_index = key if 0 <= key < len(labels) else None
    if None not in (by_name, by_index) and by_name != by_index:
        raise InputError.naming(
            "{} in {class_weight} is the label {} and also the index of the label {}. Name the "
            "labels as strings, such as {!r}.",
            key,
            quoted([labels[by_name]]),
            quoted([labels[by_index]]),
            labels[by_name],
        )
    number = by_index if by_name is None else by_name
    if number is None:
        raise InputError.naming(
            "Unknown label {!r} in {class_weight}. The labels are {}.", key, quoted(labels)
        )
    return number


def split_point(count, validation_split):
    """How many of `count` examples are before the part for validation, which is the last one.

    Raises InputError if a part would have no example.
    """
    is_fraction = isinstance(validation_split, numbers.Real) and 0 < validation_split < 1
    first = int(count * (1 - validation_split)) if is_fraction else 0
    if not 0 < first < count:
        raise InputError.naming(
            "{validation_split} must be a fraction between 0 and 1 that leaves examples in both "
            "parts. Received: {} of {} examples.",
            validation_split,
            count,
        )
    return first
