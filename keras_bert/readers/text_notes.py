"""Lines for the user on unusual texts and labels of examples."""

import math
import re
import unicodedata
from collections import Counter, defaultdict

from keras_bert.base.formatting import counted, listed
from keras_bert.readers.examples import first_location, location_of
from keras_bert.readers.labels import parsed_number

_IN_QUOTES = re.compile(r"""(['"]).+\1""", re.DOTALL)
_FEW = 3  # labels, each of which may have a single example


def text_warnings(examples):
    """Lines for the user on unusual `LabelledText`s: how many there are, and the first line."""
    labels = Counter(label for example in examples for label in example.labels)
    empty, in_quotes, lines = [], [], []
    for example in examples:
        if not all(map(str.strip, example.texts)):
            empty.append(example)
        if isinstance(example.label, str) and _IN_QUOTES.fullmatch(example.label):
            in_quotes.append(example)
    if empty:
        lines.append(f"{first_location(empty)}: {counted(len(empty), 'text')} without a word.")
    if in_quotes:
        label = in_quotes[0].label
        lines.append(
            f"{first_location(in_quotes)}: {counted(len(in_quotes), 'label')} in quotes. Quotes "
            f"are ordinary characters here: {label} and {label[1:-1]} are different labels."
        )
    alike = defaultdict(list)
    for label in filter(lambda label: isinstance(label, str), labels):
        number = parsed_number(label)
        is_number = math.isfinite(number)
        alike[number if is_number else _look_of(label)].append(label)
    if len(labels) == len(examples) > _FEW and all(isinstance(label, str) for label in labels):
        lines.append(
            f"{examples[0].source.name}: each of the {len(labels):,} labels occurs only once. "
            "Expected labels that several examples have; see the first example."
        )
    for key, group in alike.items():
        if len(group) > 1:
            counts = listed(f'"{label}" ({labels[label]:,})' for label in sorted(group))
            is_look = isinstance(key, str)
            look = "look the same but for case or spaces" if is_look else "are equal as numbers"
            lines.append(
                f"{examples[0].source.name}: the labels {counts} {look}, and are different labels "
                "here."
            )
    lines += contradictions(examples)
    return [*lines, *examples[0].source.notes()] if examples else lines


def _look_of(label):
    """A text that labels share if they look the same but for case and spaces."""
    return unicodedata.normalize("NFC", "".join(label.split()).casefold())


def contradictions(examples, *, noun="example"):
    """A line for texts that are repeated with another label; `noun` says what the examples are."""
    first_with, others = {}, []
    for example in examples:
        first = first_with.setdefault(example.texts, example)
        if example.label is not None and {*first.labels} != {*example.labels}:
            others.append(example)
    if others:
        example = others[0]
        has_or_have = "has" if len(others) == 1 else "have"
        yield (
            f"{first_location(others)}: {counted(len(others), noun)} {has_or_have} the text of an "
            f"earlier one ({location_of(first_with[example.texts])}), but another "
            f"{'score' if isinstance(example.label, float) else 'label'}."
        )
