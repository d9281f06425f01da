"""Sources of labelled examples: files and their lines, tables and sequences in memory."""

import glob
import numbers
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from io import BufferedReader, TextIOWrapper
from itertools import chain, tee
from operator import methodcaller
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.records.file_formats import (
    GZIP,
    PREFIX,
    decompressed,
    gzip_errors,
    is_parquet,
    is_saved_dataset,
    with_names,
)

STANDARD_INPUT, STANDARD_INPUT_NAME = "-", "standard input"
# A whole SQuAD file may be one line; a file without line ends must not fill the memory.
_LONGEST_LINE = 256 << 20
CSV, TSV, TXT, CONLL, JSON, PARQUET = "csv", "tsv", "txt", "conll", "jsonl", "parquet"
FASTTEXT, FOLDER = "fasttext", "folder"
_FORMS = {
    **{".csv": CSV, ".tsv": TSV, ".txt": TXT, ".conll": CONLL, ".conllu": CONLL},
    **{".json": JSON, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET},
}
_OPEN_ERRORS = {
    FileNotFoundError: "does not exist. Give the path of a text file",
    IsADirectoryError: "is a folder without .txt or .md files. Give the path of a text file",
    PermissionError: "may not be read by this user",
}
_ZIP = b"PK\x03\x04"  # how such files begin
_EXCEL = (_ZIP, b"\xd0\xcf\x11\xe0")
_BLOCK = 1 << 20
_without_end = methodcaller("rstrip", "\r\n")
# JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")


def is_text(value):
    """Whether a value is a string, without a NUL or half a surrogate pair."""
    return isinstance(value, str) and _NO_TEXT.search(value) is None


def parsed_json(text):
    """The value of a JSON text with examples; NaN is None.

    Raises NotJson, also for an object in which a key comes twice.
    """
    return parse_json(text, parse_constant=_constant, object_pairs_hook=_object)


def _constant(name):
    return None if name == "NaN" else float(name)


def _object(pairs):
    record = dict(pairs)
    if len(record) < len(pairs):
        seen = set()
        again = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise NotJson(f'the key "{again}" comes twice')
    return record


def is_file(data):
    """Whether `data` names a file, standard input or a tfds split, and is not a sequence."""
    return isinstance(data, str) or hasattr(data, "__fspath__")


def is_stored_table(data):
    """Whether `data` names a tfds split, a Parquet file, or a folder that `datasets` saved."""
    if str(data).startswith(PREFIX) or is_saved_dataset(data):
        return True
    return form_of(data) == PARQUET or (form_of(data) is None and is_parquet(data))


def form_of(path):
    """The form that the extension of a file names (before .gz); None for any other, and for `-`."""
    return _FORMS.get(os.path.splitext(str(path).casefold().removesuffix(".gz"))[1])


def files_of(data):
    """The files that are meant by a path, a glob, or a list of these; other data alone in a list.

    Raises InputError if a glob matches nothing.
    """
    if isinstance(data, list | tuple) and data and all(map(is_file, data)):
        return [path for pattern in data for path in files_of(pattern)]
    is_glob = is_file(data) and glob.has_magic(str(data)) and not os.path.exists(data)
    if not is_glob or str(data).startswith(PREFIX):
        return [data]
    paths = sorted(glob.glob(str(data)))
    if not paths:
        raise InputError(f"No file matches {data}. Expected a path, or a glob of files.")
    return paths


class Located:
    """A source with a `name`, whose places are each a `location`: a "line", "row" or "item"."""

    def label(self, line):
        """The name of a location in messages."""
        return line

    def error(self, line, message):
        """The InputError that names this source and the location in it: a number, or in words."""
        where = f"{self.location} {self.label(line)}" if isinstance(line, int) else line
        return InputError.naming("{}, {}: {}", self.name, where, message)


class TextFile(Located):
    """The lines of a file, a pipe or standard input (`-`), which may be compressed with gzip.

    A line ends at a line feed, a carriage return, or both, and nowhere else: U+2028 and the like
    are part of the text. Lines of a pipe are read once, but for those that were read with `keep`.

    Attributes: `name`; `form`, see `form_of`; `is_pipe`; `size` in bytes, 0 of a pipe; `first`, the
    `first_line` that its form was told by, or None.
    """

    kind, location, first = None, "line", None

    def __init__(self, path):
        self.name = STANDARD_INPUT_NAME if str(path) == STANDARD_INPUT else str(path)
        self.form = form_of(path)
        stream, self.is_pipe, self.size = self._open(), True, 0
        if self.name != STANDARD_INPUT_NAME:
            status = os.fstat(stream.fileno())
            self.is_pipe, self.size = not stat.S_ISREG(status.st_mode), status.st_size
        if self.is_pipe:
            self._lines = self._read(stream)
        else:
            stream.close()

    def raw_lines(self, *, keep=False):
        """Yields each line with its end; those of a pipe are read again if `keep`.

        Iterators of a pipe take its lines from each other; of a file they do not.

        Raises InputError if it is not text.
        """
        if not self.is_pipe:
            return self._read(self._open())
        lines = self._lines
        if keep:
            lines, self._lines = tee(lines)
        return lines

    def lines(self, *, keep=False):
        """Yields as `raw_lines` (line number from 1, line without its end)."""
        return enumerate(map(_without_end, self.raw_lines(keep=keep)), start=1)

    def has(self, character):
        """Whether there is an ASCII character anywhere; lines of a pipe are read again."""
        if self.is_pipe:
            return any(character in line for line in self.raw_lines(keep=True))
        with self._open() as stream, gzip_errors(self.name):
            blocks = iter(partial(_plain(stream).read, _BLOCK), b"")
            return any(character.encode() in block for block in blocks)

    def first_line(self, *, comment=None):
        """(number, line) of the first that is neither empty nor begins with `comment`, or the last.

        Raises InputError if all are empty.
        """
        first = None
        for number, line in self.lines(keep=True):
            if line.strip():
                first = number, line
                if comment is None or not line.startswith(comment):
                    break
        if first is None:
            raise InputError(f"{self.name} is empty. At least one line of text is needed.")
        return first

    def _open(self):
        if self.name == STANDARD_INPUT_NAME:
            return sys.stdin.buffer
        try:
            return Path(self.name).open("rb")
        except OSError as error:
            reason = _OPEN_ERRORS.get(type(error), f"cannot be read: {error.strerror}")
            raise InputError(f"{self.name} {reason}.") from None

    def _read(self, stream):
        stream = stream if hasattr(stream, "peek") else BufferedReader(stream)
        with gzip_errors(self.name):
            text = TextIOWrapper(_plain(stream), "utf-8-sig", errors="surrogateescape", newline="")
            try:
                more = partial(text.readline, _LONGEST_LINE + 1)
                for number, line in enumerate(iter(more, ""), start=1):
                    if not line.isascii() or "\0" in line or len(line) > _LONGEST_LINE:
                        self._check_text(number, line)
                    yield line
            finally:
                if not text.closed:
                    text.detach()
                if self.name != STANDARD_INPUT_NAME:
                    stream.close()

    def _check_text(self, number, line):
        """Raises InputError for a line with surrogates, bytes that are not UTF-8, or a NUL."""
        if len(line) > _LONGEST_LINE:
            raise self.error(number, f"more than {_LONGEST_LINE >> 20} MiB without a line end.")
        wrong = _NO_TEXT.search(line)
        if wrong is None:
            return
        if wrong[0] == "\0":
            raise self.error(number, "contains a NUL byte; this is not a text file.")
        reason = f"byte {len(line[: wrong.start()].encode()) + 1} is not UTF-8"
        encoding = "WINDOWS-1252"
        if number == 1 and line.startswith(("\udcff\udcfe", "\udcfe\udcff")):
            reason, encoding = "the file is UTF-16", "UTF-16"
        name, converted = "FILE", "FILE.utf8"
        if self.name != STANDARD_INPUT_NAME:  # with its extension, which decides its form
            path = Path(self.name)
            name, converted = self.name, path.with_name(f"{path.stem}.utf8{path.suffix}")
        raise self.error(
            number,
            f"{reason}. Convert it with `iconv -f {encoding} -t UTF-8 {shlex.quote(name)} > "
            f"{shlex.quote(str(converted))}`.",
        )


def _plain(stream):
    """A stream of text; InputError for a known form that is not text."""
    begin, name = stream.peek(4)[:4], str(getattr(stream, "name", STANDARD_INPUT_NAME))
    if begin in _EXCEL and (begin != _ZIP or name.casefold().endswith(".xlsx")):
        raise InputError(
            f"{name} is an Excel workbook. Save it as CSV, or pass the table of pandas.read_excel "
            "in Python."
        )
    if begin == _ZIP:
        raise InputError(f"{name} is a zip archive. Unpack it, and give the file in it.")
    return decompressed(stream) if begin.startswith(GZIP) else stream


def rows_in_memory(data):
    """-> (the columns' names, or None of a sequence, its rows or items, names of several)."""
    if hasattr(data, "itertuples"):  # a DataFrame
        names, repeated = _frame_names(data)
        columns = (data.iloc[:, number] for number in range(len(names)))
        columns = [_as_written(column) for column in columns]
        rows = zip(*columns, strict=True)
        return names, [dict(zip(names, map(plain, row), strict=True)) for row in rows], repeated
    if isinstance(getattr(data, "column_names", None), dict):  # a DatasetDict
        raise InputError(
            f"The data have the splits {', '.join(data)}. Give one of them, such as "
            f"data[{next(iter(data))!r}]."
        )
    if hasattr(data, "column_names") and hasattr(data, "features"):
        labels = class_names(data)
        return data.column_names, [plain(with_names(row, labels)) for row in data], ()
    if isinstance(data, Mapping):
        columns = {str(name): [*column] for name, column in data.items() if not is_file(column)}
        if len(columns) < len(data) or len({*map(len, columns.values())}) > 1:
            raise InputError(
                "A dictionary must have a list for each column, all of the same length. Received: "
                f"the keys {', '.join(map(str, data))}."
            )
        return [*columns], records_of_columns(plain(columns)) if columns else [], ()
    if not isinstance(data, Iterable):
        raise InputError(
            "Expected a file, a table in memory or a sequence of examples. Received: "
            f"{type(data).__name__}."
        )
    items = data.as_numpy_iterator() if hasattr(data, "as_numpy_iterator") else data
    rows = [plain(item) for item in items]
    is_table = rows and all(isinstance(row, dict) for row in rows)
    return [*dict.fromkeys(chain.from_iterable(rows))] if is_table else None, rows, ()


def is_numbered(data):
    """Whether data in memory are a table whose columns have numbers in place of names."""
    names = [*data.columns] if hasattr(data, "itertuples") else []
    are_numbers = all(isinstance(n, numbers.Integral) and type(n) is not bool for n in names)
    return bool(names) and are_numbers


def _frame_names(data):
    """The `unique_names` of a DataFrame: those of a file without a header if it has numbers."""
    are_numbers = is_numbered(data)
    return unique_names([str(name + 1 if are_numbers else name) for name in data.columns])


def _as_written(column):
    """The values of a DataFrame's column; numbers of fewer than 64 bits as they are printed."""
    kind = str(column.dtype).casefold()
    is_short = kind in ("float16", "float32")
    return column.to_numpy(kind, na_value=float("nan")) if is_short else column


def class_names(data):
    """The names of the labels in each column of labels, or of lists of them, of a `Dataset`."""
    features = getattr(data, "features", None)
    features = features.items() if isinstance(features, Mapping) else ()
    features = {column: getattr(feature, "feature", feature) for column, feature in features}
    return {name: feature.names for name, feature in features.items() if hasattr(feature, "names")}


def declared_labels(data):
    """The columns that a table in memory declares as labels: `class_names`, pandas' categories."""
    dtypes = [str(dtype) for dtype in data.dtypes] if hasattr(data, "itertuples") else []
    names = _frame_names(data)[0] if dtypes else ()
    categories = [name for name, dtype in zip(names, dtypes, strict=True) if dtype == "category"]
    return [*class_names(data), *categories]


def plain(value):
    """A value in memory in Python's own types; None for what pandas has in place of a value."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:  # an error if it is to be a text or a label
            return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else tuple(value)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if type(value).__name__ in ("float16", "float32"):  # 0.1, and not 0.10000000149011612
        return plain(float(str(value)))
    return plain(value.tolist()) if hasattr(value, "tolist") else value


def records_of_columns(columns):
    """{"text": […], "start": […]} -> a list of dictionaries; None if the lengths differ."""
    lists = list(columns.values())
    if not all(isinstance(cells, list) and len(cells) == len(lists[0]) for cells in lists):
        return None
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*lists, strict=True)]


def unique_names(names):
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
