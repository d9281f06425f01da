"""Tables: CSV, TSV, JSON, plain lines, Parquet, tfds and data in memory, as rows of named columns.

The extension of a file decides its form: `.csv` has a header line, `.tsv` has one where its first
line holds a known name, `.txt` has one text per line. Standard input, and a file without one of
these extensions, is recognised by its content.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from itertools import chain, islice

from keras_bert.base.errors import InputError, Naming
from keras_bert.base.formatting import counted
from keras_bert.readers.sources import (
    CONLL,
    CSV,
    JSON,
    TSV,
    TXT,
    TextFile,
    form_of,
    is_file,
    is_json_object,
    is_stored_table,
)
from keras_bert.records.stored_tables import ArrowTable, with_names
from keras_bert.records.tfds_folders import PREFIX, TfdsSplit

# How many lines the delimiter of a CSV is chosen by.
_SAMPLE_LINES = 1000
_LEAST_OF_ONE_WIDTH = 0.9
_LONGEST_RECORD = 16 << 20
_SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)  # of Excel
_QUOTED_CELL = re.compile(r'"((?:[^"]|"")*)"')
_CELLS = re.compile(rf'(?:{_QUOTED_CELL.pattern}|[^"\t\r\n]*)(?:\t(?:"(?:[^"]|"")*"|[^"\t\r\n]*))*')
csv.field_size_limit(256 << 20)


class Table:
    """The rows of a source, as (location, dictionary by the column's name).

    Columns without a name are called "Unnamed: 0" and so on, and those of a table without a header
    line "1", "2" and so on. A file may be iterated again; a pipe only after `survey`.

    Attributes:
        name: what errors begin with.
        kind: "csv", "tsv", "lines", "jsonl", "tfds", "arrow", "table" (in memory) or "given" (a
            sequence).
        format: the format in words.
        names: of the columns; of JSON those of the first object.
        has_names: whether columns have names, and not only numbers.
        calls_columns: what messages call its columns.
        file: the `TextFile` that it is read from, or None.
        item: what messages call an item of a sequence, or None.
        class_labels: the columns with labels of numbered classes. None is there a record that has
            no label, such as one on which the annotators did not agree.
        repeated: the names of several columns.
        first: the line of the header, or of the first row.
        is_undecided: the rule, and not the user, decided whether there is a header line.
        skipped: how many lines were left out so far.
    """

    calls_columns = "columns"
    file = item = None
    has_names, is_undecided = True, False
    class_labels, repeated = (), frozenset()
    skipped, first = 0, 1

    def __init__(self, name, kind, format, rows, *, names=(), location="row", **attributes):
        self.name, self.kind, self.format, self._rows = name, kind, format, rows
        self.names, self._location = list(names), location
        vars(self).update(attributes)
        if self.file is not None and not self.file.may_be_read_again:
            self._rows = rows()

    def __iter__(self):
        return iter(self._rows() if callable(self._rows) else self._rows)

    def peek(self):
        """The first row, which is read again; None of an empty table."""
        if not self.is_stream:
            return next(iter(self), None)
        first = next(self._rows, None)
        self._rows = chain([] if first is None else [first], self._rows)
        return first

    def survey(self):
        """All rows, before they are read as examples; those of a pipe are kept in memory."""
        if not callable(self._rows):
            self._rows = list(self._rows)
        return iter(self)

    def error(self, line, message):
        """The InputError that names this source and the location in it: a number, or in words."""
        if self.item is not None and isinstance(line, int):
            return InputError(f"{self.item.capitalize()} {line} of those given: {message}")
        where = f"{self.location} {line}" if isinstance(line, int) else line
        return InputError(f"{self.name}, {where}: {message}")

    @property
    def location(self):
        """What messages call a row."""
        return self._location if self.file is None else self.file.location

    @property
    def is_stream(self):
        """Whether it is a pipe that can be read only once."""
        return not (callable(self._rows) or isinstance(self._rows, list))

    @property
    def are_cells(self):
        """Whether values are the cells of a text file, in which NA stands for none."""
        return self.kind in (CSV, TSV)

    def column(self, column):
        """The name of a column that the user gave by its name or its number from 1.

        Raises InputError where there is no such column, or there are two.
        """
        name = str(column)
        if name in self.repeated:
            raise self.error(self.first, f'two columns of the header have the same name, "{name}".')
        if name not in self.names and name.isdigit() and 1 <= int(name) <= len(self.names):
            return self.names[int(name) - 1]
        return name if name in self.names else None

    def describe(self, name):
        """A column for messages."""
        return f'"{name}"' if self.has_names else f"column {name}"


def open_table(
    data,
    *,
    item,
    as_record,
    is_row=lambda item: True,
    labelled=True,
    noun="labelled text",
    header=None,
    header_names=(),
    has_literal_quotes=False,
    skip_invalid=False,
):
    """The `Table` of a file, of a table in memory, or of a sequence.

    Args:
        data: a path, `-`, `tfds:NAME/CONFIG:SPLIT`; a pandas DataFrame or Series, a
            `datasets.Dataset`, a `tf.data.Dataset`, a list of dictionaries, a dictionary of lists,
            or a sequence.
        item: what messages call an item of a sequence, such as "text".
        as_record: a function from such an item to a dictionary; its ValueErrors are raised.
        is_row: a function of the first of some dictionaries in memory: whether they are rows of a
            table. Otherwise they are items.
        labelled: a row has more than a text, so that plain lines are an error.
        noun: what messages call the rows.
        header: whether the first line of a CSV or TSV names its columns; None is by the rule.
        header_names: names, in lower case, by which a header line is recognised.
        has_literal_quotes: quotes of a TSV are ordinary characters, as in GLUE's files.
        skip_invalid: leave out and count lines with another number of columns; otherwise they are
            an error.

    Raises:
        InputError: the file is missing, empty or cannot be read, at opening; a line is invalid,
            when it is reached.
    """
    if not is_file(data):
        return _in_memory(data, item=item, as_record=as_record, is_row=is_row)
    if is_stored_table(data):
        return _stored(str(data))
    file, form = TextFile(data), form_of(data)
    head = file.first_lines()
    form = form or _form_of_content(file, head, labelled=labelled, header_names=header_names)
    if form == JSON:
        return json_table(file)
    if form == CONLL or (labelled and form == TXT):
        hint = _no_table(form, data, head)
        raise InputError(f"Could not read {file.name} as {noun}: {hint}")
    if form == TXT:
        rows = lambda: ((number, {"1": line}) for number, line in file.lines())  # noqa: E731
        names = {"names": ("1",), "has_names": False}
        return Table(file.name, "lines", "plain lines", rows, file=file, **names)
    if form == CSV:
        delimiter, begin = _delimiter_of(
            file, header_names=header_names if form_of(data) is None else None
        )
        cells, format = lambda: _csv_cells(file, delimiter, begin), "CSV"
    else:
        format, is_quoted = "TSV", False
        if not has_literal_quotes:
            file.hold()
            is_quoted, has_quotes = quotes_of_tsv(file)
            quotes = "cells in quotes, as pandas writes them" if is_quoted else "literal quotes"
            format = f"TSV ({quotes})" if has_quotes else format
        cells = lambda: _csv_cells(file, "\t", 0) if is_quoted else _tsv_cells(file)  # noqa: E731
    return _table_of_cells(
        file,
        form,
        format,
        cells,
        header=True if header is None and form_of(data) == CSV else header,
        header_names=header_names,
        skip_invalid=skip_invalid,
    )


def open_objects(data, *, item, as_record, comment=None, is_row=lambda item: False):
    """As `open_table`, for dictionaries that only JSON can hold; of any other text the `TextFile`.

    Its attribute `head` has the lines up to the first that is neither empty nor begins with
    `comment`.
    """
    if not is_file(data) or is_stored_table(data):
        return open_table(data, item=item, as_record=as_record, is_row=is_row)
    file, form = TextFile(data), form_of(data)
    file.head = file.first_lines(comment=comment)
    if form == JSON or (form is None and is_json_object(file.head[-1][1])):
        return json_table(file)
    return file


def json_table(file):
    """The `Table` of a `TextFile` of JSON Lines, or of a JSON array."""
    objects = file.json_objects()
    first = next(objects, None)
    if first is None:
        raise InputError(f"{file.name} is an empty JSON array. Expected objects in it.")
    rows = file.json_objects if file.may_be_read_again else lambda: chain([first], objects)
    format = "a JSON array" if file.location == "item" else "JSON Lines"
    return Table(file.name, JSON, format, rows, names=first[1], file=file, calls_columns="keys")


def _no_table(form, data, head):
    """Why a file of one text, or word, per line has no labels."""
    if form == CONLL:
        return "its name says that it is CoNLL, with one word per line, for taggers."
    if form_of(data) == TXT:
        return (
            "a .txt file has one text per line and no labels. Name a table with tabs .tsv, one "
            "with commas .csv."
        )
    return (
        f"line {head[-1][0]} has 1 column. Expected CSV, TSV or JSON Lines with a text and a label."
    )


def _form_of_content(file, head, *, labelled, header_names):
    """The form of a file whose name has no extension that says it."""
    line = head[-1][1]
    if is_json_object(line):
        return JSON
    if "\t" in line:
        return TSV
    if _names_delimiter(line, header_names) is not None:
        return CSV
    if labelled and _common_delimiter(file) is not None:
        return CSV
    return TXT


def _names_delimiter(line, header_names):
    """The delimiter by which a line holds a known name, or None."""
    return next(
        (d for d in ",;" if len(cells := _cells(line, d)) > 1 and {*cells} & {*header_names}), None
    )


def _delimiter_of(file, *, header_names):
    """-> (the delimiter of a CSV, the number of lines before its first row).

    `header_names` are those by which it may be CSV, None where its own name says so.
    """
    number, line = file.first_lines()[-1]
    if match := _SEPARATOR_LINE.fullmatch(line):
        return match[1], number
    delimiter = None if header_names is None else _names_delimiter(line, header_names)
    return delimiter or _common_delimiter(file) or ",", 0


def _common_delimiter(file):
    """The delimiter by which nearly all rows have as many cells as the first; None without one."""
    lines = [line for _, line in file.first_lines(count=_SAMPLE_LINES)]
    widths = {}
    for delimiter in ",;\t":
        rows = [row for row in csv.reader((f"{x}\n" for x in lines), delimiter=delimiter) if row]
        same = sum(len(row) == len(rows[0]) for row in rows)
        if same >= _LEAST_OF_ONE_WIDTH * len(rows):  # the others are errors, with their lines
            widths[delimiter] = len(rows[0])
    best = max(widths, key=widths.get, default=None)
    return best if best is not None and widths[best] > 1 else None


def _cells(line, delimiter):
    """The cells of a line, in lower case, without spaces around them."""
    return [cell.strip().casefold() for cell in next(csv.reader([line], delimiter=delimiter), ())]


def _csv_cells(file, delimiter, begin):
    """Yields (the line where it begins, cells) of every row; a cell may have several lines."""
    lines = (line for _, line in islice(file.raw_lines(), begin, None))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    number = begin + 1
    try:
        for cells in reader:
            if cells:
                yield number, cells
            number = begin + reader.line_num + 1
    except csv.Error as error:
        raise file.error(number, f"not CSV ({error}).") from None


def _tsv_cells(file):
    return ((number, line.split("\t")) for number, line in file.lines() if line)


def quotes_of_tsv(file):
    """-> (whether quotes enclose the cells of a TSV, whether there are any), from all its lines.

    pandas encloses a cell with a tab, a line break or a quote in it, and doubles that quote. So
    quotes are those of CSV where every cell with one is enclosed, and one of the cells has such a
    character or is in the first line. In all other files they are ordinary characters.
    """
    record, is_open, number, is_needed, has_quotes = "", False, 0, False, False
    for _, line in file.raw_lines():
        if '"' not in line and not is_open:
            number += 1
            continue
        has_quotes = True
        record += line
        is_open ^= line.count('"') % 2
        if is_open and len(record) < _LONGEST_RECORD:
            continue
        record = record.rstrip("\r\n")
        if is_open or not _CELLS.fullmatch(record):
            return False, True
        inside = _QUOTED_CELL.findall(record)
        is_needed |= number == 0 or any({*cell} & {*'"\t\r\n'} for cell in inside)
        record, number = "", number + 1
    return is_needed and not is_open, has_quotes


def _table_of_cells(file, kind, format, cells, *, header, header_names, skip_invalid):
    rows = cells()
    first = next(rows)
    names = [cell.strip() for cell in first[1]]
    has_header = header
    if header is None:
        has_header = not {name.casefold() for name in names}.isdisjoint(header_names)
    is_again = file.may_be_read_again

    def read():
        lines = cells() if is_again else chain([first], rows)
        if has_header:
            next(lines)
        for number, row in lines:
            if len(row) != len(first[1]):
                if skip_invalid:
                    table.skipped += 1
                    continue
                raise file.error(
                    number,
                    f"{counted(len(row), 'column')}, but the first line has {len(first[1])}; every "
                    f"line of {kind.upper()} needs the same number of columns.",
                )
            if has_header and row == first[1]:
                raise file.error(
                    number,
                    Naming(
                        "the header line again, as where files were joined; remove it here (if the "
                        "first line is not a header, set {header=False})."
                    ),
                )
            yield number, dict(zip(table.names, row, strict=True))

    columns, repeated = _named(names) if has_header else (map(str, range(1, len(names) + 1)), ())
    table = Table(
        file.name,
        kind,
        format,
        read,
        file=file,
        names=columns,
        repeated=repeated,
        has_names=has_header,
        first=first[0],
        is_undecided=header is None,
    )
    return table


def _named(names):
    """-> (names of the columns as pandas makes them unique, the names of several columns)."""
    unique, seen = [], {}
    for number, name in enumerate(names):
        name = name or f"Unnamed: {number}"
        count = seen[name] = seen.get(name, 0) + 1
        unique.append(name if count == 1 else f"{name}.{count - 1}")
    return unique, frozenset(name for name, count in seen.items() if count > 1)


def is_unnamed(name):
    """Whether a column has no name, as the index that pandas writes."""
    return name.startswith("Unnamed: ")


def _stored(name):
    """The table of a Parquet file, of a folder that `datasets` saved, or of a tfds split."""
    is_tfds = name.startswith(PREFIX)
    stored = TfdsSplit(name) if is_tfds else ArrowTable(name)
    first = next(stored.rows(), None)
    location = "record" if is_tfds else "row"
    if first is None:
        raise InputError(f"{name} has no {location}s.")

    def rows():
        return enumerate((TfdsSplit if is_tfds else ArrowTable)(name).rows(), start=1)

    return Table(
        name,
        "tfds" if is_tfds else "arrow",
        stored.format,
        rows,
        names=first,
        location=location,
        calls_columns="features" if is_tfds else "columns",
        class_labels=stored.class_labels,
    )


def _in_memory(data, *, item, as_record, is_row):
    rows, names, repeated = _rows_of(data)
    is_table = names is not None or bool(rows) and all(isinstance(row, Mapping) for row in rows)
    if not (is_table and is_row(rows[0] if rows else {})):
        records = list(enumerate(map(as_record, rows), start=1))
        return Table(f"the given {item}s", "given", f"given {item}s", records, item=item)
    if not names and not rows:
        raise InputError("The given table has no columns. Expected one with a text in each row.")
    if names is None:
        names = dict.fromkeys(str(name) for row in rows for name in row)
        rows = [{str(name): value for name, value in row.items()} for row in rows]
    return Table(
        "the given table",
        "table",
        f"{counted(len(rows), 'row')} in memory",
        list(enumerate(rows, start=1)),
        names=names,
        repeated=repeated,
        class_labels=_class_names(data),
    )


def _rows_of(data):
    """-> (the items of a table or a sequence, the columns' names or None, those of several)."""
    if hasattr(data, "itertuples"):  # a DataFrame
        names, repeated = _named([str(name) for name in data.columns])
        rows = data.itertuples(index=False, name=None)
        return [dict(zip(names, map(plain, row), strict=True)) for row in rows], names, repeated
    if isinstance(getattr(data, "column_names", None), dict):  # a DatasetDict
        raise InputError(
            f"The data have the splits {', '.join(data)}. Give one of them, such as "
            f"data[{next(iter(data))!r}]."
        )
    if hasattr(data, "column_names") and hasattr(data, "features"):
        labels = _class_names(data)
        return [plain(with_names(row, labels)) for row in data], data.column_names, ()
    if isinstance(data, Mapping):
        columns = {str(name): list(values) for name, values in data.items() if not is_file(values)}
        if len(columns) < len(data) or len({*map(len, columns.values())}) > 1:
            raise InputError(
                "A dictionary must have a list for each column, all of the same length. Received: "
                f"the keys {', '.join(map(str, data))}."
            )
        values = zip(*columns.values(), strict=True)
        return [dict(zip(columns, map(plain, row), strict=True)) for row in values], [*columns], ()
    if not isinstance(data, Iterable):
        raise InputError(
            "Expected a file, a table in memory or a sequence of examples. Received: "
            f"{type(data).__name__}."
        )
    items = data.as_numpy_iterator() if hasattr(data, "as_numpy_iterator") else data
    return [plain(item) for item in items], None, ()


def _class_names(data):
    """The names of the labels in each column of labels, or of lists of them, of a `Dataset`."""
    features = getattr(data, "features", None)
    features = features.items() if isinstance(features, Mapping) else ()
    features = {column: getattr(feature, "feature", feature) for column, feature in features}
    return {name: feature.names for name, feature in features.items() if hasattr(feature, "names")}


def plain(value):
    """A value in memory in Python's own types; None for what pandas has in place of a value."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else tuple(value)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return plain(value.tolist()) if hasattr(value, "tolist") else value
