"""Labels as files give them, and what is odd among labelled texts but no error.

A label is a word, several words, or a score. Each form takes a cell of a table or a value of a JSON
object and gives the label, or None where there is none; ValueError says what it cannot be.
"""

import contextlib
import math
import numbers
import re
from collections import Counter

from keras_bert.base.formatting import counted, listed

# JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
is_text = re.compile(r"[^\0\ud800-\udfff]*").fullmatch
_BETWEEN_LABELS = "|"
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def one_label(value):
    """The string by which a model knows the label."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):  # of numpy, too
        return str(value)
    return value.strip() or None if isinstance(value, str) and is_text(value) else None


def missing_label(value):
    """What is wrong with a value of which `one_label` makes none, as a part of a message."""
    if value is None or isinstance(value, str):
        return "no label"
    if isinstance(value, list):
        return f"the label {value!r} is a list (`multi_label=True` reads several labels)"
    return f"the label {value!r} is no text and no whole number"


def several_labels(value):
    """The tuple of labels of a list, or of a cell with `|` between them; it may be empty."""
    if value is None:
        return None
    parts = value if isinstance(value, list) else str(value).split(_BETWEEN_LABELS)
    labels = tuple(map(one_label, parts))
    if isinstance(value, list) and None in labels:
        raise ValueError(f"{value!r} should be a list of labels")
    return tuple(dict.fromkeys(label for label in labels if label is not None))


def score(value):
    """The number; an empty cell is no score, and not zero."""
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
        raise ValueError(
            f"the score {shown} is not a number such as 1.5 (an empty cell is no score)"
        )
    return number


def parsed_number(text):
    """The number that a cell holds, as JSON would write it; nan where it holds none.

    Python's own `float` also reads 1_000 and digits of other scripts.
    """
    return float(text) if _NUMBER.fullmatch(text.strip()) else math.nan


_QUOTES = "\"'"


def warnings(examples):
    """Lines for the user on `LabelledText`s: how many are odd, and where the first one stands."""
    empty = [example for example in examples if not all(text.strip() for text in example.texts)]
    in_quotes = [example for example in examples if _is_quoted(example.label)]
    lines = []
    if empty:
        lines.append(f"{_where(empty)}: {counted(len(empty), 'text')} without a word.")
    if in_quotes:
        label = in_quotes[0].label
        lines.append(
            f"{_where(in_quotes)}: {counted(len(in_quotes), 'label')} in quotes. A quote is a "
            f"character like any other here, so {label} is another label than {label[1:-1]}."
        )
    lines += _labels_alike(examples)
    lines += _contradictions(examples)
    return [*lines, *examples[0].source.notes()] if examples else lines


def _labels_alike(examples):
    """A line for labels that a person would take for one, and a model takes for several."""
    labels = Counter()
    for example in examples:
        labels.update(example.label if isinstance(example.label, tuple) else [example.label])
    alike = {}
    for label in labels:
        if isinstance(label, str):
            alike.setdefault(_plain(label), []).append(label)
    for found in alike.values():
        if len(found) > 1:
            each = listed(f'"{label}" ({labels[label]:,})' for label in sorted(found))
            yield (
                f"{examples[0].source.name}: the labels {each} differ in case, spaces or the form "
                "of a number alone, and are different labels here."
            )


def _plain(label):
    number = parsed_number(label)
    return "".join(label.split()).casefold() if math.isnan(number) else number


def _contradictions(examples):
    """A line for texts that come back with another label."""
    first_with, others = {}, []
    for example in examples:
        first = first_with.setdefault(example.texts, example)
        if example.label is not None and _as_set(first.label) != _as_set(example.label):
            others.append((first, example))
    if others:
        first, example = others[0]
        yield (
            f"{_where([example for _, example in others])}: {counted(len(others), 'example')} with "
            f"the text of an earlier one (line {first.line}) and another "
            f"{'score' if isinstance(example.label, float) else 'label'}."
        )


def _as_set(label):
    return frozenset(label) if isinstance(label, tuple) else label


def _where(examples):
    first = examples[0]
    from_here = " and later" if len(examples) > 1 else ""
    return f"{first.source.name}, line {first.line}{from_here}"


def _is_quoted(label):
    return isinstance(label, str) and len(label) > 2 and label[0] == label[-1] in _QUOTES
