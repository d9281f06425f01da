"""Contexts with choices, one of which is right: JSON Lines, SWAG's CSV or TSV, tfds."""

import csv
import numbers
from dataclasses import dataclass, field
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, quoted
from keras_bert.readers.labels import is_text
from keras_bert.readers.settings import parse_fields
from keras_bert.readers.tables import Table
from keras_bert.readers.tfds import PREFIX, TfdsTable

_CONTEXTS = ("context", "sent1", "question", "premise", "prompt", "text")
_LISTS = ("choices", "endings", "options", "answers")
_NUMBERED = ("ending", "choice", "option", "answer")  # ending0 or ending1, and so on
_LABELS = ("label", "answer", "gold")
# SWAG: the beginning of the second sentence, which every ending goes on with.
_BEGINNING = "sent2"
_BETWEEN_COLUMNS = "|"


@dataclass(frozen=True, slots=True)
class LabelledChoices:
    """An example: a context, two or more choices, and the place of the right one from 0, or None.

    `line` is where it stands in its `source`, from 1.
    """

    line: int
    context: str
    choices: tuple[str, ...]
    label: int | None
    source: Any = field(default=None, compare=False, repr=False)

    def error(self, message):
        """The InputError that names the example's place."""
        return self.source.error(self.line, message)


def open_labelled_choices(data, **options):
    """`ChoicesFile` of a path (or `-`, or `tfds:…`), `GivenChoices` of a sequence.

    Raises InputError: see there.
    """
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return ChoicesFile(data, **options)
    for name in ("header", "fields"):
        if options.get(name) is not None:
            raise InputError(f"`{name}` is for files; what is given has no columns.")
    return GivenChoices(data, need_labels=options.get("need_labels", True))


class GivenChoices:
    """A sequence of (context, choices) or (context, choices, label), as `ChoicesFile` gives them.

    Raises InputError for what is no such example.
    """

    name = "the given examples"
    kind = "given"
    description = ""

    def __init__(self, data, *, need_labels=True):
        self._need_labels = need_labels
        self._examples = [
            _example(self, place, *item[:2], item[2] if len(item) > 2 else None, need_labels)
            for place, item in enumerate(data, start=1)
        ]

    def __iter__(self):
        return iter(self._examples)

    def error(self, line, message):
        """The InputError that says which example is meant."""
        return InputError(f"Example {line} of those given: {message}")


class ChoicesFile:
    """One pass over the examples of a file, or of standard input (`-`), in order and streaming.

    JSON Lines have a context, a list of choices and the number of the right one, from 0. A table
    (TSV, or CSV as SWAG's is) has a header with such names, and a column a choice, of which the
    last ones may be empty.

    Args:
        path: a path, `-`, or `tfds:NAME/CONFIG:SPLIT`.
        fields: `context=question,choices=option_a|option_b,label=answer`; None is by the names.
        header: False says that the first line of a table is no header.
        need_labels: whether an example without a label is an error.

    Attributes: `name`, `kind`, and `description`, a line for the user. Raises InputError at
    opening, or when a bad line is reached, which it names.
    """

    def __init__(self, path, *, fields=None, header=None, need_labels=True):
        tfds = str(path).startswith(PREFIX)
        self._table = TfdsTable(str(path)) if tfds else Table(path)
        self._need_labels = need_labels
        self.name, self.kind = self._table.name, self._table.kind
        with self._table.closed_on_error():
            given = parse_fields(fields, known=("context", "choices", "label"))
            self._begin(given, header)

    def _begin(self, given, header):
        line, first = self._table.sample[0]
        self._names = None
        if self._table.width is not None:
            cells = first if self.kind == "tsv" else next(csv.reader(first))
            self._names = [cell.strip() for cell in cells]
            if self.kind == "lines" and len(cells) > 1:
                self.kind = "csv"
            if header is False:
                self._names = [str(number) for number in range(1, len(cells) + 1)]
        names = list(first) if self._names is None else self._names
        self._has_header = self._names is not None and header is not False
        self._context, self._begins = _context(names, given)
        self._choices = _choices(names, given)
        self._label = given.get("label") or next((n for n in _LABELS if n in names), None)
        missing = [
            what
            for what, found in (
                ("context", self._context),
                ("choices", self._choices),
                ("label", self._label or not self._need_labels),
            )
            if not found
        ]
        wanted = (self._context, self._begins, *self._choices, self._label)
        unknown = [name for name in wanted if name and name not in names]
        if missing or unknown:
            raise self._table.error(
                line,
                f"no {listed(missing or unknown)} among the columns ({quoted(names)}); an example "
                "has a context, choices and a label: say which they are with `fields`, "
                "context=…,choices=…,label=….",
            )
        self.description = self._describe()

    def __iter__(self):
        for line, row in self._rows():
            context = self._text(line, row, self._context)
            choices = self._texts(line, row)
            if self._begins:
                begin = self._text(line, row, self._begins)
                choices = [f"{begin} {choice}".strip() for choice in choices]
            label = row.get(self._label) if self._label else None
            yield _example(self, line, context, choices, label, self._need_labels)

    def error(self, line, message):
        """The InputError that names this file and the line."""
        return self._table.error(line, message)

    def _rows(self):
        """Yields (line, {name: cell or value})."""
        rows = iter(self._table)
        if self.kind == "csv":
            lines = (row[0] + "\n" for _, row in rows)
            reader = csv.reader(lines)
            rows = ((reader.line_num, cells) for cells in reader)
        if self._has_header:
            next(rows)
        for line, row in rows:
            if self._names is None:
                yield line, row
                continue
            if self.kind == "csv" and not row:
                continue
            if len(row) != len(self._names):
                raise self.error(
                    line,
                    f"{counted(len(row), 'column')}, but the first line has {len(self._names)}.",
                )
            yield line, dict(zip(self._names, row, strict=True))

    def _texts(self, line, row):
        if len(self._choices) == 1:
            found = row.get(self._choices[0])
            if not isinstance(found, list):
                raise self.error(line, f'no list of choices under "{self._choices[0]}".')
            return found
        choices = [row.get(name) for name in self._choices]
        while choices and not choices[-1]:  # of examples with fewer choices
            choices.pop()
        return choices

    def _text(self, line, row, name):
        text = row.get(name)
        if not isinstance(text, str):
            raise self.error(line, f'no text under "{name}".')
        return text

    def _describe(self):
        kind = {"jsonl": "JSON Lines", "tfds": "a prepared tfds split"}.get(
            self.kind, self.kind.upper()
        )
        label = f'label in "{self._label}"' if self._label else "no labels"
        begin = f' after "{self._begins}"' if self._begins else ""
        return (
            f'{self.name}: {kind}, context in "{self._context}", choices in '
            f"{quoted(self._choices)}{begin}, {label}"
        )


def _context(names, given):
    """-> (the column of the context, that of the choices' common beginning or None)."""
    if "context" in given:
        return given["context"], None
    context = next((name for name in _CONTEXTS if name in names), None)
    return context, _BEGINNING if context == "sent1" and _BEGINNING in names else None


def _choices(names, given):
    """The column of a list of choices, or the columns with a choice each."""
    if "choices" in given:
        return tuple(name.strip() for name in given["choices"].split(_BETWEEN_COLUMNS))
    for stem in _NUMBERED:
        numbered = [name for name in names if name.removeprefix(stem).isdecimal()]
        numbered = [name for name in numbered if name.startswith(stem)]
        if len(numbered) > 1:
            return tuple(sorted(numbered, key=lambda name: int(name.removeprefix(stem))))
    return tuple(name for name in _LISTS if name in names)[:1]


def _example(source, line, context, choices, label, need_labels):
    """The `LabelledChoices`; InputError, with its place, where it cannot be one."""
    if isinstance(choices, str) or len(choices) < 2:
        raise source.error(line, "an example needs two or more choices.")
    for text in (context, *choices):
        if not isinstance(text, str) or not is_text(text):
            raise source.error(line, f"{text!r} is no text; context and choices should be texts.")
    if not all(choice.strip() for choice in choices):
        raise source.error(line, "a choice without a word.")
    number = _number(label)
    if number is None and (need_labels or label not in (None, "")):
        shown = "no label" if label in (None, "") else f"the label {label!r}"
        raise source.error(line, f"{shown}; it should be the number of the right choice, from 0.")
    if number is not None and number >= len(choices):
        raise source.error(
            line, f"the label is {number}, but there are {len(choices)} choices, numbered from 0."
        )
    return LabelledChoices(line, context, tuple(choices), number, source=source)


def _number(label):
    if isinstance(label, str) and label.strip().isdecimal():
        return int(label)
    is_whole = isinstance(label, numbers.Integral) and not isinstance(label, bool)
    return int(label) if is_whole and label >= 0 else None
