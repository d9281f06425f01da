"""Texts, or pairs of texts, with labels: from tables, JSON Lines, plain lines, tfds or Python."""

from dataclasses import dataclass
from functools import partial

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.readers.columns import (
    COUNT,
    ERROR,
    HEADER_NAMES,
    Columns,
    Wanted,
    choose_columns,
    parse_fields,
)
from keras_bert.readers.glue import glue_columns, glue_task
from keras_bert.readers.labels import (
    check_known,
    missing_label,
    one_label,
    score,
    several_labels,
)
from keras_bert.readers.sources import Example, ExampleSource, is_file, open_records

TEXT = ("text",)
PAIR = ("text_a", "text_b")
# What SNLI and MNLI write where the annotators did not agree on a label.
_GOLD, _NO_GOLD = "gold_label", "-"


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
        form: the type of label: a function of `labels`.
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
            raise self.error(line, f"{error}.") from None
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
