"""Where labelled examples come from: files, standard input, tfds splits and data in memory.

`open_records` is the one place where these become records with named columns and a location.
"""

import codecs
import contextlib
import csv
import gzip
import re
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import counted
from keras_bert.readers.datasets import (
    ArrowTable,
    TfdsSplit,
    is_parquet,
    is_saved_dataset,
    with_names,
)
from keras_bert.records.tfds_folders import PREFIX

STANDARD_INPUT = "-"
# How many lines are read before the format and the columns are decided.
SAMPLE_LINES = 1000
# A whole SQuAD file may be one line; a file without line ends must not fill the memory.
_LONGEST_LINE = 256 << 20
# JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
_IS_TEXT = re.compile(r"[^\0\ud800-\udfff]*").fullmatch
_BEGINS_ARRAY = re.compile(r"\s*\[\s*(\{\s*([\"}].*)?)?").fullmatch
_CSV_NAMES = (".csv", ".csv.gz")
_LEAST_OF_ONE_WIDTH = 0.9


def is_text(value):
    """Whether a value is a string, without a NUL or half a surrogate pair."""
    return isinstance(value, str) and _IS_TEXT(value) is not None


def is_file(data):
    """Whether `data` names a file, standard input or a tfds split, and is not a sequence."""
    return isinstance(data, str) or hasattr(data, "__fspath__")


def is_text_file(data):
    """Whether `data` names a file of text or standard input, whose format is still to be detected.

    The others are tables whose columns have names: tfds splits, Parquet files and folders that
    `datasets` saved.
    """
    if not is_file(data) or str(data).startswith(PREFIX):
        return False
    return not (is_parquet(data) or is_saved_dataset(data))


def open_records(
    data, *, item, as_record, tables=False, may_be_csv=False, header_names=(), skip_invalid=False
):
    """The `Records` of a path, `-`, `tfds:NAME/CONFIG:SPLIT`, a table in memory or a sequence.

    A path is that of a text file, of a Parquet file, or of a folder that `datasets` saved to disk.

    A table in memory is a pandas DataFrame, a `datasets.Dataset`, a list of dictionaries, or a
    `tf.data.Dataset` of dictionaries; one of strings, or of tuples, is a sequence.

    Args:
        data: any of these.
        item, as_record: see `GivenRecords`.
        tables: dictionaries are the rows of a table, whose columns are chosen as those of a file.
        may_be_csv, header_names, skip_invalid: see `Table`.
    """
    if is_text_file(data):
        return Table(
            data, may_be_csv=may_be_csv, header_names=header_names, skip_invalid=skip_invalid
        )
    if is_file(data):
        return DatasetRecords(str(data))
    items = items_of(data)
    if tables and items and all(isinstance(each, Mapping) for each in items):
        return GivenTable(items, class_labels=_class_names(data))
    return GivenRecords(items, item=item, as_record=as_record)


def open_objects(data, *, item, as_record, comment):
    """As `open_records`, for dictionaries that no table in a text file can hold.

    A text file is a `DetectedFile`: of another format than JSON where its `kind` is None.
    """
    if is_text_file(data):
        return DetectedFile(data, comment=comment)
    return open_records(data, item=item, as_record=as_record)


def items_of(data):
    """The examples of a table in memory or a sequence, as a list."""
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # a DataFrame
        return [{k: _or_none(v) for k, v in row.items()} for row in data.to_dict("records")]
    if isinstance(getattr(data, "column_names", None), dict):  # a DatasetDict
        raise InputError(
            f"The data have the splits {', '.join(data)}. Give one of them, such as "
            f"data[{next(iter(data))!r}]."
        )
    if hasattr(data, "column_names") and hasattr(data, "features"):
        return [with_names(row, _class_names(data)) for row in data]
    if not isinstance(data, Iterable):
        raise InputError(
            "Expected a file, a table in memory or a sequence of examples. Received: "
            f"{type(data).__name__}."
        )
    if hasattr(data, "as_numpy_iterator"):
        return [_plain(element) for element in data.as_numpy_iterator()]
    return list(data)


def _class_names(data):
    """The names of the labels in each column of labels, or of lists of them, of a `Dataset`."""
    features = getattr(data, "features", None)
    each = features.items() if isinstance(features, Mapping) else ()
    each = {column: getattr(feature, "feature", feature) for column, feature in each}
    return {column: feature.names for column, feature in each.items() if hasattr(feature, "names")}


def _plain(value):
    """What a `tf.data.Dataset` gives, in Python's own types."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return _plain(value.tolist()) if hasattr(value, "tolist") else value


class Records:
    """One pass over the records of a source, as (location, record).

    A record is a list of cells (str) or a dictionary.

    Attributes:
        name: what errors begin with.
        kind: "tsv", "csv", "lines", "jsonl", "tfds", "arrow", "table" or "given"; None of a file
            whose format is another.
        format: the format in words.
        sample: the first records, read at opening.
        width: the number of cells; None where records are dictionaries.
        skipped: how many lines were left out so far.
        class_labels: the columns with labels of numbered classes. None is there a record that has
            no label, such as one on which the annotators did not agree.
    """

    kind = None
    location = "line"
    width = None
    calls_columns = "keys"
    skipped = 0
    class_labels = ()

    def error(self, line, message):
        """The InputError that names this source and the location in it: a number, or in words."""
        where = f"{self.location} {line}" if isinstance(line, int) else line
        return InputError(f"{self.name}, {where}: {message}")

    def __iter__(self):
        return chain(self.sample, self._rest)


class GivenRecords(Records):
    """The records of a sequence; a location is the position in it, from 1.

    Args:
        data: the sequence.
        item: what messages call one of its items, such as "text".
        as_record: a function from an item to a dictionary; its ValueErrors are raised.
    """

    kind = "given"

    def __init__(self, data, *, item, as_record):
        self.name = f"the given {item}s"
        self._item = item
        self.sample = list(enumerate(map(as_record, data), start=1))
        self._rest = ()

    def error(self, line, message):
        if isinstance(line, str):
            return super().error(line, message)
        return InputError(f"{self._item.capitalize()} {line} of those given: {message}")


class GivenTable(Records):
    """The rows of a table in memory, as dictionaries; a location is the number of a row, from 1."""

    kind = "table"
    name = "the given table"
    location = "row"
    calls_columns = "columns"

    def __init__(self, rows, *, class_labels=()):
        self.class_labels = class_labels
        self.sample = [
            (n, {k: _or_none(v) for k, v in row.items()}) for n, row in enumerate(rows, 1)
        ]
        self._rest = ()
        self.format = f"{counted(len(self.sample), 'row')} in memory"


def _or_none(value):
    """A cell of a table; None for NaN, which pandas has for an empty one."""
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, list) and value and hasattr(value[0], "tolist"):
        value = [_or_none(each) for each in value]
    return None if isinstance(value, float) and value != value else value


class TextFile(Records):
    """The lines of a file, a pipe or standard input (`-`), which may be compressed with gzip.

    A line ends at a line feed (with or without a carriage return before it) and nowhere else:
    U+2028 and the like are part of the text.
    """

    def __init__(self, path):
        if str(path) == STANDARD_INPUT:
            self.name = "standard input"
            self._stream = contextlib.nullcontext(_decompressed(sys.stdin.buffer))
            return
        self.name = str(path)
        try:
            self._stream = _decompressed(Path(path).open("rb"))
        except FileNotFoundError:
            raise InputError(f"{path} does not exist. Give the path of a text file.") from None
        except IsADirectoryError:
            raise InputError(f"{path} is a folder. Give the path of a text file.") from None
        except PermissionError:
            raise InputError(f"{path} may not be read by this user.") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None

    def lines(self):
        """Yields (line number from 1, line without its end), once; InputError where not text."""
        with self._stream as stream:
            for number, line in enumerate(iter(lambda: self._line(stream), b""), start=1):
                if number == 1:
                    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                        raise self._encoding_error(number, "the file is UTF-16", "UTF-16")
                    line = line.removeprefix(codecs.BOM_UTF8)
                yield number, self._decoded(number, line).removesuffix("\n").removesuffix("\r")

    @property
    def format(self):
        if self.location == "item":
            return "a JSON array"
        return {"jsonl": "JSON Lines", "lines": "plain lines"}.get(self.kind, self.kind.upper())

    def first_lines(self, lines, *, comment=None):
        """The lines up to the first that is neither empty nor begins with `comment`."""
        head, is_empty = [], True
        for number, line in lines:
            head.append((number, line))
            if line.strip():
                is_empty = False
                if comment is None or not line.startswith(comment):
                    break
        if is_empty:
            raise InputError(f"{self.name} is empty. At least one line of text is needed.")
        return head

    def _line(self, stream):
        try:
            return stream.readline(_LONGEST_LINE + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.name} is not a complete gzip file ({error}).") from None

    def _encoding_error(self, number, what, encoding):
        name = "FILE" if self.name == "standard input" else self.name
        return self.error(
            number,
            f"{what}. Expected UTF-8. Convert it: iconv -f {encoding} -t UTF-8 {name} > utf8.txt",
        )

    def _decoded(self, number, line):
        if len(line) > _LONGEST_LINE:
            raise self.error(number, f"more than {_LONGEST_LINE >> 20} MiB without a line end.")
        if b"\0" in line:
            raise self.error(number, "contains a NUL byte; this is not a text file.")
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            what = f"byte {error.start + 1} is not UTF-8"
            raise self._encoding_error(number, what, "WINDOWS-1252") from None

    def json_objects(self, lines):
        """Yields (line number, dictionary) of JSON Lines, or (number, dictionary) of a JSON array.

        Raises InputError where one is not a JSON object.
        """
        for number, line in lines:
            if not line.strip():
                continue
            if _BEGINS_ARRAY(line):
                yield from self._json_array(number, chain([(number, line)], lines))
                return
            try:
                record = parse_json(line)
            except NotJson as error:
                raise self.error(
                    number, f"not JSON ({error}); JSON Lines have one object per line."
                ) from None
            if not isinstance(record, dict):
                raise self.error(number, "not a JSON object; write it as {…} on one line.")
            yield number, record

    def _json_array(self, begin, lines):
        self.location = "item"
        try:
            items = parse_json("\n".join(line for _, line in lines))
        except NotJson as error:
            where = f", line {error.line + begin - 1}" if error.line is not None else ""
            raise InputError(f"{self.name}{where}: not JSON ({error}).") from None
        for number, record in enumerate(items, start=1):
            if not isinstance(record, dict):
                raise self.error(number, "not a JSON object. Expected an array of objects.")
            yield number, record


def _decompressed(stream):
    """A binary stream, decompressed where it begins as gzip does."""
    peek = getattr(stream, "peek", None)
    return gzip.open(stream) if peek is not None and peek(2)[:2] == b"\x1f\x8b" else stream


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


class DetectedFile(TextFile):
    """A text file that is JSON Lines or a JSON array, or else of another format.

    Args:
        path: a path, or `-`.
        comment: how lines begin by which the format is not detected.
        sampled: how many JSON objects are read at opening.

    Attributes:
        head: the lines up to the first that is neither empty nor a comment, as (number, line).
        rest: an iterator over the lines after these; the records have read it where it is JSON.
    """

    def __init__(self, path, *, comment=None, sampled=1):
        super().__init__(path)
        self.rest = self.lines()
        self.head = self.first_lines(self.rest, comment=comment)
        if is_json_object(self.head[-1][1]):
            self.kind = "jsonl"
            self._rest = self.json_objects(chain(self.head, self.rest))
            self.sample = list(islice(self._rest, sampled))
            if not self.sample:
                raise InputError(f"{self.name} is an empty JSON array. Expected objects in it.")


class Table(DetectedFile):
    """The records of a file whose format is detected from its content.

    A JSON object in the first line makes it JSON Lines, whose objects may differ, and a `[` a JSON
    array. A TAB makes it TSV, in which a quote is a character like any other, unless a cell of the
    first line is in quotes or the file is called `.csv`. CSV (RFC 4180, with commas, semicolons or
    TABs) is detected by such a name; by the names in its first line; and with `may_be_csv` where
    its first lines have the same number of cells. Otherwise every line is a record of one cell.
    Only the sample is kept in memory.

    Args:
        path: a path, or `-`.
        may_be_csv: detect CSV by content: every line has more than a text.
        header_names: names of columns, in lower case, by which CSV is detected.
        skip_invalid: leave out and count records with another number of columns; otherwise they are
            an error.

    Raises:
        InputError: the file is missing, empty or cannot be read, at opening; a line is invalid,
            when it is reached.
    """

    def __init__(self, path, *, may_be_csv=False, header_names=(), skip_invalid=False):
        super().__init__(path, sampled=SAMPLE_LINES)
        if self.kind is None:
            self._detect(self.head, self.rest, may_be_csv, header_names, skip_invalid)
            # Plain lines need no sample, so that a pipe is answered line by line.
            self.sample = list(islice(self._rest, 1 if self.kind == "lines" else SAMPLE_LINES))

    def _detect(self, head, lines, may_be_csv, header_names, skip_invalid):
        _, line = head[-1]
        is_named = self.name.casefold().endswith(_CSV_NAMES)
        delimiter = None
        if "\t" in line:
            quoted = any(c[:1] == c[-1:] == '"' and len(c) > 1 for c in line.split("\t"))
            delimiter = "\t" if is_named or quoted else None
        else:
            delimiter = next((d for d in ",;" if {*_cells(line, d)} & {*header_names}), None)
            if delimiter is None and (is_named or may_be_csv):
                head += islice(lines, SAMPLE_LINES)
                delimiter = _delimiter([line for _, line in head])
        lines = chain(head, lines)
        if delimiter is not None:
            rows = self._csv_rows(lines, delimiter)
            first = next(rows)
            self.kind, self.width = "csv", len(first[1])
            self._rest = self._of_one_width(chain([first], rows), skip=skip_invalid)
        elif "\t" in line:
            self.kind, self.width = "tsv", line.count("\t") + 1
            rows = ((number, line.split("\t")) for number, line in lines if line)
            self._rest = self._of_one_width(rows, skip=skip_invalid)
        else:
            self.kind, self.width = "lines", 1
            self._rest = ((number, [line]) for number, line in lines)

    def _of_one_width(self, rows, *, skip):
        for number, cells in rows:
            if len(cells) == self.width:
                yield number, cells
            elif skip:
                self.skipped += 1
            else:
                raise self.error(
                    number,
                    f"{counted(len(cells), 'column')}, but the first line has {self.width}; every "
                    f"line of {self.format} needs the same number of columns.",
                )

    def _csv_rows(self, lines, delimiter):
        """Yields (the line where it begins, cells) of every row; a cell may have several lines."""
        reader = csv.reader((line + "\n" for _, line in lines), delimiter=delimiter, strict=True)
        begin = 1
        try:
            for cells in reader:
                if cells:
                    yield begin, cells
                begin = reader.line_num + 1
        except csv.Error as error:
            raise self.error(begin, f"not CSV ({error}).") from None


csv.field_size_limit(_LONGEST_LINE)


def _cells(line, delimiter):
    """The cells of a line, in lower case, without spaces around them."""
    return [cell.strip().casefold() for cell in next(csv.reader([line], delimiter=delimiter), ())]


def _delimiter(lines):
    """The delimiter by which nearly all rows have as many cells as the first; None without one."""
    widths = {}
    for delimiter in ",;\t":
        rows = [row for row in csv.reader((f"{x}\n" for x in lines), delimiter=delimiter) if row]
        same = sum(len(row) == len(rows[0]) for row in rows)
        if same >= _LEAST_OF_ONE_WIDTH * len(rows):  # the others are errors, with their lines
            widths[delimiter] = len(rows[0])
    best = max(widths, key=widths.get, default=None)
    return best if best is not None and widths[best] > 1 else None


class DatasetRecords(Records):
    """The rows of a Parquet file, of a folder that `datasets` saved, or of a prepared tfds split.

    They are dictionaries, in which a class label is its name, None where it is unknown. A location
    is the number of a row (of tfds, a record), from 1.
    """

    def __init__(self, name):
        self.name = name
        if name.startswith(PREFIX):
            self.kind, self.location, self.calls_columns = "tfds", "record", "features"
            table = TfdsSplit(name)
        else:
            self.kind, self.location, self.calls_columns = "arrow", "row", "columns"
            table = ArrowTable(name)
        self.format, self.class_labels = table.format, table.class_labels
        self._rest = enumerate(table.rows(), start=1)
        self.sample = list(islice(self._rest, 1))
        if not self.sample:
            raise InputError(f"{name} has no {self.location}s.")


def records_of_columns(columns):
    """{"text": […], "start": […]} -> a list of dictionaries; None where the lengths differ."""
    lists = list(columns.values())
    if not all(isinstance(values, list) and len(values) == len(lists[0]) for values in lists):
        return None
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


class ExampleSource:
    """One pass over the examples of `Records`, in order; each type of example has a subclass.

    A subclass takes `data`: a path, `-` for standard input, `tfds:NAME/CONFIG:SPLIT`, or a
    sequence. Examples of files are read when they are reached, and raise their InputErrors then.
    Those of a sequence are read at opening, and may be iterated again; an item of another type
    raises ValueError. Settings of columns are for files only: `settings` are those that were given,
    or None.

    Attributes: `name`, `kind` (see `Records`), and `description`, one line for the user on how a
    file is read.
    """

    description = ""

    def __init__(self, records, **settings):
        self._records = records
        self.name, self.kind = records.name, records.kind
        for name, value in settings.items() if self.kind == "given" else ():
            if value is not None:
                raise InputError(f"`{name}` is for files; {self.name} have no columns.")

    def __iter__(self):
        return iter(self._examples)

    def error(self, line, message):
        """The InputError that names a location in the source."""
        return self._records.error(line, message)

    def notes(self):
        """Lines for the user about the examples read so far."""
        return []

    def _set_examples(self, examples):
        self._examples = list(examples) if self.kind in ("given", "table") else examples

    def _text(self, line, record, key):
        """The text of a dictionary under a key; InputError where there is none."""
        text = record.get(key)
        if not isinstance(text, str):
            raise self.error(line, f'no text under "{key}"; a string is needed there.')
        if not is_text(text):
            raise self.error(line, f'"{key}" contains a NUL or half a surrogate pair.')
        return text


@dataclass(frozen=True, slots=True)
class Example:
    """What examples have in common: where each is in its `source`, a number or in words."""

    line: int | str
    source: Any = field(default=None, kw_only=True, compare=False, repr=False)

    def error(self, message):
        """The InputError that names the location of the example."""
        return self.source.error(self.line, message)


def first_location(examples):
    """The source and location of the first of some examples, and whether there are more."""
    first = examples[0]
    where = f"line {first.line}" if isinstance(first.line, int) else first.line
    return f"{first.source.name}, {where}" + (" and later" if len(examples) > 1 else "")
