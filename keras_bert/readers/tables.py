"""Tables: CSV, TSV, JSON, plain lines, Parquet, tfds and data in memory, as rows of named columns.

The extension of a file decides its form: `.csv` has a header line, `.tsv` has one where its first
line holds a known name, `.txt` has one text per line. Standard input, and a file without one of
these extensions, is recognised by its content.
"""

import csv
import re
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import islice
from typing import Any

from keras_bert.base.errors import InputError, Naming
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import counted, quoted
from keras_bert.readers.sources import (
    CONLL,
    CSV,
    JSON,
    TSV,
    TXT,
    Located,
    TextFile,
    class_names,
    is_file,
    is_stored_table,
    rows_in_memory,
    unique_names,
)
from keras_bert.records.file_formats import PREFIX, ArrowTable, TfdsSplit

_LARGE = 64 << 20  # bytes of a file, whose rows take four times as much memory
_SAMPLE_LINES = 1000  # by which the delimiter of a CSV is chosen
_LEAST_OF_ONE_WIDTH = 0.9
_SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)  # of Excel
_CELL = r'(?:"(?:[^"]|"")*"|[^"\t\r\n]*)'  # in quotes, or without any
_CELLS = re.compile(rf"{_CELL}(?:\t{_CELL})*")
_NEEDS_QUOTES = re.compile(r'["\t\r\n]')
_BEGINS_ARRAY = re.compile(r"\s*\[\s*(\{\s*([\"}].*)?)?").fullmatch
csv.field_size_limit(256 << 20)


@dataclass
class Table(Located):
    """The rows of a source, as (location, dictionary by the column's name).

    Columns without a name are called "Unnamed: 0" and so on, and those of a table without a header
    line "1", "2" and so on. A file may be iterated again; a pipe only after `survey`.
    """

    name: str  # what errors begin with
    kind: str  # "csv", "tsv", "lines", "jsonl", "tfds", "arrow", "table" (in memory) or "given"
    format: str  # in words
    rows: Any  # a list, or a function that reads them; see `TextFile.raw_lines` on `keep`
    names: Any = ()  # of the columns; of JSON those of the first object
    _: KW_ONLY
    has_names: bool = True  # or only numbers
    calls_columns: str = "columns"  # in messages
    location: str = "row"  # likewise
    file: TextFile | None = None
    item: str | None = None  # what messages call one of a sequence
    # The columns with labels of numbered classes. None is there a row that has no label, such as
    # one on which the annotators did not agree.
    class_labels: Any = ()
    repeated: Any = ()  # names of several columns
    first: int = 1  # the line of the header, or of the first row
    is_undecided: bool = False  # the rule, and not the user, decided whether there is a header
    skipped: int = 0  # lines that were left out so far
    stored: ArrowTable | None = None  # which it was read from

    def __iter__(self):
        return iter(self.rows() if callable(self.rows) else self.rows)

    def peek(self):
        """The first row, which is read again; None of an empty table."""
        return next(self.rows(keep=True) if callable(self.rows) else iter(self.rows), None)

    def survey(self):
        """All rows, before they are read as examples; those of a large file are read again."""
        if self.file is not None and self.file.size < _LARGE:
            self.rows = [*self]
        return iter(self)

    def all_names(self):
        """The names of all columns; of JSON those of all objects, which are read for it."""
        if self.kind != JSON:
            return [*self.names]
        return [*dict.fromkeys(name for _, row in self.survey() for name in row)]

    def error(self, line, message):
        if self.item is not None and isinstance(line, int):
            name = self.item.capitalize()
            return InputError.naming("{} {} of those given: {}", name, line, message)
        return super().error(line, message)

    @property
    def is_stream(self):
        """Whether it is a pipe that can be read only once."""
        return callable(self.rows) and self.file is not None and self.file.is_pipe

    @property
    def are_cells(self):
        """Whether values are the cells of a text file, in which NA stands for none."""
        return self.kind in (CSV, TSV)

    def column(self, column):
        """The name of a column that the user gave by its name or its number from 1, or None.

        Raises InputError where two columns have the name.
        """
        name = str(column)
        if name in self.repeated:
            raise self.error(self.first, f'two columns of the header have the same name, "{name}".')
        if name not in self.names and name.isdigit() and 1 <= int(name) <= len(self.names):
            return self.names[int(name) - 1]
        return name if name in self.names else None

    def existing(self, column):
        """As `column`; InputError where there is none."""
        name = self.column(column)
        if name is None:
            names = quoted(self.names) if self.has_names else f"1 to {len(self.names)}"
            raise InputError(f'{self.name} has no column "{column}". Its columns are {names}.')
        return name

    def describe(self, name):
        """A column for messages."""
        return f'"{name}"' if self.has_names else f"column {name}"


def open_source(data, *, item, as_record, is_row):
    """The `Table` of a stored table or of data in memory, and of any other file the `TextFile`."""
    if isinstance(data, TextFile):
        return data
    if not is_file(data):
        return _in_memory(data, item=item, as_record=as_record, is_row=is_row)
    return _stored(str(data)) if is_stored_table(data) else TextFile(data)


def open_table(
    data,
    *,
    item,
    as_record,
    is_row=lambda item: True,
    least=2,
    noun="labelled text",
    parts="a text and a label",
    header=None,
    header_names=(),
    has_literal_quotes=False,
    skip_invalid=False,
    has_spaces=False,
):
    """The `Table` of a file, of a table in memory, or of a sequence.

    Args:
        data: a path, a `TextFile`, `-`, `tfds:NAME/CONFIG:SPLIT`; a pandas DataFrame or Series, a
            `datasets.Dataset`, a `tf.data.Dataset`, a list of dictionaries, a dictionary of lists,
            or a sequence, whose items messages call `item` and `as_record` makes dictionaries.
        is_row: whether dictionaries in memory, by the first of them, are rows and not items.
        least: the columns that a file needs at least; `noun` and `parts` are what it has then.
        header: whether the first line of a CSV or TSV names its columns; None is by the rule, with
            `header_names`, in lower case.
        has_literal_quotes, skip_invalid: as in GLUE's files, quotes of a TSV are ordinary
            characters, and lines with another number of columns are left out and counted.
        has_spaces: whether plain lines are rows with spaces between the columns.

    Raises:
        InputError: the file is missing, empty or cannot be read, at opening; a line is invalid,
            when it is reached.
    """
    file = open_source(data, item=item, as_record=as_record, is_row=is_row)
    if isinstance(file, Table):
        return file
    number, line = file.first_line()
    form = file.form or _form_of_content(file, line, header_names, is_wide=least > 1)
    if form == JSON:
        return json_table(file)
    format, begin, layout = form.upper(), 0, {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    if form == CSV:
        separator = _SEPARATOR_LINE.fullmatch(line)
        delimiter = separator[1] if separator else _delimiter_of(file, line, header_names)
        begin, layout = number if separator else 0, {"delimiter": delimiter or ","}
        header = True if header is None and file.form == CSV else header
    elif form == TXT and has_spaces:
        format, layout = "columns between spaces", {"delimiter": " ", "skipinitialspace": True}
    elif form == TXT:
        format, layout, header = "plain lines", None, False
    elif form == TSV and not has_literal_quotes and file.has('"'):
        format = "TSV (literal quotes)"
        if _quotes_enclose_cells(file):
            format, layout = "TSV (cells in quotes, as pandas writes them)", {"delimiter": "\t"}
    rows = partial(_rows_of_cells, file, layout, begin)
    options = {"header": header, "header_names": header_names, "skip_invalid": skip_invalid}
    table = _table_of_cells(file, "lines" if form == TXT else form, format, rows, **options)
    if form == CONLL or len(table.names) < least:
        width = len(table.names)
        reason = (
            f"line {number} has {'one column' if width == 1 else counted(width, 'column')}. "
            f"Expected CSV, TSV or JSON Lines with {parts}"
        )
        if form == CONLL:
            reason = "its name says that it is CoNLL, with one word per line, for taggers"
        elif file.form == TXT:
            reason = (
                "a .txt file has one text per line and no labels. Name a table with tabs .tsv, one "
                "with commas .csv"
            )
        raise InputError(f"Could not read {file.name} as {noun}: {reason}.")
    return table


def open_objects(data, *, item, as_record, comment=None, is_row=lambda item: False):
    """As `open_table`, for dictionaries that only JSON can hold; of any other text the `TextFile`.

    Its attribute `first` is the first line that is neither empty nor begins with `comment`.
    """
    file = open_source(data, item=item, as_record=as_record, is_row=is_row)
    if isinstance(file, Table):
        return file
    file.first = file.first_line(comment=comment)
    is_json = is_json_object(file.first[1]) if file.form is None else file.form == JSON
    return json_table(file) if is_json else file


# JSON.


def json_table(file):
    """The `Table` of a `TextFile` of JSON Lines, or of a JSON array."""
    first = next(json_objects(file, keep=True), None)
    if first is None:
        raise InputError(f"{file.name} is an empty JSON array. Expected objects in it.")
    format = "a JSON array" if file.location == "item" else "JSON Lines"
    about = {"calls_columns": "keys", "location": file.location, "file": file}
    return Table(file.name, JSON, format, partial(json_objects, file), [*first[1]], **about)


def is_json_object(line):
    """Whether a file whose first line this is, is JSON Lines or a JSON array of objects."""
    if _BEGINS_ARRAY(line):
        return True
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(parse_json(line), dict)
    except NotJson:
        # A brace and quotes at the start can only be meant as JSON; anything else is text.
        return line.lstrip("{ ").startswith('"')


def json_objects(file, *, keep=False):
    """Yields (line number, dictionary) of JSON Lines, or (number, dictionary) of a JSON array."""
    if _BEGINS_ARRAY(file.first_line()[1]):
        file.location, advice = "item", "Expected an array of objects."
        records = enumerate(parse_file(file, keep=keep), start=1)
    else:
        records, advice = _json_lines(file, keep=keep), "Write it as {…} on one line."
    for number, record in records:
        if not isinstance(record, dict):
            raise file.error(number, f"not a JSON object. {advice}")
        yield number, record


def _json_lines(file, *, keep):
    for number, line in file.lines(keep=keep):
        if line.strip():
            try:
                yield number, parse_json(line)
            except NotJson as error:
                message = f"not JSON ({error}); JSON Lines have one object per line."
                raise file.error(number, message) from None


def parse_file(file, *, keep=False, advice=""):
    """The JSON of a whole file; InputError of anything else, with an `advice` at its end."""
    begin, _ = file.first_line()
    try:
        lines = islice(file.lines(keep=keep), begin - 1, None)
        return parse_json("\n".join(line for _, line in lines))
    except NotJson as error:
        where = f", line {error.line + begin - 1}" if error.line is not None else ""
        raise InputError(f"{file.name}{where}: not JSON ({error}).{advice}") from None


# Cells.


def _form_of_content(file, line, names, *, is_wide):
    """The form of a file whose name has no extension that says it."""
    if is_json_object(line):
        return JSON
    if "\t" in line:
        return TSV
    return CSV if _delimiter_of(file, line, names, is_wide=is_wide) else TXT


def _delimiter_of(file, line, names, *, is_wide=True):
    """The delimiter of a CSV, or None.

    It is that by which its first line holds a known name, or else, where rows are to be wide, by
    which nearly all rows have as many cells as the first, the most of several.
    """
    for delimiter in ",;":
        cells = next(csv.reader([line], delimiter=delimiter), ())
        if len(cells) > 1 and {cell.strip().casefold() for cell in cells} & {*names}:
            return delimiter
    lines, widths = [*islice(file.raw_lines(keep=True), _SAMPLE_LINES)] if is_wide else [], {}
    for delimiter in ",;\t" if is_wide else "":
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        same = sum(len(row) == len(rows[0]) for row in rows)
        if len(rows[0]) > 1 and same >= _LEAST_OF_ONE_WIDTH * len(rows):
            widths[delimiter] = len(rows[0])  # lines of another width are errors
    return max(widths, key=widths.get, default=None)


def _rows_of_cells(file, layout, begin, keep):
    """Yields (the line where it begins, cells) of every row; a cell may have several lines.

    Without a `layout`, of the csv module, a line is a row of one cell.
    """
    if layout is None:
        yield from ((number, [line]) for number, line in file.lines(keep=keep))
        return
    number = begin + 1
    reader = csv.reader(islice(file.raw_lines(keep=keep), begin, None), strict=True, **layout)
    try:
        for cells in reader:
            if cells:
                yield number, cells
            number = begin + reader.line_num + 1
    except csv.Error as error:
        raise file.error(number, f"not CSV ({error}).") from None


def _quotes_enclose_cells(file):
    """Whether quotes enclose the cells of a TSV, from all its lines.

    pandas encloses a cell with a tab, a line break or a quote in it, and doubles that quote. So
    quotes are those of CSV where every cell with one is enclosed, and one of the cells has such a
    character or is in the first line. In all other files they are ordinary characters.
    """
    record, is_needed = [], False

    def lines():
        for line in file.raw_lines(keep=True):
            record.append(line)
            yield line

    try:
        for number, cells in enumerate(csv.reader(lines(), delimiter="\t", strict=True)):
            written = "".join(record).rstrip("\r\n")
            record.clear()
            if '"' in written:
                if not _CELLS.fullmatch(written):
                    return False
                is_needed |= number == 0 or any(map(_NEEDS_QUOTES.search, cells))
    except csv.Error:
        return False
    return is_needed


def _table_of_cells(file, kind, format, rows, *, header, header_names, skip_invalid):
    first_line, first = next(rows(keep=True), (1, []))
    names, has_header, repeated = [cell.strip() for cell in first], header, ()
    if header is None:
        has_header = not {name.casefold() for name in names}.isdisjoint(header_names)
    columns = [*map(str, range(1, len(names) + 1))]
    if has_header:
        columns, repeated = unique_names(names)

    def read(*, keep=False):
        width = len(first)
        for number, row in islice(rows(keep), int(has_header), None):
            if len(row) == width and not (has_header and row == first):
                yield number, dict(zip(columns, row))  # noqa: B905
            elif len(row) == width:
                raise file.error(
                    number,
                    Naming(
                        "the header line again, as where files were joined; remove it here (if the "
                        "first line is not a header, set {header=False})."
                    ),
                )
            elif skip_invalid:
                table.skipped += 1
            else:
                raise file.error(
                    number,
                    f"{counted(len(row), 'column')}, but the first line has {width}; every line of "
                    f"{'the file' if kind == 'lines' else kind.upper()} needs the same number of "
                    "columns.",
                )

    about = {"repeated": repeated, "first": first_line, "is_undecided": header is None}
    about |= {"has_names": has_header, "location": file.location, "file": file}
    table = Table(file.name, kind, format, read, columns, **about)
    return table


# Stored tables, and data in memory.


def _stored(name):
    """The table of a Parquet file, of a folder that `datasets` saved, or of a tfds split."""
    stored = (TfdsSplit if name.startswith(PREFIX) else ArrowTable)(name)
    first = next(stored.rows(), None)
    if first is None:
        raise InputError(f"{name} has no {stored.location}s.")
    about = {n: getattr(stored, n) for n in ("calls_columns", "location", "class_labels")}
    about["stored"] = stored if isinstance(stored, ArrowTable) else None
    rows = lambda *, keep=False: enumerate(stored.rows(), start=1)  # noqa: E731
    return Table(name, stored.kind, stored.format, rows, [*first], **about)


def _in_memory(data, *, item, as_record, is_row):
    names, rows, repeated = rows_in_memory(data)
    if names is None or not is_row(rows[0] if rows else {}):
        items, format = [*enumerate(map(as_record, rows), start=1)], f"given {item}s"
        return Table(f"the {format}", "given", format, items, item=item, calls_columns="keys")
    if not names and not rows:
        raise InputError("The given table has no columns. Expected one with a text in each row.")
    format, rows = f"{counted(len(rows), 'row')} in memory", [*enumerate(rows, start=1)]
    about = {"repeated": repeated, "class_labels": class_names(data)}
    return Table("the given table", "table", format, rows, names, **about)
