"""Texts, or pairs of texts, with labels: from TSV, JSON Lines, plain lines, tfds or Python."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.readers.columns import Wanted, choose_columns
from keras_bert.readers.glue import glue_columns, glue_task
from keras_bert.readers.labels import (
    is_text,
    missing_label,
    one_label,
    score,
    several_labels,
)
from keras_bert.readers.settings import parse_fields
from keras_bert.readers.tables import Table
from keras_bert.readers.tfds import PREFIX, TfdsTable


@dataclass(frozen=True, slots=True)
class LabelledText:
    """An example: a text, or two with `text_b`, and the label or None where nobody gave one.

    A label is a word; where a row may have several of them, a tuple of words; and where it is a
    score, a float. `line` is where the example stands in its `source`, from 1.
    """

    line: int
    text: str
    label: str | tuple | float | None
    text_b: str | None = None
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def texts(self):
        """The one or two texts."""
        return (self.text,) if self.text_b is None else (self.text, self.text_b)

    def error(self, message):
        """The InputError that names the example's place."""
        return self.source.error(self.line, message)


class GivenTexts:
    """A sequence of strings or of (text, label), with the interface of `LabelledTexts`.

    Of pairs of texts, a sequence of (text, text) or (text, text, label). What a file calls a line
    is the place in the sequence, from 1.

    Args:
        data: the sequence.
        need_labels: whether each must have a label.
        texts: the names of an example's texts, one or two.
        form: what a label is: a function of `label_forms`.

    Raises:
        ValueError: something else than strings and tuples of these.
        InputError: a label is missing, or cannot be.
    """

    name = "the given texts"
    kind = "given"

    description = ""

    def __init__(self, data, *, need_labels=True, texts=("text",), form=one_label):
        self._examples = [
            self._example(place, item, texts, form) for place, item in enumerate(data, start=1)
        ]
        for example in self._examples:
            if need_labels and example.label is None:
                raise example.error(
                    "no label; give a pair of a text and its label."
                    if len(texts) == 1
                    else "no label; give two texts and their label."
                )

    def __iter__(self):
        return iter(self._examples)

    def notes(self):
        """Nothing is left out."""
        return []

    def error(self, line, message):
        """The InputError that says which text is meant."""
        return InputError(f"Text {line} of those given: {message}")

    def _example(self, place, item, names, form):
        parts = (item,) if isinstance(item, str) else tuple(item)
        texts, label = parts[: len(names)], (*parts[len(names) :], None)[0]
        if not (
            len(names) <= len(parts) <= len(names) + 1
            and all(isinstance(text, str) for text in texts)
        ):
            what = "strings or pairs of a text and its label"
            if len(names) > 1:
                what = "pairs of strings, or two strings and their label"
            raise ValueError(f"Texts must be {what}. Received: {item!r}")
        try:
            value = form(label)
        except ValueError as error:
            raise self.error(place, f"{error}.") from None
        if form is one_label and value is None and not isinstance(label, str | None):
            raise self.error(place, f"{missing_label(label)}.")
        return LabelledText(place, texts[0], value, *texts[1:], source=self)


TEXT = ("text",)
PAIR = ("text_a", "text_b")


def open_labelled_texts(data, **options):
    """`LabelledTexts` of a path (or `-`, or `tfds:…`), `GivenTexts` of a sequence.

    `options` are those of `LabelledTexts`; which column holds what can be said of a file only.

    Raises InputError: see there.
    """
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return LabelledTexts(data, **options)
    for name in ("text_column", "label_column", "header", "fields", "glue"):
        if options.get(name) is not None:
            raise InputError(f"`{name}` is for files; the given texts have no columns.")
    return GivenTexts(
        data,
        need_labels=options.get("need_labels", True),
        texts=options.get("texts", TEXT),
        form=options.get("form", one_label),
    )


class LabelledTexts:
    """One pass over the examples of a file, or of standard input (`-`), in order and streaming.

    Args:
        path: a path, `-`, or `tfds:NAME/CONFIG:SPLIT`.
        texts: the names of an example's texts: `TEXT` or `PAIR`.
        form: what a label is: a function of `label_forms`.
        text_column, label_column: names, or numbers from 1; None leaves them to the content.
        header: whether the first line names the columns; None leaves it to the content.
        fields: all of that in one: `text=sentence,label=label`.
        glue: the name of a task of GLUE, of which the file is one.
        labels: those of a model, by which its column is recognised.
        schema: a file read before; a file of the same form has the same columns.
        need_labels: whether a row without a label is an error. Rows without a score are none: they
            are left out and counted.

    Attributes: `name`, `kind`, `width` (see `Table`), `columns`, `labelled`, `unscored` (how many
    rows were left out so far), and `description`, one line for the user that says how the file is
    read. Raises InputError at opening, or when a bad line is reached, which it names.
    """

    def __init__(
        self,
        path,
        *,
        texts=TEXT,
        form=one_label,
        text_column=None,
        label_column=None,
        header=None,
        fields=None,
        glue=None,
        labels=None,
        schema=None,
        need_labels=True,
    ):
        given, said_with = _given(texts, text_column, label_column, fields)
        task = glue_task(glue) if glue is not None else None
        if task is not None:
            _check_form(task, texts, form)
            path = task.file(path, labelled=need_labels)
        self._table = table = _open(path, skip_odd=task is not None and need_labels)
        self._form = form
        self._need_labels = need_labels
        self.unscored = 0
        self.name, self.kind, self.width = table.name, table.kind, table.width
        if schema is not None and self._same_form(schema) and not given:
            self.columns = schema.columns
        else:
            with table.closed_on_error():
                wanted = Wanted(
                    texts=texts,
                    given=given,
                    said_with=said_with,
                    header=header,
                    labels=labels if form is one_label else None,
                    need_labels=need_labels,
                    scores=form is score,
                    several=form is several_labels,
                )
                known = glue_columns(table, task, labelled=need_labels) if task else None
                self.columns = known or choose_columns(table, wanted)
        self.labelled = self.columns.label is not None
        self.description = self._describe()

    def __iter__(self) -> Iterator[LabelledText]:
        rows = iter(self._table)
        header = next(rows)[1] if self.columns.names is not None else None
        scored = 0
        for line, row in rows:
            if row == header:
                raise self.error(
                    line,
                    "the header line again, as where files were joined; take it out here (if the "
                    "first line is no header, say `header=False`).",
                )
            label = self._label(line, row) if self.labelled else None
            if label is None and self._need_labels:  # a score: any other would be an error
                self.unscored += 1
                continue
            scored += 1
            texts = [self._text(line, row, column) for column in self.columns.texts]
            yield LabelledText(line, texts[0], label, *texts[1:], source=self)
        if self.unscored and not scored:
            raise InputError(
                f"{self.name} has no score in {self.columns.describe(self.columns.label)} of any "
                "row; there is nothing to train on or to measure."
            )

    def notes(self):
        """Lines for the user on what was left out, when all has been read."""
        lines = []
        if self.unscored:
            lines.append(
                f"{self.name}: {counted(self.unscored, 'row')} without a score, left out (no score "
                "is not a score of zero)."
            )
        if self._table.skipped:
            lines.append(
                f"{self.name}: {counted(self._table.skipped, 'broken line')} (another number of "
                "columns), left out as GLUE's own readers do."
            )
        return lines

    def error(self, line, message):
        """The InputError that names this file and the line."""
        return self._table.error(line, message)

    def _same_form(self, other):
        if (self.kind, self.width) != (other.kind, other.width) or self.width is None:
            return False
        _, first = self._table.sample[0]
        names = other.columns.names
        return names is None or names == tuple(cell.strip() for cell in first)

    def _text(self, line, row, column):
        if self.width is not None:
            return row[column]
        text = row.get(column)
        if not isinstance(text, str):
            raise self.error(line, f'no text under "{column}"; every object needs a string there.')
        if not is_text(text):
            raise self.error(
                line, f'a NUL or half a surrogate pair under "{column}"; this is not text.'
            )
        return text

    def _label(self, line, row):
        column = self.columns.label
        value = row[column] if self.width is not None else row.get(column)
        try:
            label = self._form(value)
        except ValueError as error:
            raise self.error(line, f"{error}.") from None
        if label is None and self._need_labels and self._form is not score:
            raise self.error(line, f"{missing_label(value)} in {self.columns.describe(column)}.")
        return label

    def _describe(self):
        columns = self.columns
        if self.kind == "lines":
            return f"{self.name}: plain lines, one text a line"
        header = "with" if columns.names else "without"
        kind = {"jsonl": "JSON Lines", "tfds": "a prepared tfds split"}.get(
            self.kind, f"TSV {header} a header line"
        )
        what = "score" if self._form is score else "label"
        where = " and ".join(map(columns.describe, columns.texts))
        texts = f"{'texts' if len(columns.texts) > 1 else 'text'} in {where}"
        label = f"{what} in {columns.describe(columns.label)}" if self.labelled else f"no {what}s"
        return f"{self.name}: {kind}, {texts}, {label}"


def _open(path, *, skip_odd):
    if str(path).startswith(PREFIX):
        return TfdsTable(str(path))
    return Table(path, skip_odd=skip_odd)


def _check_form(task, texts, form):
    """Raises InputError where a task of GLUE has other texts, or labels in place of scores."""
    wanted, here = (
        f"{'two texts' if count > 1 else 'one text'} and a {'score' if scores else 'label'}"
        for count, scores in (
            (len(task.texts), not task.labels),
            (len(texts), form is score),
        )
    )
    if wanted != here:
        raise InputError(
            f"GLUE's {task.name} is of the kind {task.kind}, with {wanted} a row; here the task "
            f"reads {here}."
        )


def _given(texts, text_column, label_column, fields):
    """-> ({name of a text, or "label": its column}, {that name: the argument that says it})."""
    names = (*texts, "label")
    given = parse_fields(fields, known=names)
    said_with = dict.fromkeys(names, "fields")
    for name, column in (("text", text_column), ("label", label_column)):
        if len(texts) == 1:
            said_with[name] = f"{name}_column"
        if column is not None and name in given:
            raise InputError(f"Give either `{name}_column`, or `fields` with {name}=…, not both.")
        if column is not None:
            given[name] = column
    return given, said_with
