"""Texts, or pairs of texts, with labels: from tables, JSON Lines, plain lines, tfds or Python.

A label is a word, several words, or a score. Each type is a function from a cell of a table or a
value of a JSON object to the label, or to None if it is empty. It raises ValueError for a value of
another type.
"""

import contextlib
import math
import numbers
from collections import Counter
from dataclasses import dataclass
from functools import partial

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, quoted
from keras_bert.readers.columns import (
    COUNT,
    ERROR,
    HEADER_NAMES,
    Columns,
    Wanted,
    choose_columns,
    parse_fields,
    parsed_number,
)
from keras_bert.readers.glue import glue_columns, glue_task
from keras_bert.readers.sources import (
    Example,
    ExampleSource,
    first_location,
    is_file,
    is_text,
    open_records,
)

TEXT = ("text",)
PAIR = ("text_a", "text_b")
# What SNLI and MNLI write where the annotators did not agree on a label.
_GOLD, _NO_GOLD = "gold_label", "-"
_BETWEEN_LABELS = "|"
_QUOTES = "\"'"


def one_label(value):
    """The string by which a model knows the label."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):  # of numpy, too
        return str(value)
    return value.strip() or None if isinstance(value, str) and is_text(value) else None


def missing_label(value):
    """What is wrong with a value for which `one_label` gives None, as a part of a message."""
    if value is None or isinstance(value, str):
        return "no label"
    if isinstance(value, list):
        return f"the label {value!r} is a list (`multi_label=True` reads several labels)"
    return f"the label {value!r} is neither a text nor a whole number"


def unknown_label(label, known):
    """What is wrong with a label that a model does not have, as a part of a message."""
    bare = label.strip(_QUOTES)
    quotes = f' Without its quotes it would be "{bare}".' if bare in known else ""
    return f'unknown label "{label}". The model\'s labels are {quoted(known)}.{quotes}'


def check_known(labels, known, error):
    """Raises `error` of a message for the first label that is not known; None knows every label."""
    for label in labels if known is not None else ():
        if label not in known:
            raise error(unknown_label(label, known))


def unknown_labels_note(name, unknown):
    """A line for the user on the labels of a file, a `Counter`, that the model does not have."""
    each = listed(f'"{label}" ({count:,})' for label, count in unknown.most_common())
    return f"{name}: labels that the model does not have, counted as errors: {each}."


def several_labels(value):
    """The tuple of labels of a list, or of a cell with `|` between them; it may be empty."""
    if value is None:
        return None
    parts = value if isinstance(value, list) else str(value).split(_BETWEEN_LABELS)
    labels = tuple(map(one_label, parts))
    if isinstance(value, list) and None in labels:
        raise ValueError(f"{value!r} should be a list of labels.")
    return tuple(dict.fromkeys(label for label in labels if label is not None))


def score(value):
    """The number; an empty cell has no score, which is not zero."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = math.nan
    if isinstance(value, str):
        number = parsed_number(value)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number):
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        raise ValueError(f"{shown} is not a score, a number such as 1.5. Leave it empty for none.")
    return number


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
        text_column, label_column: names, or numbers from 1; None is by the content.
        header: whether the first line names the columns; None is by the content.
        fields: all of that in one: `text=sentence,label=label`.
        glue: the name of the task of GLUE to which the file belongs.
        labels: those of a model, by which its column is recognised.
        unknown_labels: "count" or "error", whether another label than those is an error here; only
            where labels are needed.
        schema: the source of a file that was read before: where this one has the same form, it has
            the same columns.
        need_labels: whether an example without a label is an error. Records without a score, or
            without a gold label ("-" in the column "gold_label" of SNLI and MNLI, or -1 in a column
            of class labels), are left out and counted.

    Attributes: `columns`, `unlabelled` (how many records were left out so far) and those of
    `ExampleSource`.
    """

    def __init__(
        self,
        data,
        *,
        texts=TEXT,
        form=one_label,
        text_column=None,
        label_column=None,
        header=None,
        fields=None,
        glue=None,
        labels=None,
        unknown_labels=COUNT,
        schema=None,
        need_labels=True,
    ):
        given, arguments = _given_columns(texts, text_column, label_column, fields)
        task = glue_task(glue) if glue is not None and is_file(data) else None
        if task is not None:
            _check_task(task, texts, form)
            data = task.file(data, labelled=need_labels)
        table = open_records(
            data,
            item="text",
            as_record=lambda item: _as_record(item, texts),
            tables=True,
            may_be_csv=need_labels or len(texts) > 1,
            header_names=HEADER_NAMES,
            skip_invalid=task is not None and need_labels,
        )
        super().__init__(
            table,
            text_column=text_column,
            label_column=label_column,
            header=header,
            fields=fields,
            glue=glue,
        )
        self._form = form
        self._need_labels = need_labels
        self._known = labels if need_labels and unknown_labels == ERROR else None
        self.unlabelled = 0
        self._glue = None
        if self.kind == "given":
            self.columns = Columns(texts=texts, label="label")
        elif schema is not None and not given and self._has_form_of(schema):
            self.columns = schema.columns
        else:
            wanted = Wanted(
                texts=texts,
                given=given,
                arguments=arguments,
                header=header,
                labels=labels if form is one_label else None,
                need_labels=need_labels,
                scores=form is score,
                several=form is several_labels,
            )
            known = glue_columns(table, task, labelled=need_labels) if task else None
            self.columns = known or choose_columns(table, wanted)
            self._glue = task if known and need_labels else None
        if self.kind != "given":
            self.description = self._describe()
        self._set_examples(self._read())

    def notes(self):
        lines = []
        if self.unlabelled:
            what = "a score, left out (no score is not a score of zero)"
            if self._form is not score:
                what = "a gold label, left out (the annotators did not agree on one)"
            lines.append(f"{self.name}: {counted(self.unlabelled, 'record')} without {what}.")
        if self._records.skipped:
            lines.append(
                f"{self.name}: {counted(self._records.skipped, 'invalid line')} (another number of "
                "columns), left out as GLUE's own readers do."
            )
        return lines

    def _read(self):
        records = iter(self._records)
        header = next(records)[1] if self.columns.names is not None else None
        labelled = 0
        for line, record in records:
            if record == header:
                raise self.error(
                    line,
                    "the header line again, as where files were joined; remove it here (if the "
                    "first line is not a header, set `header=False`).",
                )
            label = None if self.columns.label is None else self._label(line, record)
            if label is None and self._need_labels:  # any other would be an error
                self.unlabelled += 1
                continue
            labelled += 1
            if self._glue is not None:
                self._glue.check_label(label, partial(self.error, line))
            labels = label if isinstance(label, tuple) else (label,)
            check_known(labels, self._known, partial(self.error, line))
            read = _cell if self.kind == "given" or self._records.width is not None else self._text
            texts = [read(line, record, column) for column in self.columns.texts]
            yield LabelledText(line, texts[0], label, *texts[1:], source=self)
        if self.unlabelled and not labelled:
            what = "score" if self._form is score else "gold label"
            raise InputError(
                f"{self.name} has no {what} in {self.columns.describe(self.columns.label)} of any "
                "record, so there is nothing to train on or to evaluate."
            )

    def _has_form_of(self, other):
        table, theirs = self._records, other._records
        if table.width is None or (table.kind, table.width) != (theirs.kind, theirs.width):
            return False
        names = other.columns.names
        return names is None or names == tuple(cell.strip() for cell in table.sample[0][1])

    def _label(self, line, record):
        column = self.columns.label
        value = record.get(column) if self._records.width is None else record[column]
        try:
            label = self._form(value)
        except ValueError as error:
            raise self.error(line, str(error)) from None
        if label is not None and not (label == _NO_GOLD and self._is_gold(column)):
            return label
        if self.kind == "given":
            if value is not None and not isinstance(value, str):
                raise self.error(line, f"{missing_label(value)}.")
            if self._need_labels:
                what = "a pair of a text" if self.columns.texts == TEXT else "two texts"
                raise self.error(line, f"no label. Give {what} and the label.")
        elif self._need_labels and self._form is not score and label is None:
            if value is None and column in self._records.class_labels:
                return None
            raise self.error(line, f"{missing_label(value)} in {self.columns.describe(column)}.")
        return None

    def _is_gold(self, column):
        name = self.columns.names[column] if self.columns.names else column
        return str(name).casefold() == _GOLD

    def _describe(self):
        columns, table = self.columns, self._records
        if self.kind == "lines":
            return f"{self.name}: plain lines, one text per line"
        header = "" if table.width is None else f" with{'' if columns.names else 'out'} a header"
        texts = f"{'texts' if len(columns.texts) > 1 else 'text'} in "
        texts += " and ".join(map(columns.describe, columns.texts))
        what = "score" if self._form is score else "label"
        label = f"no {what}s"
        if columns.label is not None:
            label = f"{what} in {columns.describe(columns.label)}"
        return f"{self.name}: {table.format}{header}{' line' if header else ''}, {texts}, {label}"


def _cell(line, record, column):
    return record[column]


def _as_record(item, names):
    parts = (item,) if isinstance(item, str) else tuple(item)
    texts, label = parts[: len(names)], parts[len(names) :]
    if len(texts) < len(names) or len(label) > 1 or not all(isinstance(t, str) for t in texts):
        what = "strings or pairs of a text and its label"
        if len(names) > 1:
            what = "pairs of strings, or two strings and their label"
        raise ValueError(f"Texts must be {what}. Received: {item!r}.")
    return dict(zip(names, texts, strict=True)) | {"label": label[0] if label else None}


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
            f"GLUE's {task.name} is a {task.kind} task, with {expected} per record. This task "
            f"reads {read}."
        )


def _given_columns(texts, text_column, label_column, fields):
    """-> ({name of a text, or "label": its column}, {that name: the argument that gives it})."""
    names = (*texts, "label")
    given = parse_fields(fields, known=names)
    arguments = dict.fromkeys(names, "fields")
    for name, column in (("text", text_column), ("label", label_column)):
        if len(texts) == 1:
            arguments[name] = f"{name}_column"
        if column is not None and name in given:
            raise InputError(f"Give either `{name}_column`, or `fields` with {name}=…, not both.")
        if column is not None:
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
            number = parsed_number(label)
            plain = "".join(label.split()).casefold() if math.isnan(number) else number
            alike.setdefault(plain, []).append(label)
    for group in alike.values():
        if len(group) > 1:
            each = listed(f'"{label}" ({labels[label]:,})' for label in sorted(group))
            yield (
                f"{examples[0].source.name}: the labels {each} differ only in case, spaces or the "
                "form of a number, and are different labels here."
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
    return isinstance(label, str) and len(label) > 2 and label[0] == label[-1] in _QUOTES
