"""Labels as text, whatever a file, a table or Python has them as, and what counts as missing.

A label is a word, several words, or a score. Each type is a function from a value to the label. It
raises ValueError for a value of another type.
"""

import ast
import contextlib
import functools
import math
import numbers
import re

from keras_bert.base.files import NotJson
from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.sources import is_text, parsed_json

# The cells of a CSV that pandas reads as missing, besides empty ones.
NA = frozenset(
    "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan"
    "|null".split("|")
)
BETWEEN_LABELS = "|"
QUOTES = "\"'"
LISTS = (list, tuple, set, frozenset, dict)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# A number as one writes it: without leading zeros, an exponent, or zeros at its end but ".0".
_PLAIN = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0|(\.[0-9]*[1-9]))?")
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|\d\d?:\d\d.*"
)
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
_TRUTH = {"true": "True", "false": "False"}
_BITS = {"0": 0, "1": 1, "False": 0, "True": 1}
# Python joins strings that only a space is between, as numpy prints them.
_WITHOUT_COMMA = re.compile(r"""(['"])\s+['"]""")


def is_missing(value, *, na):
    """Whether there is no text or label; `na` says that a cell such as NA has none."""
    if isinstance(value, str):
        return (na and value in NA) or not value or value.isspace()
    return value is None or (isinstance(value, float) and math.isnan(value))


def parsed_number(text):
    """The number in a cell, as JSON would write it; nan if it is not a number.

    Python's own `float` also reads 1_000 and digits of other scripts.
    """
    return float(text) if _NUMBER.fullmatch(text.strip()) else math.nan


def is_number(value):
    """Whether a value is a number, or a cell with one."""
    return _NUMBER.fullmatch(str(value).strip()) is not None


def has_decimal_comma(text):
    """Whether a cell has a number such as 1,5."""
    return _DECIMAL_COMMA.fullmatch(text.strip()) is not None


def one_label(value):
    """The label as it is written, a string; None for a missing one.

    Truth values (true, True, TRUE) are written as Python prints them. What a number is called
    depends on the other labels: see `named_labels`.

    Raises ValueError for a list, a dictionary, Infinity, and what is neither text nor number.
    """
    if isinstance(value, str):
        return _label_of_text(value)
    if is_missing(value, na=False):
        return None
    if isinstance(value, numbers.Real):
        if not isinstance(value, int) and math.isinf(value):
            raise ValueError(f"{value!r} is not a label. Expected a word or a whole number.")
        return _label_of_text(str(value))
    if isinstance(value, LISTS):
        raise _list_as_label(value, value)
    if isinstance(value, bytes):
        raise ValueError(f"{value!r} are bytes that are not UTF-8.")
    raise ValueError(f"{value!r} is neither a text nor a number.")


@functools.lru_cache(maxsize=4096)
def _label_of_text(text):
    label = text.strip()
    if not is_text(label):
        raise ValueError("A label contains a NUL or half a surrogate pair.")
    parts = label
    with contextlib.suppress(ValueError):  # "[other]" is a word
        parts = list_of(label)
    if not isinstance(parts, str):
        raise _list_as_label(text, parts)
    return _TRUTH.get(label.casefold(), label or None)


def _list_as_label(value, parts):
    """The ValueError for a list in place of one label."""
    if are_fractions(parts.values() if isinstance(parts, dict) else parts):
        return ValueError(
            f"{value!r} could be probabilities or scores of several labels, which are not read as "
            "labels. Give the most probable label alone."
        )
    return ValueError(
        f"{value!r} is a {type(parts).__name__}, and not a label (`multi_label=True` or "
        "--multi-label reads several labels)."
    )


def are_fractions(parts):
    """Whether there are numbers among some values, and one of them is not whole."""
    return any(isinstance(part, float) and part != int(part) for part in parts)


def named_labels(labels, model_labels=()):
    """{a label as it is written: its name} of all labels of a column.

    If all are plain numbers, `1.0` is called `1`, as a table has the whole numbers of a column with
    gaps; 007, 1.10 and 1e5 are not plain. A label that the model has is called as the model does.
    Any other is called as it is written.
    """
    ours = {_usual_name(name): name for name in model_labels} | {
        name: name for name in model_labels
    }
    are_numbers = are_plain_numbers(labels)
    names = {label: _usual_name(label) if are_numbers else label for label in labels}
    return {x: ours.get(x, ours.get(_usual_name(x), name)) for x, name in names.items()}


def are_plain_numbers(labels):
    """Whether all labels are plain numbers; see `named_labels`."""
    return all(map(_PLAIN.fullmatch, labels))


def fraction_among(labels):
    """The first label that is not a whole number if all are plain numbers, else None."""
    if not are_plain_numbers(labels):
        return None
    return next((label for label in labels if _PLAIN.fullmatch(label)[2]), None)


def _usual_name(label):
    number = _PLAIN.fullmatch(label)
    if number is not None:
        return number[1] + (number[2] or "")
    return _TRUTH.get(label.casefold(), label)


def label_or_none(value, form=one_label):
    """The label of a value, of a type of label; None if it has none or is of another type."""
    with contextlib.suppress(ValueError):  # raised again when its row is read
        return form(value)


def several_labels(value, names=None, *, separator=BETWEEN_LABELS):
    """The tuple of labels of a list, a tuple, a set, a dictionary of 0 and 1, or a cell of these.

    A cell may also have the separator between its labels. An empty value has none.

    Args:
        value: one of these.
        names: the labels of a list of 0 and 1, one for each number, or None.
        separator: what is between the labels of a cell.
    """
    parts = list_of(value)
    if isinstance(parts, str):
        parts = [part for part in parts.split(separator) if part.strip()]
    elif isinstance(parts, dict):
        if are_fractions(parts.values()):
            raise _list_as_label(value, parts)
        if None in (bits := [*map(bit, parts.values())]):
            raise ValueError(f"{value!r} should have 0 or 1 for each label.")
        parts = [name for name, is_on in zip(parts, bits, strict=True) if is_on]
    elif not isinstance(parts, LISTS):
        parts = [] if parts is None else [parts]
    elif isinstance(parts, set | frozenset):
        parts = sorted(parts, key=str)
    elif names is not None and is_vector(parts) and len(names) == len(parts):
        parts = [name for name, is_on in zip(names, parts, strict=True) if is_on]
    if isinstance(list_of(value), LISTS) and are_fractions(parts):
        raise _list_as_label(value, parts)
    labels = [None if isinstance(part, LISTS) else one_label(part) for part in parts]
    if None in labels:
        raise ValueError(f"{value!r} should be a list of labels.")
    return tuple(dict.fromkeys(labels))


def is_vector(parts):
    """Whether several labels are given as a list of 0 and 1."""
    are_several = isinstance(parts, list | tuple) and len(parts) > 1
    return are_several and all(isinstance(x, numbers.Real) and x in (0, 1) for x in parts)


def bit(value):
    """0 or 1, of a number, a truth value or a cell; None for any other value."""
    label = label_or_none(value)
    return None if label is None else _BITS.get(_usual_name(label))


def list_of(value):
    """The list, or dictionary, that is written into a cell as JSON or Python; others as they are.

    A dictionary of "choices" alone, as Label Studio writes it, is their list.

    Raises ValueError if a cell begins as a list and cannot be parsed as one.
    """
    if isinstance(value, dict) and [*value] == ["choices"]:
        return value["choices"]
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "(", "{"):
        return value
    parts = None
    try:
        parts = parsed_json(value)
    except NotJson:
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            parts = None if _WITHOUT_COMMA.search(value) else ast.literal_eval(value.strip())
    if not isinstance(parts, LISTS):
        raise ValueError(f"{value!r} should be a list, as JSON or Python writes it.")
    return list_of(parts)


def score(value):
    """The number; an empty cell has no score, which is not zero."""
    if is_missing(value, na=False):
        return None
    number = math.nan
    if isinstance(value, str):
        number = parsed_number(value)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number):
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        if isinstance(value, str) and has_decimal_comma(value):
            raise ValueError(f"{shown} has a comma. Write a number with a point, such as 1.5.")
        raise ValueError(f"{shown} is not a score, a number such as 1.5. Leave it empty for none.")
    return number


def sorted_labels(labels):
    """The labels in order: numbers by value, then words alphabetically."""

    def order(label):
        number = parsed_number(label)
        return (1, 0, label) if math.isnan(number) else (0, number, label)

    return sorted(labels, key=order)


def unknown_label(label, model_labels):
    """The part of a message that says that a model does not have a label."""
    bare = label.strip(QUOTES)
    quotes = f' Without its quotes it would be "{bare}".' if bare in model_labels else ""
    return f'unknown label "{label}". The model\'s labels are {quoted(model_labels)}.{quotes}'


def unknown_labels_note(name, unknown):
    """A line for the user on the labels of a file, a `Counter`, that the model does not have."""
    counts = listed(f'"{label}" ({count:,})' for label, count in unknown.most_common())
    return f"{name}: labels that the model does not have, counted as errors: {counts}."
