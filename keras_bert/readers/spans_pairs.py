"""Pairs of spans with a label each: `{"words": […], "head": [0, 2], "tail": [4, 5], "label": …}`.

Words, text and spans are those of `spans_json`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.readers.settings import parse_fields
from keras_bert.readers.spans import LabelledSpan, ends_of, labelled_span, words_of
from keras_bert.readers.tables import Table
from keras_bert.readers.tfds import PREFIX, TfdsTable

_FIELDS = ("words", "text", "head", "tail", "label")
_BETWEEN_COLUMNS = "|"


@dataclass(frozen=True, slots=True)
class SpanPair:
    """An example: a text with two marked spans, and how they are related or None.

    `head` and `tail` count words, or characters where `words` is None; see `SpannedWords`, which
    has the other attributes.
    """

    line: int
    text: str
    words: tuple[str, ...] | None
    starts: tuple[int, ...] | None
    head: LabelledSpan
    tail: LabelledSpan
    label: str | None = None
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def ends(self):
        """The first character after each word; None without words."""
        return ends_of(self.words, self.starts)

    def error(self, message):
        """The InputError that names the example's place."""
        return self.source.error(self.line, message)


def open_span_pairs(data, *, need_labels=True, fields=None):
    """`SpanPairFile` of a path (or `-`, or `tfds:…`), `GivenSpanPairs` of a sequence.

    Raises InputError: see there.
    """
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return SpanPairFile(data, need_labels=need_labels, fields=fields)
    if fields is not None:
        raise InputError("`fields` is for files; what is given has no columns.")
    return GivenSpanPairs(data, need_labels=need_labels)


class SpanPairFile:
    """One pass over the `SpanPair`s of a JSON Lines file or a prepared tfds split, streaming.

    Args:
        path: a path, `-` for standard input, or `tfds:NAME/CONFIG:SPLIT`.
        need_labels: whether a pair without a label is an error.
        fields: `words=tokens,head=subject,tail=object,label=relation`, the key or feature that
            holds what; a span whose start and end stand apart is `head=START|END`.

    Attributes: `name`, `kind`, and `description`, a line for the user. Raises InputError at
    opening, or when a bad line is reached, which it names.
    """

    def __init__(self, path, *, need_labels=True, fields=None):
        tfds = str(path).startswith(PREFIX)
        self._table = table = TfdsTable(str(path)) if tfds else Table(path)
        self._need_labels = need_labels
        self.name, self.kind = table.name, table.kind
        with table.closed_on_error():
            self._fields = parse_fields(fields, known=_FIELDS)
            if table.width is not None:
                raise table.error(
                    table.sample[0][0],
                    "not a JSON object; pairs of spans are JSON Lines with "
                    '{"words": […], "head": [start, end], "tail": [start, end], "label": "…"}.',
                )
        what = "a prepared tfds split" if tfds else "JSON Lines"
        self.description = f"{self.name}: {what}, pairs of spans"

    def __iter__(self) -> Iterator[SpanPair]:
        """Yields the examples; may be called once."""
        for line, row in self._table:
            named = {**row, **{name: self._value(row, line, name) for name in self._fields}}
            yield span_pair(named, line, source=self, need_label=self._need_labels)

    def _value(self, row, line, name):
        """What a row has in the place that `fields` says."""
        columns = [column.strip() for column in self._fields[name].split(_BETWEEN_COLUMNS)]
        for column in columns:
            if column not in row and (name != "label" or self._need_labels):
                raise self.error(
                    line,
                    f'no "{column}", which `fields` says, among the {self._table.calls_columns} '
                    f"({listed(row)}).",
                )
        values = [row.get(column) for column in columns]
        return values if len(values) > 1 else values[0]

    def error(self, line, message):
        """The InputError that names this file and the line."""
        return self._table.error(line, message)


class GivenSpanPairs:
    """A sequence of dictionaries like the objects of a file; a line is a place in it, from 1."""

    name = "the given pairs"
    kind = "given"
    description = ""

    def __init__(self, rows, *, need_labels=True):
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("Pairs of spans must be dictionaries. Received: something else")
        self._examples = [
            span_pair(row, place, source=self, need_label=need_labels)
            for place, row in enumerate(rows, start=1)
        ]

    def __iter__(self):
        return iter(self._examples)

    def error(self, line, message):
        """The InputError that says which pair is meant."""
        return InputError(f"Pair {line} of those given: {message}")


def span_pair(row, line, *, source, need_label):
    """The `SpanPair` of a JSON object; InputError where it is none (see `labelled_span`)."""
    text, words, starts = words_of(row, line, source=source)
    spans = []
    for name in ("head", "tail"):
        if name not in row:
            raise source.error(
                line, f'no "{name}" among the keys ({listed(row)}); it is [start, end].'
            )
        spans.append(
            labelled_span(row[name], line, source=source, text=text, words=words, what=name)
        )
    label = row.get("label")
    if not isinstance(label, str | None) or (need_label and not (label or "").strip()):
        raise source.error(line, 'no text under "label"; every labelled pair needs one.')
    label = label.strip() or None if label else None
    return SpanPair(line, text, words, starts, *spans, label, source=source)
