"""Texts, or pairs of texts, with labels: from files, tables and Python, all in one way.

A source becomes a table of named columns, of which the columns of the texts and of the label are
chosen. Rows without a text or a label are left out and counted.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.columns import Columns, Wanted, choose_columns, parse_fields
from keras_bert.readers.glue import glue_columns, glue_task
from keras_bert.readers.labels import (
    QUOTES,
    bit,
    check_known,
    is_missing,
    is_vector,
    list_of,
    names_of_model,
    one_label,
    score,
    several_labels,
)
from keras_bert.readers.settings import COUNT, ERROR, SKIP
from keras_bert.readers.sources import (
    Example,
    ExampleSource,
    first_location,
    is_file,
    is_text,
    located,
)
from keras_bert.readers.tables import open_table

TEXT = ("text",)
PAIR = ("text_a", "text_b")
# What SNLI and MNLI write where the annotators did not agree on a label.
_GOLD, _NO_GOLD = "gold_label", "-"
_NEEDS_NAMES = (
    "Give their names as `labels`, in this order, or a column for each label as `label_columns`."
)


@dataclass(frozen=True, slots=True)
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
        """The one or two texts."""
        return (self.text,) if self.text_b is None else (self.text, self.text_b)


class TextSource(ExampleSource):
    """The `LabelledText`s of a source.

    The items of a sequence are strings or (text, label); for pairs of texts, (text, text) or (text,
    text, label).

    Args:
        data: see `ExampleSource`.
        texts: the names of an example's texts: `TEXT` or `PAIR`.
        form: the type of label: `one_label`, `several_labels` or `score`.
        text_column, label_column: names, or numbers from 1; None is by the rule of
            `keras_bert.readers.columns`. A text of several columns is `subject+body`.
        label_columns: with `several_labels`, a column of 0 and 1 for each label: a list, or names
            with commas between them.
        label_names: with `several_labels`, the label of each number in lists of 0 and 1, likewise.
        header: whether the first line of a CSV or TSV names the columns; None is by the rule of
            `keras_bert.readers.tables`.
        fields: all of that in one: `text=sentence,label=label`.
        missing: "skip" or "error", what is done with a row without a text or its label.
        keep_na: cells such as NA and None are texts and labels; otherwise they are missing, as in
            pandas.
        glue: the name of the task of GLUE to which the file belongs.
        labels: those of a model, by which its column is recognised.
        unknown_labels: "count" or "error", whether another label than those is an error here; only
            where labels are needed.
        schema: the columns of the data that a model was trained on, as another source has them.
        need_labels: whether an example without a label is left out.

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
        header=None,
        fields=None,
        missing=SKIP,
        keep_na=False,
        glue=None,
        labels=None,
        unknown_labels=COUNT,
        schema=None,
        need_labels=True,
    ):
        schema = schema or {}
        _check_lists(form, label_columns=label_columns, labels=label_names)
        given, arguments = _given_columns(texts, text_column, label_column, label_columns, fields)
        task = glue_task(glue) if glue is not None and is_file(data) else None
        if task is not None:
            _check_task(task, texts, form)
            data = task.file(data, labelled=need_labels)
        wanted = Wanted(
            texts=texts,
            given=given,
            arguments=arguments,
            remembered=schema,
            labels=None if form is score else labels,
            need_labels=need_labels,
            scores=form is score,
            several=form is several_labels,
            na=not keep_na,
        )
        table = open_table(
            data,
            item="text",
            as_record=lambda item: _as_record(item, texts),
            labelled=need_labels or len(texts) > 1,
            noun="pairs of texts" if len(texts) > 1 else "labelled text",
            header=header,
            header_names=task.column_names if task is not None else wanted.header_names,
            has_literal_quotes=task is not None,
            skip_invalid=task is not None and need_labels,
        )
        super().__init__(
            table,
            text_column=text_column,
            label_column=label_column,
            label_columns=label_columns,
            header=header,
            fields=fields,
            glue=glue,
            stops=missing == ERROR,
        )
        self._form = form
        self._need_labels = need_labels
        self._known = labels if need_labels and unknown_labels == ERROR else None
        self._name_of = names_of_model(labels)
        self._na = table.are_cells and not keep_na
        # Items of a sequence, and plain lines, are texts, whatever is in them.
        self._keeps_empty = self.kind in ("given", "lines")
        self._label_names = _listed_names(label_names) or schema.get("label_names")
        self.unlabelled = 0
        self._na_labels, self._vectors = Counter(), 0
        self._glue = None
        if self.kind in ("given", "lines"):
            names = texts if self.kind == "given" else ("1",)
            label = ("label",) if self.kind == "given" else ()
            self.columns = Columns(texts=tuple((name,) for name in names), label=label)
        else:
            _check_width(table, wanted)
            of_glue = glue_columns(table, task, labelled=need_labels) if task else None
            self.columns = of_glue or choose_columns(table, wanted)
            self._glue = task if of_glue and need_labels else None
            self.schema = dict(zip(texts, map(list, self.columns.texts), strict=True))
            if self.columns.label:
                self.schema["label"] = list(self.columns.label)
            if self._label_names:
                self.schema["label_names"] = self._label_names
        self.is_chosen_by_content = bool(self.columns.by_content)
        self._is_gold = _GOLD in [name.casefold() for name in self.columns.label]
        if self.kind != "given":
            self.description = self._describe()
        self._set_examples(self._read())

    def notes(self):
        lines = super().notes()
        for label, count in self._na_labels.most_common():
            lines.append(
                f'{self.name}: {counted(count, "row")} with "{label}" in '
                f"{self._described(self.columns.label)}, which is read as no label, as in pandas. "
                "If it is the name of a class, set `keep_na=True`."
            )
        if self._records.skipped:
            lines.append(
                f"{self.name}: {counted(self._records.skipped, 'invalid line')} (another number of "
                "columns), left out as GLUE's own readers do."
            )
        return lines

    def _read(self):
        labelled = 0
        for line, record in self._records:
            texts = [self._joined(line, record, columns) for columns in self.columns.texts]
            if None in texts:
                self.leave_out(line, "without a text, left out")
                continue
            label = self._label(line, record) if self.columns.label else None
            if label is None and self._need_labels:
                self.leave_out(line, self._why_unlabelled(record))
                self.unlabelled += 1
                continue
            labelled += label is not None
            if self._glue is not None:
                self._glue.check_label(label, partial(self.error, line))
            labels = label if isinstance(label, tuple) else (label,)
            check_known(labels, self._known, partial(self.error, line))
            yield LabelledText(line, texts[0], label, *texts[1:], source=self)
        if self._need_labels and labelled and self._vectors == labelled:
            advice = _NEEDS_NAMES
            raise InputError(
                f"{self.name}: each list looks like a 0 or 1 for each label, and not like a list "
                f"of labels. {advice}"
            )
        if self._need_labels and self._left_out and not labelled:
            noun = "score" if self._form is score else "label"
            noun = f"gold {noun}" if self._records.class_labels or self._is_gold else noun
            column = self._described(
                self.columns.label if self.unlabelled else self.columns.texts[0]
            )
            where = located([line for lines in self._left_out.values() for line in lines], self)
            raise InputError(
                f"{self.name} has no {noun if self.unlabelled else 'text'} in {column} of any "
                f"record ({where}), so there is nothing to train on or to evaluate."
            )

    def _why_unlabelled(self, record):
        if self._form is score:
            return "without a score, left out (no score is not a score of zero)"
        value = record.get(self.columns.label[0])
        if value == _NO_GOLD or (
            value is None and self.columns.label[0] in self._records.class_labels
        ):
            return "without a gold label, left out (the annotators did not agree on one)"
        return "without a label, left out"

    def _joined(self, line, record, columns):
        """The text of one column, or of several joined by spaces; None if it is missing."""
        parts = [record.get(column) for column in columns]
        if not (self._keeps_empty and isinstance(parts[0], str)):
            parts = [part for part in parts if not is_missing(part, na=self._na)]
        if not parts:
            return None
        try:
            parts = [part if isinstance(part, str) else one_label(part) for part in parts]
        except ValueError:
            raise self.error(
                line, f'no text under "{columns[0]}"; a string is needed there.'
            ) from None
        text = " ".join(parts)
        if self.kind != "given" and not is_text(text):
            raise self.error(line, f'"{columns[0]}" contains a NUL or half a surrogate pair.')
        return text

    def _label(self, line, record):
        columns, several = self.columns.label, self._form is several_labels
        if len(columns) > 1:
            return self._label_of_columns(line, record)
        value = record.get(columns[0])
        if self.kind == "given" and self._need_labels and columns[0] not in record:
            noun = "a pair of a text" if self.columns.texts == (TEXT,) else "two texts"
            raise self.error(line, f"no label. Give {noun} and the label.")
        if is_missing(value, na=self._na):
            if isinstance(value, str) and value.strip():
                self._na_labels[value] += 1
            if not several or (self.kind == "given" and value is None):
                return None
            value = None
        try:
            if not several:
                label = self._form(value)
                if self._form is score:
                    return label
                return None if label == _NO_GOLD and self._is_gold else self._name_of(label)
            labels = several_labels(value, self._label_names)
        except ValueError as error:
            raise self.error(line, str(error)) from None
        self._check_vector(line, value)
        return tuple(map(self._name_of, labels))

    def _check_vector(self, line, value):
        """Raises InputError for a list of 0 and 1 that has no names of labels, or not as many.

        One with a number twice is no list of labels. One of 0 and 1 could be: the whole file says.
        """
        numbers, names = list_of(value), self._label_names
        is_list = is_vector(value)
        self._vectors += is_list and names is None
        if is_list and len(numbers) != len(names or {*numbers}):
            advice = _NEEDS_NAMES if names is None else f"`labels` has {len(names)} names."
            raise self.error(
                line,
                f"{value!r} looks like a 0 or 1 for each label, and not like a list of labels. "
                f"{advice}",
            )

    def _label_of_columns(self, line, record):
        """The labels whose columns have a 1."""
        labels = []
        for column in self.columns.label:
            value = record.get(column)
            if is_missing(value, na=self._na):
                return None
            is_on = bit(value)
            if is_on is None:
                raise self.error(line, f'{value!r} in "{column}" should be 0 or 1, for a label.')
            labels += [self._name_of(column)] if is_on else []
        return tuple(labels)

    def _described(self, columns):
        return " and ".join(map(self._records.describe, columns))

    def _shown(self, column):
        by_content = " (by its content)" if column in self.columns.by_content else ""
        return self._records.describe(column) + by_content

    def _describe(self):
        columns, table = self.columns, self._records
        if self.kind == "lines":
            return f"{self.name}: plain lines, one text per line"
        is_cells = table.are_cells
        header = f" with{'' if table.has_names else 'out'} a header line" if is_cells else ""
        texts = f"{'texts' if len(columns.texts) > 1 else 'text'} in "
        texts += " and ".join(" + ".join(map(self._shown, of_text)) for of_text in columns.texts)
        noun = "score" if self._form is score else "label"
        label = f"no {noun}s"
        if columns.label:
            label = f"{noun}{'s' if len(columns.label) > 1 else ''} in "
            label += " and ".join(map(self._shown, columns.label))
        return f"{self.name}: {table.format}{header}, {texts}, {label}"


def _listed_names(names):
    """Names with commas between them, or a list of them, as a list; None for None."""
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    return None if names is None else list(names)


def _check_lists(form, **lists):
    """Raises InputError for a list of labels or columns where a text has one label, or for one."""
    for argument, names in lists.items():
        if names is not None and form is not several_labels:
            raise InputError(f"`{argument}` is for several labels per text (`multi_label=True`).")
        if names is not None and len(_listed_names(names)) < 2:
            raise InputError(f"`{argument}` has one name. Give the names of two or more labels.")


def _check_width(table, wanted):
    several = len(wanted.texts) > 1
    if table.are_cells and len(table.names) < len(wanted.texts) + wanted.need_labels:
        if not (wanted.need_labels or several):
            return
        noun, texts = ("pairs of texts", "two texts") if several else ("labelled text", "a text")
        raise InputError(
            f"Could not read {table.name} as {noun}: line 1 has "
            f"{counted(len(table.names), 'column')}. Expected CSV, TSV or JSON Lines with "
            f"{texts} and a label."
        )


def _as_record(item, names):
    if item is None and len(names) == 1:
        item = (None,)
    parts = (item,) if isinstance(item, str) else item
    parts = tuple(parts) if isinstance(parts, list | tuple) else ()
    texts, label = parts[: len(names)], parts[len(names) :]
    is_texts = all(text is None or isinstance(text, str) for text in texts)
    if len(texts) < len(names) or len(label) > 1 or not is_texts:
        noun = "strings or pairs of a text and its label"
        if len(names) > 1:
            noun = "pairs of strings, or two strings and their label"
        raise ValueError(f"Texts must be {noun}. Received: {item!r}.")
    return dict(zip(names, texts, strict=True)) | ({"label": label[0]} if label else {})


def _check_task(task, texts, form):
    """Raises InputError where a task of GLUE has other texts, or labels in place of scores."""
    expected, read = (
        f"{'two texts' if count > 1 else 'one text'} and a {'score' if scores else 'label'}"
        for count, scores in (
            (len(task.texts), not task.labels),
            (len(texts), form is score),
        )
    )
    if expected != read:
        raise InputError(
            f"GLUE's {task.name} is a {task.task_type} task, with {expected} per record. This task "
            f"reads {read}."
        )


def _given_columns(texts, text_column, label_column, label_columns, fields):
    """-> ({name of a text, or "label": its column}, {that name: the argument that gives it})."""
    names = (*texts, "label")
    in_fields = parse_fields(fields, parts=names)
    given = dict(in_fields)
    arguments = dict.fromkeys(names, "fields")
    columns = [("text", "text_column", text_column), ("label", "label_column", label_column)]
    columns.append(("label", "label_columns", _listed_names(label_columns)))
    for name, argument, column in columns:
        if len(texts) == 1 and argument != "label_columns":
            arguments[name] = argument
        if column is None:
            continue
        if name in given:
            other = f"`fields` with {name}=…" if name in in_fields else "`label_column`"
            raise InputError(f"Give either `{argument}`, or {other}, not both.")
        given[name] = column
    return given, arguments


def text_warnings(examples):
    """Lines for the user on unusual `LabelledText`s: how many there are, and the first line."""
    empty = [example for example in examples if not all(text.strip() for text in example.texts)]
    in_quotes = [example for example in examples if _is_quoted(example.label)]
    lines = []
    if empty:
        lines.append(f"{first_location(empty)}: {counted(len(empty), 'text')} without a word.")
    if in_quotes:
        label = in_quotes[0].label
        lines.append(
            f"{first_location(in_quotes)}: {counted(len(in_quotes), 'label')} in quotes. Quotes "
            f"are ordinary characters here: {label} and {label[1:-1]} are different labels."
        )
    lines += _labels_alike(examples)
    lines += _contradictions(examples)
    return [*lines, *examples[0].source.notes()] if examples else lines


def _labels_alike(examples):
    """A line for labels that a person would read as one, and a model reads as several."""
    labels = Counter()
    for example in examples:
        labels.update(example.label if isinstance(example.label, tuple) else [example.label])
    alike = {}
    for label in labels:
        if isinstance(label, str):
            alike.setdefault("".join(label.split()).casefold(), []).append(label)
    for group in alike.values():
        if len(group) > 1:
            counts = listed(f'"{label}" ({labels[label]:,})' for label in sorted(group))
            yield (
                f"{examples[0].source.name}: the labels {counts} differ only in case or spaces, "
                "and are different labels here."
            )


def _contradictions(examples):
    """A line for texts that are repeated with another label."""
    first_with, others = {}, []
    for example in examples:
        first = first_with.setdefault(example.texts, example)
        if example.label is not None and _as_set(first.label) != _as_set(example.label):
            others.append((first, example))
    if others:
        first, example = others[0]
        yield (
            f"{first_location([example for _, example in others])}: "
            f"{counted(len(others), 'example')} with the text of an earlier one (line "
            f"{first.line}) and another "
            f"{'score' if isinstance(example.label, float) else 'label'}."
        )


def _as_set(label):
    return frozenset(label) if isinstance(label, tuple) else label


def _is_quoted(label):
    return isinstance(label, str) and len(label) > 2 and label[0] == label[-1] in QUOTES
