"""Labels by name and by number."""

import numpy as np

from keras_bert.wording import quoted


def sorted_labels(labels):
    """The labels in order: numbers by their size, then words by the alphabet."""
    return sorted(labels, key=_order)


def label_numbers(examples, labels):
    """int32 (N,): the place in `labels` of each example's label; InputError where it has none."""
    place = {label: number for number, label in enumerate(labels)}
    for example in examples:
        if example.label not in place:
            bare = (example.label or "").strip("\"'")
            quotes = f" Without its quotes it would be {bare}." if bare in place else ""
            raise example.error(
                f'the label "{example.label}" is none of those that the model is trained with '
                f"({quoted(labels)}).{quotes}"
            )
    return np.array([place[example.label] for example in examples], np.int32)


def _order(label):
    return (0, int(label), label) if label.isdecimal() else (1, 0, label)
