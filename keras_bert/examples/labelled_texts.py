"""Texts with a label each, from TSV, JSON Lines or (unlabelled) plain lines."""

import re
from collections.abc import Iterator

from keras_bert.errors import InputError
from keras_bert.examples.columns import choose_columns
from keras_bert.examples.given_texts import GivenTexts
from keras_bert.examples.labelled_text import LabelledText
from keras_bert.examples.tables import Table

# JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
_IS_TEXT = re.compile(r"[^\0\ud800-\udfff]*").fullmatch


def open_labelled_texts(data, **options):
    """`LabelledTexts` of a path (or `-`), `GivenTexts` of a sequence.

    `options` are those of `LabelledTexts`; which column holds what can be said of a file only.

    Raises InputError: see there.
    """
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return LabelledTexts(data, **options)
    for name in ("text_column", "label_column", "header"):
        if options.get(name) is not None:
            raise InputError(f"`{name}` is for files; the given texts have no columns.")
    return GivenTexts(data, need_labels=options.get("need_labels", True))


class LabelledTexts:
    """One pass over the examples of a file, or of standard input (`-`), in order and streaming.

    Arguments: `text_column` and `label_column` are names or numbers from 1; `header` says whether
    the first line names the columns; None leaves each to the content. `labels` are those of a
    model, by which its column is recognised. `like` is another file read before: where this one has
    the same form, its columns are the same. With `need_labels` False, a file without labels is read
    too.

    Attributes: `name`, `kind`, `width` (see `Table`), `columns`, `labelled`, and `description`, one
    line for the user that says how the file is read. Raises InputError at opening, or when a bad
    line is reached, which it names.
    """

    def __init__(
        self,
        path,
        *,
        text_column=None,
        label_column=None,
        header=None,
        labels=None,
        like=None,
        need_labels=True,
    ):
        self._table = table = Table(path)
        self._need_labels = need_labels
        self.name, self.kind, self.width = table.name, table.kind, table.width
        if like is not None and self._same_form(like):
            self.columns = like.columns
        else:
            with table.closed_on_error():
                self.columns = choose_columns(
                    table,
                    text=text_column,
                    label=label_column,
                    header=header,
                    labels=labels,
                    need_labels=need_labels,
                )
        self.labelled = self.columns.label is not None
        self.description = self._describe()

    def __iter__(self) -> Iterator[LabelledText]:
        rows = iter(self._table)
        header = next(rows)[1] if self.columns.names is not None else None
        for line, row in rows:
            if row == header:
                raise self.error(
                    line,
                    "the header line again, as where files were joined; take it out here (if the "
                    "first line is no header, say `header=False`).",
                )
            label = self._label(line, row) if self.labelled else None
            yield LabelledText(line, self._text(line, row), label, source=self)

    def error(self, line, message):
        """The InputError that names this file and the line."""
        return self._table.error(line, message)

    def _same_form(self, other):
        if (self.kind, self.width) != (other.kind, other.width) or self.kind == "jsonl":
            return False
        _, first = self._table.sample[0]
        names = other.columns.names
        return names is None or names == tuple(cell.strip() for cell in first)

    def _text(self, line, row):
        column = self.columns.text
        if self.kind != "jsonl":
            return row[column]
        text = row.get(column)
        if not isinstance(text, str):
            raise self.error(line, f'no text under "{column}"; every object needs a string there.')
        if not _IS_TEXT(text):
            raise self.error(
                line, f'a NUL or half a surrogate pair under "{column}"; this is not text.'
            )
        return text

    def _label(self, line, row):
        column = self.columns.label
        label = _as_label(row.get(column)) if self.kind == "jsonl" else row[column].strip()
        if not label and self._need_labels:
            raise self.error(line, f"no label in {self.columns.describe(column)}.")
        return label or None

    def _describe(self):
        columns = self.columns
        if self.kind == "lines":
            return f"{self.name}: plain lines, one text a line"
        header = "with" if columns.names else "without"
        kind = "JSON Lines" if self.kind == "jsonl" else f"TSV {header} a header line"
        label = f"label in {columns.describe(columns.label)}" if self.labelled else "no labels"
        return f"{self.name}: {kind}, text in {columns.describe(columns.text)}, {label}"


def _as_label(value):
    """A JSON value as the string by which the model knows the label; None if it can be none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value.strip() if isinstance(value, str) and _IS_TEXT(value) else None
