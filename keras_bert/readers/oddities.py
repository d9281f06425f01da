"""What is odd among labelled texts but no error: a person should know before a model learns it."""

import math
from collections import Counter

from keras_bert.base.formatting import counted, listed
from keras_bert.readers.label_forms import parsed_number

_QUOTES = "\"'"


def oddities(examples):
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
