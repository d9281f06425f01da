"""Tables: CSV, TSV, JSON, plain lines, Parquet, tfds and data in memory, as rows of named columns.

The extension of a file decides its form: `.csv` has a header line, `.tsv` has one if its first line
holds a known name, `.txt` has one text per line. Standard input, and a file without one of these
extensions, is recognised by its content. A table in memory whose columns have numbers in place of
names has no header, as pandas reads one with `header=None`.
"""

import csv
import re
from functools import partial
from itertools import chain, islice

from keras_bert.base.errors import InputError, Naming
from keras_bert.base.files import NotJson
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.annotation_tools import STATUS, rows_of_tools
from keras_bert.readers.folders import texts_of_classes, texts_of_files
from keras_bert.readers.labels import DATE, is_number
from keras_bert.readers.sources import (
    CONLL,
    CSV,
    FASTTEXT,
    FOLDER,
    JSON,
    TSV,
    TXT,
    TextFile,
    class_names,
    declared_labels,
    is_file,
    is_numbered,
    is_stored_table,
    parsed_json,
    plain,
    rows_in_memory,
    unique_names,
)
from keras_bert.readers.table import Table
from keras_bert.records.file_formats import PREFIX, ArrowTable, TfdsSplit

_SAMPLE_LINES = 1000  # by which the delimiter of a CSV is chosen
_FASTTEXT = "__label__"
_LEAST_OF_ONE_WIDTH = 0.9
_WORDS_OF_A_SENTENCE = 4
_SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)  # of Excel
_CELL = r'(?:"(?:[^"]|"")*"|[^"\t\r\n]*)'  # in quotes, or without any
_CELLS = re.compile(rf"{_CELL}(?:\t{_CELL})*")
_NEEDS_QUOTES = re.compile(r'["\t\r\n]')
_BEGINS_ARRAY = re.compile(r"\s*\[\s*(\{\s*([\"}].*)?)?").fullmatch
csv.field_size_limit(256 << 20)


def open_source(data, *, item, as_record):
    """The `Table` of a stored table or of data in memory, and of any other file the `TextFile`."""
    if isinstance(data, TextFile):
        return data
    if not is_file(data):
        return _in_memory(data, item=item, as_record=as_record)
    if (texts := texts_of_files(data)) is not None:
        return texts
    return _stored(str(data)) if is_stored_table(data) else TextFile(data)


def open_table(
    data,
    *,
    item,
    as_record,
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
    if is_file(data) and (table := texts_of_classes(data)) is not None:
        return table
    file = open_source(data, item=item, as_record=as_record)
    if isinstance(file, Table) and file.kind == FOLDER and least > 1:
        raise InputError(
            f"{file.name} has one text per file. Expected {noun}: {parts}. Labels are in a table, "
            "or in the names of folders, one for each class."
        )
    if isinstance(file, Table):
        return file
    number, line = file.first_line()
    if file.form in (TXT, None) and line.startswith(_FASTTEXT):
        return _fasttext(file)
    form = file.form or _form_of_content(file, line, header_names, is_wide=least > 1)
    if form == JSON:
        return json_table(file)
    format, begin, layout = form.upper(), 0, {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    if form == CSV:
        separator = _SEPARATOR_LINE.fullmatch(line)
        delimiter = separator[1] if separator else _delimiter_of(file, line, header_names)
        begin, layout = number if separator else 0, {"delimiter": delimiter or ","}
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
    table.delimiter = layout and layout["delimiter"]
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


def open_objects(data, *, item, as_record, comment=None):
    """Opens as `open_table` dictionaries that only JSON can hold; of other text the `TextFile`.

    Its attribute `first` is the first line that is neither empty nor begins with `comment`.
    """
    file = open_source(data, item=item, as_record=as_record)
    if isinstance(file, Table):
        return file
    file.first = file.first_line(comment=comment)
    is_json = is_json_object(file.first[1]) if file.form is None else file.form == JSON
    return json_table(file) if is_json else file


# JSON.


def json_table(file):
    """The `Table` of a `TextFile` of JSON Lines, or of a JSON array."""
    rows = lambda *, keep=False: rows_of_tools(json_objects(file, keep=keep))  # noqa: E731
    first = next(rows(keep=True), None)
    if first is None:
        raise InputError(f"{file.name} is an empty JSON array. Expected objects in it.")
    format = "a JSON array" if file.location == "item" else "JSON Lines"
    about = {"calls_columns": "keys", "location": file.location, "file": file}
    table = Table(file.name, JSON, format, rows, [*first[1]], **about)
    if STATUS in table.names:  # of Label Studio, whose annotations have columns of their own
        table.names = table.all_names()
    return table


def is_json_object(line):
    """Whether a file whose first line this is, is JSON Lines or a JSON array of objects."""
    if _BEGINS_ARRAY(line):
        return True
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(parsed_json(line), dict)
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
                yield number, parsed_json(line)
            except NotJson as error:
                message = f"not JSON ({error}); JSON Lines have one object per line."
                raise file.error(number, message) from None


def parse_file(file, *, keep=False, advice=""):
    """The JSON of a whole file; InputError of anything else, with an `advice` at its end."""
    begin, _ = file.first_line()
    try:
        lines = islice(file.lines(keep=keep), begin - 1, None)
        return parsed_json("\n".join(line for _, line in lines))
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

    It is that by which its first line holds a known name, or else, if rows are to be wide, the only
    one by which nearly all rows have as many cells as the first.

    Raises InputError if there are several, as in rows without a header whose texts have commas.
    """
    for delimiter in ",;\t":
        cells = next(csv.reader([line], delimiter=delimiter), ())
        if len(cells) > 1 and {cell.strip().casefold() for cell in cells} & {*names}:
            return delimiter
    lines, found = [*islice(file.raw_lines(keep=True), _SAMPLE_LINES)] if is_wide else [], []
    for delimiter in ",;\t" if is_wide else "":
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        same = sum(len(row) == len(rows[0]) for row in rows)
        if len(rows[0]) > 1 and same >= _LEAST_OF_ONE_WIDTH * len(rows):
            found.append(delimiter)  # lines of another width are errors
    if len(found) > 1:
        shown = " or by ".join(f'"{delimiter}"' for delimiter in found).replace("\t", "a tab")
        raise InputError(
            f"{file.name}: columns could be separated by {shown}. Name the columns in a header, or "
            f"write the line sep={found[-1]} before all others, as Excel does."
        )
    return next(iter(found), None)


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
    quotes are those of CSV if every cell with one is enclosed, and one of the cells has such a
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
        if file.form == CSV and not has_header:
            _check_header(file, first_line, names)
            has_header = True
    columns, written = [*map(str, range(1, len(names) + 1))], {}
    if has_header:
        columns, repeated = unique_names(names)
        written = {name: cell for name, cell in zip(names, first, strict=True) if name != cell}

    def read(*, keep=False):
        width = len(first)
        for number, row in islice(rows(keep), int(has_header), None):
            if len(row) == width:
                yield number, dict(zip(columns, row))  # noqa: B905
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
    about["written"] = written
    table = Table(file.name, kind, format, read, columns, **about)
    return table


def _check_header(file, line, names):
    """Raises InputError if all cells of a first line look like data: sentences, numbers, dates."""
    named = [name for name in names if name]
    if named and all(map(_is_data, named)):
        raise file.error(
            line,
            Naming(
                "the first line could be an example or name the columns: {}. Set {header=False} if "
                "it is an example, or {header=True}.",
                listed([name if len(name) <= 40 else f"{name[:39]}…" for name in named], quote='"'),
            ),
        )


def _is_data(name):
    """Whether the name of a column is a number, a date, or has as many words as a sentence."""
    return is_number(name) or DATE.fullmatch(name) or len(name.split()) >= _WORDS_OF_A_SENTENCE


# Labels before texts.


def _fasttext(file):
    """The table of lines `__label__spam the text`, as fastText has them."""

    def rows(*, keep=False):
        for number, line in file.lines(keep=keep):
            labels, words = [], line.split()
            while words and words[0].startswith(_FASTTEXT):
                labels.append(words.pop(0).removeprefix(_FASTTEXT))
            if not labels and words:
                raise file.error(number, f"no {_FASTTEXT} at its beginning, as other lines have.")
            if labels:
                label = labels[0] if len(labels) == 1 else labels
                yield number, {"text": " ".join(words), "label": label}

    names = ["text", "label"]
    return Table(file.name, FASTTEXT, "fastText's lines", rows, names, location="line", file=file)


# Stored tables, and data in memory.


def _stored(name):
    """The table of a Parquet file, of a folder that `datasets` saved, or of a tfds split."""
    stored = (TfdsSplit if name.startswith(PREFIX) else ArrowTable)(name)
    first = next(stored.rows(), None)
    if first is None:
        raise InputError(f"{name} has no {stored.location}s.")
    attributes = ("calls_columns", "location", "class_labels", "declared")
    about = {name: getattr(stored, name) for name in attributes}
    about["stored"] = stored if isinstance(stored, ArrowTable) else None
    rows = lambda *, keep=False: enumerate(map(plain, stored.rows()), start=1)  # noqa: E731
    return Table(name, stored.kind, stored.format, rows, [*first], **about)


def _in_memory(data, *, item, as_record):
    names, rows, repeated = rows_in_memory(data)
    if names is None:
        items, format = [*enumerate(map(as_record, rows), start=1)], f"given {item}s"
        about = {"item": item, "location": item, "calls_columns": "keys"}
        return Table(f"the {format}", "given", format, items, **about)
    if not names and not rows:
        raise InputError("The given table has no columns. Expected one with a text in each row.")
    format = f"{counted(len(rows), 'row')} in memory"
    rows = [*rows_of_tools(enumerate(rows, start=1))]
    if any(STATUS in row for _, row in rows):
        names = [*dict.fromkeys(chain.from_iterable(row for _, row in rows))]
    about = {"repeated": repeated, "class_labels": class_names(data)}
    about |= {"declared": declared_labels(data), "has_names": not is_numbered(data)}
    about["index"] = list(data.index) if hasattr(data, "itertuples") else None
    return Table("the given table", "table", format, rows, names, **about)
