"""Texts, or pairs of texts, with labels: from files, tables and Python, all in one way.

A source becomes a table of named columns, of which the columns of the texts and of the label are
chosen. Rows without a text or a label are left out and counted.
"""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.formatting import counted, quoted
from keras_bert.readers.columns import LABEL, Columns, given_columns
from keras_bert.readers.examples import (
    Example,
    ExampleSource,
    Missing,
    shown_parts,
)
from keras_bert.readers.glue import glue_columns, glue_task
from keras_bert.readers.labels import (
    BETWEEN_LABELS,
    bit,
    fraction_among,
    is_missing,
    is_vector,
    list_of,
    named_labels,
    one_label,
    score,
    several_labels,
)
from keras_bert.readers.sources import CSV, FASTTEXT, FOLDER, JSON, TSV, is_file, is_text
from keras_bert.readers.tables import open_table

TEXT = ("text",)
PAIR = ("text_a", "text_b")
# What SNLI and MNLI write if the annotators did not agree on a label.
_GOLD, _NO_GOLD = "gold_label", "-"
# Kinds of sources with columns.
_TABLES = (CSV, TSV, JSON, FASTTEXT, FOLDER, "arrow", "tfds", "table")
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}\.[0-9]{3}")
_LIKE_BITS = "looks like a 0 or 1 for each label, and not like a list of labels."
_NEEDS_NAMES = Naming(
    "Give their names as {labels}, in this order, or a column for each label as {label_columns}."
)


@dataclass(slots=True)
class LabelledText(Example):
    """A text, or two with `text_b`, and the label or None if nobody gave one.

    A label is a word; if an example may have several of them, a tuple of words; and if it is
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
            given=given_columns(texts, fields, given),
            remembered=schema,
            need_labels=need_labels,
            na=not keep_na,
        )
        self._task = glue_task(glue) if glue is not None and is_file(data) else None
        self._model_labels = tuple(labels or ()) if form is not score else ()
        self._na_words = Counter()  # (a part, a word such as NA in its place)
        self._vectors, self._unclear, self._has_bars = 0, None, False
        self._thousands, self._has_decimals = None, False  # of scores in a file with semicolons
        self._rows = None
        file_settings = {**given, "header": header, "fields": fields, "glue": glue}
        common |= {"labels": labels, "need_labels": need_labels}
        super().__init__(data, file_settings=file_settings, **common)

    _header_names = property(lambda self: self.columns.header_names)

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
            header_names=self._header_names if task is None else task.column_names,
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
        self.is_left_over = columns.left_over is not None
        is_left_over = columns.label == (columns.left_over,) and table.has_names
        self._header_label = one_label(columns.left_over) if is_left_over else None
        self._longer = columns.longer_texts() if self.kind in _TABLES else None
        self._is_gold = _GOLD in [name.casefold() for name in columns.label]
        self.how = self._how()
        return self._read()

    def row_of(self, example):
        """The columns of an example by name; None if the source is no table, or not kept."""
        if self.kind == "table":  # in memory
            if self._rows is None:
                self._rows = dict(self._records)
            return self._rows[example.line]
        return None if self._are_items else example.row

    def keep_rows(self):
        """Lets examples keep their rows, for `row_of`.

        JSON of a pipe is read to its end, since any object may have a key of its own.
        """
        self.keeps_rows = True
        if self.kind == JSON and self._records.is_stream:
            self._examples = [*self._examples]

    def column_names(self):
        """The names of the table's columns; of JSON the keys of all objects, of a pipe those read.

        Those of a pipe need `keep_rows`.
        """
        if self.kind == JSON and self._records.is_stream:
            return [*dict.fromkeys(chain.from_iterable(e.row for e in self._examples))]
        return self._records.all_names()

    def existing_column(self, column):
        """The name of a column by its name or its number from 1; InputError if it is not there."""
        return self._records.existing(column)

    def written_name(self, name):
        """The name of a column as the header of the file has it."""
        return self._records.written.get(name, name)

    def columns_for_output(self):
        """{name of a column of the table: its Arrow type}; {} without a table.

        The rows are read once for it, except those of a pipe, whose columns are text.
        """
        return {} if self._are_items else self._records.arrow_types()

    def arrow_columns(self, rows):
        """{name: an array of Arrow} of a table of Arrow, for the rows with these numbers from 1."""
        return {} if self._records.stored is None else self._records.stored.columns(rows)

    @property
    def unlabelled(self):
        return sum(len(lines) for key, lines in self._left_out.items() if key[0] != "a text")

    def first_examples(self, examples):
        if self.kind not in _TABLES:
            return ""
        (example,), columns = examples, self.columns
        parts = dict(zip(columns.roles, example.texts, strict=True))
        if example.label is not None:
            labels = example.labels if columns.form is not score else [str(example.label)]
            parts[columns.noun] = ", ".join(labels)
        others = "Also kept" if self.keeps_columns else "Not read"
        unused = f" {others}: {quoted(columns.unused, most=5)}." if columns.unused else ""
        return f"First example: {shown_parts(parts)}.{unused}"

    def _more_notes(self):
        for (part, word), count in self._na_words.most_common():
            part_names = self.columns.label if part == "label" else chain(*self.columns.texts)
            yield (
                f'{counted(count, "row")} with "{word}" in {self._described(part_names)}, which is '
                f"read as no {part}, as in pandas. If it is "
                f"{'the name of a class' if part == 'label' else 'a text'}, set `keep_na=True` "
                "(--keep-na)."
            )
        if self._longer is not None:
            longer, read = map(self._records.describe, self._longer)
            yield (
                f"the texts in {longer} are longer than those in {read}, which are read. If they "
                f"are the texts, name them with `fields` (--fields {self.columns.roles[0]}=…)."
            )
        if self._records.skipped:
            yield (
                f"{counted(self._records.skipped, 'invalid line')} (another number of columns), "
                "left out as GLUE's own readers do."
            )

    def _read(self):
        examples = self._each(self._records, self._example)
        if self._need_labels and not self.columns.is_score:
            examples = [*examples]  # all labels together tell whether they are numbers
            self._name_labels(examples)
        for example in examples:
            if not (self._need_labels or self.columns.is_score):
                self._name_labels([example])
            if self._task is not None:
                self._task.check_label(example.label, example.error)
            if self._accepted is not None:
                self._check_labels(example.labels, example.error)
            yield example
        if self._thousands is not None and not self._has_decimals:
            line, value = self._thousands
            raise self.error(
                line,
                f'"{value}", in a file with semicolons, could be {float(value):g} or '
                f"{value.replace('.', '')}, and no score has another number of decimals. Write "
                "one of these.",
            )
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

    def _name_labels(self, examples):
        """Gives the labels of examples, as they are written, their names (see `named_labels`).

        Raises InputError if those of a file to train on are numbers, and not all of them whole.
        """
        written = dict.fromkeys(chain(*(e.labels for e in examples if e.label is not None)))
        fraction = None if self._model_labels or not self._need_labels else fraction_among(written)
        if fraction is not None:
            example = next(example for example in examples if fraction in example.labels)
            raise example.error(
                Naming(
                    'the label "{}" could be a score or the name of a class. Train scores with '
                    '{task="regression"}; write the name of a class as a word, such as "v{}".',
                    fraction,
                    fraction,
                )
            )
        names = named_labels(written, self._model_labels)
        for example in examples:
            if isinstance(example.label, tuple):
                example.label = tuple(dict.fromkeys(names[label] for label in example.label))
            elif example.label is not None:
                example.label = names[example.label]

    def _example(self, line, record):
        columns = self.columns.texts
        text = self._text_of(line, record, columns[0])
        text_b = self._text_of(line, record, columns[1]) if len(columns) > 1 else None
        label = self._label(line, record) if self.columns.label else None
        if label is None and self._need_labels:
            raise self._without_label(record)
        return LabelledText(line, text, label, text_b, source=self)

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
        """The text of one column, or of several joined by spaces; Missing if there is none."""
        text = record.get(names[0])
        if len(names) > 1 or not isinstance(text, str):
            parts = (record.get(name) for name in names)
            parts = [part for part in parts if not is_missing(part, na=self._na)]
            text = " ".join(self._as_text(line, part, names) for part in parts)
        # To predict, items of a sequence, and plain lines, are texts, whatever is in them.
        is_kept = self._are_items and record[names[0]] is not None and not self._need_labels
        if not is_kept and is_missing(text, na=self._na):
            self._count_na("text", record.get(names[0]))
            raise Missing("a text", place=self._described(names))
        if self._may_be_no_text and not is_text(text):
            raise self.error(line, f'"{names[0]}" contains a NUL or half a surrogate pair.')
        return text

    def _count_na(self, part, value):
        """Counts a word such as NA in place of a part."""
        if isinstance(value, str) and value.strip():
            self._na_words[part, value] += 1

    def _as_text(self, line, value, names):
        """The text of a value; of a number, its name among numbers."""
        try:
            if isinstance(value, str):
                return value
            number = one_label(value)
            return named_labels([number])[number]
        except ValueError:
            is_bytes = isinstance(value, bytes)
            expected = "a string is needed there" if not is_bytes else "its bytes are not UTF-8"
            raise self.error(line, f'no text under "{names[0]}"; {expected}.') from None

    def _label(self, line, record):
        """The label of a row, None if it has none."""
        if len(self.columns.label) > 1:
            return self._label_of_columns(line, record)
        (name,), form = self.columns.label, self.columns.form
        value = record.get(name)
        if self.kind == "given" and self._need_labels and name not in record:
            noun = "a pair of a text" if self.columns.texts == (TEXT,) else "two texts"
            raise self.error(line, f"no label. Give {noun} and the label.")
        if is_missing(value, na=self._na):
            self._count_na("label", value)
            is_none = form is not several_labels or (self.kind == "given" and value is None)
            return None if is_none else ()
        try:
            label = self._several(line, value) if form is several_labels else form(value)
        except ValueError as error:
            raise self.error(line, error) from None
        if form is score and self._records.delimiter == ";":
            if _THOUSANDS.fullmatch(value.strip()):
                self._thousands = self._thousands or (line, value.strip())
            self._has_decimals |= "." in value and not _THOUSANDS.fullmatch(value.strip())
        if self._is_gold and label == _NO_GOLD:
            return None
        if form is one_label and label == self._header_label:
            raise InputError.naming(
                '{}: "{}" is the name of a column and one of its labels. If the first line is an '
                "example, read it with {header=False} (in pandas header=None).",
                self.name,
                name,
            )
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
            if may_be_several and parts not in self._model_labels:
                self._unclear = self._unclear or (line, parts)
        return labels

    def _label_of_columns(self, line, record):
        """The labels whose columns have a 1; None if one has nothing."""
        cells = {name: record.get(name) for name in self.columns.label}
        if any(is_missing(value, na=self._na) for value in cells.values()):
            return None
        for name, value in cells.items():
            if bit(value) is None:
                raise self.error(line, f'{value!r} in "{name}" should be 0 or 1, for a label.')
        return tuple(name for name, value in cells.items() if bit(value))

    def _described(self, names):
        return " and ".join(map(self._records.describe, names))

    def _how(self):
        columns, table = self.columns, self._records
        if self.kind == "lines":
            return "plain lines, one text per line"

        def shown(names, between):
            left = [" (the only column left)" * (name == columns.left_over) for name in names]
            return between.join(map(str.__add__, map(table.describe, names), left))

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
    """Raises InputError for arguments of several labels if a text has one, or for one name."""
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
