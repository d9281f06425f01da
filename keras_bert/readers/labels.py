"""Labels as files give them, and notes on labelled texts that are unusual but no error.

A label is a word, several words, or a score. Each type is a function from a cell of a table or a
value of a JSON object to the label, or to None where there is none. It raises ValueError for a
value of another type.
"""

import contextlib
import math
import numbers
import re
from collections import Counter

from keras_bert.base.formatting import counted, listed, quoted
from keras_bert.readers.sources import first_location, is_text

_BETWEEN_LABELS = "|"
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_QUOTES = "\"'"


def one_label(value):
    """The string by which a model knows the label."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):  # of numpy, too
        return str(value)
    return value.strip() or None if isinstance(value, str) and is_text(value) else None


def missing_label(value):
    """What is wrong with a value for which `one_label` gives None, as a part of a message."""
    if value is None or isinstance(value, str):
        return "no label"
    if isinstance(value, list):
        return f"the label {value!r} is a list (`multi_label=True` reads several labels)"
    return f"the label {value!r} is neither a text nor a whole number"


def unknown_label(label, known):
    """What is wrong with a label that a model does not have, as a part of a message."""
    bare = label.strip(_QUOTES)
    quotes = f' Without its quotes it would be "{bare}".' if bare in known else ""
    return f'unknown label "{label}". The model\'s labels are {quoted(known)}.{quotes}'


def check_known(labels, known, error):
    """Raises `error` of a message for the first label that is not known; None knows every label."""
    for label in labels if known is not None else ():
        if label not in known:
            raise error(unknown_label(label, known))


def unknown_labels_note(name, unknown):
    """A line for the user on the labels of a file, a `Counter`, that the model does not have."""
    each = listed(f'"{label}" ({count:,})' for label, count in unknown.most_common())
    return f"{name}: labels that the model does not have, counted as errors: {each}."


def several_labels(value):
    """The tuple of labels of a list, or of a cell with `|` between them; it may be empty."""
    if value is None:
        return None
    parts = value if isinstance(value, list) else str(value).split(_BETWEEN_LABELS)
    labels = tuple(map(one_label, parts))
    if isinstance(value, list) and None in labels:
        raise ValueError(f"{value!r} should be a list of labels.")
    return tuple(dict.fromkeys(label for label in labels if label is not None))


def score(value):
    """The number; an empty cell has no score, which is not zero."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = math.nan
    if isinstance(value, str):
        number = parsed_number(value)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number):
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        raise ValueError(f"{shown} is not a score, a number such as 1.5. Leave it empty for none.")
    return number


def parsed_number(text):
    """The number in a cell, as JSON would write it; nan where there is none.

    Python's own `float` also reads 1_000 and digits of other scripts.
    """
    return float(text) if _NUMBER.fullmatch(text.strip()) else math.nan


def warnings(examples):
    """Lines for the user on unusual `LabelledText`s: how many there are, and the first line."""
    empty = [example for example in examples if not all(text.strip() for text in example.texts)]
    in_quotes = [example for example in examples if _is_quoted(example.label)]
    lines = []
    if empty:
        lines.append(f"{first_location(empty)}: {counted(len(empty), 'text')} without a word.")
    if in_quotes:
        label = in_quotes[0].label
        lines.append(
            f"{first_location(in_quotes)}: {counted(len(in_quotes), 'label')} in quotes. Quotes "
            f"are ordinary characters here: {label} and {label[1:-1]} are different labels."
        )
    lines += _labels_alike(examples)
    lines += _contradictions(examples)
    return [*lines, *examples[0].source.notes()] if examples else lines


def _labels_alike(examples):
    """A line for labels that a person would read as one, and a model reads as several."""
    labels = Counter()
    for example in examples:
        labels.update(example.label if isinstance(example.label, tuple) else [example.label])
    alike = {}
    for label in labels:
        if isinstance(label, str):
            number = parsed_number(label)
            plain = "".join(label.split()).casefold() if math.isnan(number) else number
            alike.setdefault(plain, []).append(label)
    for group in alike.values():
        if len(group) > 1:
            each = listed(f'"{label}" ({labels[label]:,})' for label in sorted(group))
            yield (
                f"{examples[0].source.name}: the labels {each} differ only in case, spaces or the "
                "form of a number, and are different labels here."
            )


def _contradictions(examples):
    """A line for texts that are repeated with another label."""
    first_with, others = {}, []
    for example in examples:
        first = first_with.setdefault(example.texts, example)
        if example.label is not None and _as_set(first.label) != _as_set(example.label):
            others.append((first, example))
    if others:
        first, example = others[0]
        yield (
            f"{first_location([example for _, example in others])}: "
            f"{counted(len(others), 'example')} with the text of an earlier one (line "
            f"{first.line}) and another "
            f"{'score' if isinstance(example.label, float) else 'label'}."
        )


def _as_set(label):
    return frozenset(label) if isinstance(label, tuple) else label


def _is_quoted(label):
    return isinstance(label, str) and len(label) > 2 and label[0] == label[-1] in _QUOTES
