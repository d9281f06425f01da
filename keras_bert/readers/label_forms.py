"""What stands in the place of a label: a word, several words, or a score.

Each form takes a cell of a table or a value of a JSON object and gives the label, or None where
there is none; ValueError says what it cannot be.
"""

import contextlib
import math
import numbers
import re

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
