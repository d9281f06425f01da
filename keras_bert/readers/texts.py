"""Texts, or pairs of texts, with labels: from files, tables and Python, all in one way.

A source becomes a table of named columns, of which the columns of the texts and of the label are
chosen. Rows without a text or a label are left out and counted.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.columns import LABEL, Columns, parse_fields
from keras_bert.readers.examples import Example, ExampleSource, Missing, first_location
from keras_bert.readers.glue import glue_columns, glue_task
from keras_bert.readers.labels import (
    BETWEEN_LABELS,
    bit,
    is_missing,
    is_vector,
    list_of,
    names_of_model,
    one_label,
    score,
    several_labels,
)
from keras_bert.readers.sources import is_file, is_text
from keras_bert.readers.tables import open_table

TEXT = ("text",)
PAIR = ("text_a", "text_b")
# What SNLI and MNLI write where the annotators did not agree on a label.
_GOLD, _NO_GOLD = "gold_label", "-"
_IN_QUOTES = re.compile(r"""(['"]).+\1""", re.DOTALL)
_LIKE_BITS = "looks like a 0 or 1 for each label, and not like a list of labels."
_NEEDS_NAMES = Naming(
    "Give their names as {labels}, in this order, or a column for each label as {label_columns}."
)


@dataclass(slots=True)
class LabelledText(Example):
    """A text, or two with `text_b`, and the label or None where nobody gave one.

    A label is a word; where an example may have several of them, a tuple of words; and where it is
    a score, a float.
    """

    text: str
    label: str | tuple | float | None
    text_b: str | None = None

    @property
    def texts(self):
        return (self.text,) if self.text_b is None else (self.text, self.text_b)

    @property
    def unit(self):
        return self.texts

    @property
    def labels(self):
        """The label alone, or the several labels."""
        return self.label if isinstance(self.label, tuple) else (self.label,)


class TextSource(ExampleSource):
    """The `LabelledText`s of a source.

    The items of a sequence are strings or (text, label); for pairs of texts, (text, text) or (text,
    text, label).

    Args:
        data, common: see `ExampleSource`.
        texts: the names of an example's texts: `TEXT` or `PAIR`.
        form: the type of label: `one_label`, `several_labels` or `score`.
        label_names: what the settings call `labels`: those of lists of 0 and 1.

    The others are settings, whose help says what they are (`LabelSettings`). Columns are names, or
    numbers from 1, and a text of several is `subject+body`; lists of names may also be strings with
    commas between them.

    Attributes: `columns` (a `Columns`), `unlabelled` (how many rows without a label were left out
    so far) and those of `ExampleSource`.
    """

    def __init__(
        self,
        data,
        *,
        texts=TEXT,
        form=one_label,
        text_column=None,
        label_column=None,
        label_columns=None,
        label_names=None,
        label_separator=None,
        header=None,
        fields=None,
        keep_na=False,
        glue=None,
        labels=None,
        schema=None,
        need_labels=True,
        **common,
    ):
        schema = dict(schema or {})
        label_columns, label_names = _names_of(label_columns), _names_of(label_names)
        names = {"label_columns": label_columns, "labels": label_names}
        _check_several(form, names, label_separator)
        self._label_names = label_names or schema.pop("label_names", None)
        (separator,) = schema.pop("label_separator", [None])
        self._separator, self._header = label_separator or separator, header
        given = {"text_column": text_column, "label_column": label_column}
        given["label_columns"] = label_columns
        self.columns = Columns(
            roles=texts,
            form=form,
            given=_given_columns(texts, fields, given),
            remembered=schema,
            of_model=tuple(labels or ()) if form is not score else (),
            need_labels=need_labels,
            na=not keep_na,
        )
        self._task = glue_task(glue) if glue is not None and is_file(data) else None
        self._name_of, self._label_of = names_of_model(labels), {}  # of cells with one label
        self._na_labels, self._vectors, self._unclear, self._has_bars = Counter(), 0, None, False
        self._rows = None
        of_files = {**given, "header": header, "fields": fields, "glue": glue}
        common |= {"labels": labels, "need_labels": need_labels}
        super().__init__(data, of_files=of_files, **common)

    def _open(self, data):
        texts, task = self.columns.roles, self._task
        if task is not None:
            task.check_form(texts, is_score=self.columns.is_score)
            data = task.file(data, labelled=self._need_labels)
        return open_table(
            data,
            item="text",
            as_record=lambda item: _as_record(item, texts),
            least=len(texts) + self._need_labels,
            noun="pairs of texts" if len(texts) > 1 else "labelled text",
            parts=f"{'two texts' if len(texts) > 1 else 'a text'} and a label",
            header=self._header,
            header_names=self.columns.header_names if task is None else task.column_names,
            has_literal_quotes=task is not None,
            skip_invalid=task is not None and self._need_labels,
        )

    def _examples_of(self, table):
        columns, self._na = self.columns, table.are_cells and self.columns.na
        self._are_items = self.kind in ("given", "lines")
        self._may_be_no_text = not (table.are_cells or self._are_items)
        if self.kind == "given":
            columns.texts, columns.label = tuple((name,) for name in columns.roles), (LABEL,)
        elif self.kind == "lines":
            columns.texts = (("1",),)
        elif self._task is not None and table.are_cells:
            chosen = glue_columns(table, self._task, labelled=self._need_labels)
            columns.texts, columns.label = chosen
        else:
            columns.choose(table)
        if not (table.are_cells and self._need_labels):
            self._task = None  # whose labels are not checked
        if not self._are_items:
            schema = dict(zip(columns.roles, map(list, columns.texts), strict=True))
            schema |= {LABEL: [*columns.label], "label_names": self._label_names}
            schema["label_separator"] = [self._separator] if self._separator else []
            self.schema = {part: names for part, names in schema.items() if names}
        self.is_chosen_by_content = bool(columns.by_content)
        self._is_gold = _GOLD in [name.casefold() for name in columns.label]
        self.how = self._how()
        return self._read()

    def row_of(self, example):
        """The columns of an example by name; None where the source is no table, or not kept."""
        if self.kind == "table":  # in memory
            if self._rows is None:
                self._rows = dict(self._records)
            return self._rows[example.line]
        return None if self._are_items else example.row

    def column_names(self):
        """The names of the table's columns, of JSON the keys of all objects."""
        return self._records.all_names()

    def arrow_columns(self, rows):
        """{name: an array of Arrow} of a table of Arrow, for the rows with these numbers from 1."""
        return {} if self._records.stored is None else self._records.stored.columns(rows)

    @property
    def unlabelled(self):
        return sum(len(lines) for key, lines in self._left_out.items() if key[0] != "a text")

    def _more_notes(self):
        for label, count in self._na_labels.most_common():
            yield (
                f'{counted(count, "row")} with "{label}" in {self._described(self.columns.label)}, '
                "which is read as no label, as in pandas. If it is the name of a class, set "
                "`keep_na=True` (--keep-na)."
            )
        if self._records.skipped:
            yield (
                f"{counted(self._records.skipped, 'invalid line')} (another number of columns), "
                "left out as GLUE's own readers do."
            )

    def _read(self):
        yield from self._each(self._records, self._example)
        if self._need_labels and self._count and self._vectors == self._count:
            raise InputError.naming("{}: each list {} {}", self.name, _LIKE_BITS, _NEEDS_NAMES)
        if self._unclear and not self._has_bars:
            line, value = self._unclear
            raise self.error(
                line,
                Naming(
                    '"{}" could be one label or several, and no cell has | between labels. Set '
                    '{label_separator=","} (or what is between them) for several, or '
                    '{label_separator="|"} for one.',
                    value,
                ),
            )

    def _example(self, line, record):
        columns = self.columns.texts
        text = self._text_of(line, record, columns[0])
        text_b = self._text_of(line, record, columns[1]) if len(columns) > 1 else None
        label = self._label(line, record) if self.columns.label else None
        if label is None and self._need_labels:
            raise self._without_label(record)
        example = LabelledText(line, text, label, text_b, source=self)
        if self._task is not None:
            self._task.check_label(label, example.error)
        if self._accepted is not None:
            self._check_labels(example.labels, example.error)
        return example

    def _without_label(self, record):
        """The Missing of a row without a label."""
        label = self.columns.label
        gold, part, why = record.get(label[0]) if label else "", "a label", ""
        if self.columns.is_score:
            part, why = "a score", " (no score is not a score of zero)"
        elif gold == _NO_GOLD or (gold is None and label[0] in self._records.class_labels):
            part, why = "a gold label", " (the annotators did not agree on one)"
        return Missing(part, place=self._described(label), why=why)

    def _text_of(self, line, record, names):
        """The text of one column, or of several joined by spaces; Missing where there is none."""
        text = record.get(names[0])
        if len(names) > 1 or not isinstance(text, str):
            parts = (record.get(name) for name in names)
            parts = [part for part in parts if not is_missing(part, na=self._na)]
            text = " ".join(self._as_text(line, part, names) for part in parts)
        # Items of a sequence, and plain lines, are texts, whatever is in them.
        is_kept = self._are_items and record[names[0]] is not None
        if not is_kept and is_missing(text, na=self._na):
            raise Missing("a text", place=self._described(names))
        if self._may_be_no_text and not is_text(text):
            raise self.error(line, f'"{names[0]}" contains a NUL or half a surrogate pair.')
        return text

    def _as_text(self, line, value, names):
        try:
            return value if isinstance(value, str) else one_label(value)
        except ValueError:
            message = f'no text under "{names[0]}"; a string is needed there.'
            raise self.error(line, message) from None

    def _label(self, line, record):
        """The label of a row, None where it has none."""
        if len(self.columns.label) > 1:
            return self._label_of_columns(line, record)
        (name,), form = self.columns.label, self.columns.form
        value = record.get(name)
        is_cell = isinstance(value, str)
        if is_cell and value in self._label_of:
            return self._label_of[value]
        if self.kind == "given" and self._need_labels and name not in record:
            noun = "a pair of a text" if self.columns.texts == (TEXT,) else "two texts"
            raise self.error(line, f"no label. Give {noun} and the label.")
        if is_missing(value, na=self._na):
            if is_cell and value.strip():
                self._na_labels[value] += 1
            is_none = form is not several_labels or (self.kind == "given" and value is None)
            return None if is_none else ()
        try:
            label = self._several(line, value) if form is several_labels else form(value)
        except ValueError as error:
            raise self.error(line, error) from None
        if form is one_label:
            label = None if self._is_gold and label == _NO_GOLD else self._name_of(label)
        if is_cell and label is not None and form is not several_labels:
            self._label_of[value] = label
        return label

    def _several(self, line, value):
        """Several labels; InputError for a list of 0 and 1 that has no names of labels.

        One with a number twice is no list of labels. One of 0 and 1 could be: the whole file says,
        as it does of a cell with a comma.
        """
        separator, names = self._separator or BETWEEN_LABELS, self._label_names
        labels, parts = several_labels(value, names, separator=separator), list_of(value)
        if is_vector(parts):
            self._vectors += names is None
            if len(parts) != len(names or {*parts}):
                advice = Naming("{labels} has {} names.", len(names)) if names else _NEEDS_NAMES
                raise InputError.naming("{!r} {} {}", value, _LIKE_BITS, advice)
        elif isinstance(parts, str) and self._separator is None:
            self._has_bars |= BETWEEN_LABELS in parts
            # Commas or semicolons, and labels on both sides of each.
            may_be_several = any(x in parts and all(map(str.strip, parts.split(x))) for x in ",;")
            if may_be_several and not self.columns.is_label(parts):
                self._unclear = self._unclear or (line, parts)
        return tuple(map(self._name_of, labels))

    def _label_of_columns(self, line, record):
        """The labels whose columns have a 1; None where one has nothing."""
        cells = {name: record.get(name) for name in self.columns.label}
        if any(is_missing(value, na=self._na) for value in cells.values()):
            return None
        for name, value in cells.items():
            if bit(value) is None:
                raise self.error(line, f'{value!r} in "{name}" should be 0 or 1, for a label.')
        return tuple(self._name_of(name) for name, value in cells.items() if bit(value))

    def _described(self, names):
        return " and ".join(map(self._records.describe, names))

    def _how(self):
        columns, table = self.columns, self._records
        if self.kind == "lines":
            return "plain lines, one text per line"

        def shown(names, between):
            by_content = [" (by its content)" * (name in columns.by_content) for name in names]
            return between.join(map(str.__add__, map(table.describe, names), by_content))

        header = f" with{'' if table.has_names else 'out'} a header line" if table.are_cells else ""
        text = "texts in" if len(columns.texts) > 1 else "text in"
        texts = " and ".join(shown(names, " + ") for names in columns.texts)
        label, noun = f"no {columns.noun}s", columns.noun
        if columns.label:
            noun += "s" if len(columns.label) > 1 else ""
            label = f"{noun} in {shown(columns.label, ' and ')}"
        return f"{table.format}{header}, {text} {texts}, {label}"


def _names_of(names):
    """Names with commas between them, or a list of them, as a list; None for None."""
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    return None if names is None else list(names)


def _check_several(form, lists, separator):
    """Raises InputError for arguments of several labels where a text has one, or for one name."""
    for setting, value in {**lists, "label_separator": separator}.items():
        if value is not None and form is not several_labels:
            raise InputError.naming(
                "{} is for several labels per text ({multi_label=True}).", argument(setting)
            )
        if value is not None and setting in lists and len(value) < 2:
            raise InputError.naming(
                "{} has one name. Give the names of two or more labels.", argument(setting)
            )


def _as_record(item, names):
    parts = (item,) if item is None or isinstance(item, str) else item
    parts = tuple(parts) if isinstance(parts, list | tuple) else ()
    texts, label = parts[: len(names)], parts[len(names) :]
    is_texts = all(text is None or isinstance(text, str) for text in texts)
    if len(texts) < len(names) or len(label) > 1 or not is_texts:
        noun = "strings or pairs of a text and its label"
        if len(names) > 1:
            noun = "pairs of strings, or two strings and their label"
        raise ValueError(f"Texts must be {noun}. Received: {item!r}.")
    return dict(zip((*names, LABEL), parts, strict=False))


def _given_columns(texts, fields, columns):
    """{a text, or "label": its column}, of `fields` and of the arguments for single columns."""
    given = in_fields = parse_fields(fields, parts=(*texts, LABEL))
    for setting, column in columns.items():
        name = setting.partition("_")[0]
        if column is not None:
            if name in given:
                other = "{fields} with {}=…" if name in in_fields else "{label_column}"
                other = Naming(other, name)
                raise InputError.naming(
                    "Give either {}, or {}, not both.", argument(setting), other
                )
            given = {**given, name: column}
    return given


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
    for label in labels:
        if isinstance(label, str):
            alike["".join(label.split()).casefold()].append(label)
    for group in filter(lambda group: len(group) > 1, alike.values()):
        counts = listed(f'"{label}" ({labels[label]:,})' for label in sorted(group))
        lines.append(
            f"{examples[0].source.name}: the labels {counts} differ only in case or spaces, and "
            "are different labels here."
        )
    lines += contradictions(examples)
    return [*lines, *examples[0].source.notes()] if examples else lines


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
            f"earlier one (line {first_with[example.texts].line}), but another "
            f"{'score' if isinstance(example.label, float) else 'label'}."
        )
