"""Where labelled examples come from: the lines of a file, and what examples have in common."""

import glob
import os
import re
import stat
import sys
import warnings
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader, TextIOWrapper
from itertools import islice, tee
from operator import methodcaller
from pathlib import Path
from typing import Any

from keras_bert.base.errors import InputError, InputWarning
from keras_bert.base.formatting import counted, listed
from keras_bert.readers.settings import ERROR, SKIP
from keras_bert.records.file_formats import GZIP, decompressed, gzip_errors
from keras_bert.records.stored_tables import is_parquet, is_saved_dataset
from keras_bert.records.tfds_folders import PREFIX

STANDARD_INPUT, STANDARD_INPUT_NAME = "-", "standard input"
# A whole SQuAD file may be one line; a file without line ends must not fill the memory.
_LONGEST_LINE = 256 << 20
CSV, TSV, TXT, CONLL, JSON, PARQUET = "csv", "tsv", "txt", "conll", "jsonl", "parquet"
_FORMS = {
    **{".csv": CSV, ".tsv": TSV, ".txt": TXT, ".conll": CONLL, ".conllu": CONLL},
    **{".json": JSON, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET},
}
_without_end = methodcaller("rstrip", "\r\n")
_BLOCK = 1 << 20
_MOST_LINES = 5  # that a note lists
# JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")


def is_text(value):
    """Whether a value is a string, without a NUL or half a surrogate pair."""
    return isinstance(value, str) and _NO_TEXT.search(value) is None


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

    Raises InputError where a glob matches nothing.
    """
    if isinstance(data, list | tuple) and data and all(map(is_file, data)):
        return [path for pattern in data for path in files_of(pattern)]
    is_glob = is_file(data) and glob.has_magic(str(data)) and not os.path.exists(data)
    if not is_glob or str(data).startswith(PREFIX):
        return [data]
    paths = sorted(glob.glob(str(data)))
    if not paths:
        raise InputError(f"No file matches {data}. Expected a path, or a glob of labelled files.")
    return paths


class TextFile:
    """The lines of a file, a pipe or standard input (`-`), which may be compressed with gzip.

    A line ends at a line feed, a carriage return, or both, and nowhere else: U+2028 and the like
    are part of the text. Lines of a pipe are read once, but for those that were read with `keep`.

    Attributes: `name`, what errors begin with; `location`, what a number in them counts; `is_pipe`;
    `size` in bytes, 0 of a pipe; `first`, the `first_line` that its form was told by, or None.
    """

    kind, location, first = None, "line", None

    def __init__(self, path):
        self.name = STANDARD_INPUT_NAME if str(path) == STANDARD_INPUT else str(path)
        stream, self.is_pipe, self.size = self._open(), True, 0
        if self.name != STANDARD_INPUT_NAME:
            status = os.fstat(stream.fileno())
            self.is_pipe, self.size = not stat.S_ISREG(status.st_mode), status.st_size
        if self.is_pipe:
            self._lines = self._read(stream)
        else:
            stream.close()

    def error(self, line, message):
        """The InputError that names this source and the location in it: a number, or in words."""
        where = f"{self.location} {line}" if isinstance(line, int) else line
        return InputError(f"{self.name}, {where}: {message}")

    def raw_lines(self, *, keep=False):
        """Yields each line with its end; those of a pipe are read again if `keep`.

        Iterators of a pipe take its lines from each other; of a file they do not.

        Raises InputError where it is not text.
        """
        if not self.is_pipe:
            return self._read(self._open())
        if keep:
            lines, self._lines = tee(self._lines)
            return lines
        return self._lines

    def lines(self, *, keep=False):
        """As `raw_lines`, of (line number from 1, line without its end)."""
        return enumerate(map(_without_end, self.raw_lines(keep=keep)), start=1)

    def has(self, character):
        """Whether there is an ASCII character anywhere; lines of a pipe are read again."""
        if self.is_pipe:
            return any(character in line for line in self.raw_lines(keep=True))
        with self._open() as stream, gzip_errors(self.name):
            plain = decompressed(stream) if stream.peek(2)[:2] == GZIP else stream
            return any(
                character.encode() in block for block in iter(partial(plain.read, _BLOCK), b"")
            )

    def first_line(self, *, comment=None):
        """(number, line) of the first that is neither empty nor begins with `comment`, or the last.

        Raises InputError where all are empty.
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
        except FileNotFoundError:
            reason = "does not exist. Give the path of a text file"
        except IsADirectoryError:
            reason = "is a folder. Give the path of a text file"
        except PermissionError:
            reason = "may not be read by this user"
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
        raise InputError(f"{self.name} {reason}.")

    def _read(self, stream):
        stream = stream if hasattr(stream, "peek") else BufferedReader(stream)
        with gzip_errors(self.name):
            plain = decompressed(stream) if stream.peek(2)[:2] == GZIP else stream
            text = TextIOWrapper(plain, "utf-8-sig", errors="surrogateescape", newline="")
            try:
                number, more = 0, partial(text.readline, _LONGEST_LINE + 1)
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
        is_utf16 = number == 1 and line.startswith(("\udcff\udcfe", "\udcfe\udcff"))
        if wrong[0] == "\0":
            raise self.error(number, "contains a NUL byte; this is not a text file.")
        reason = f"byte {len(line[: wrong.start()].encode()) + 1} is not UTF-8"
        reason, encoding = (
            ("the file is UTF-16", "UTF-16") if is_utf16 else (reason, "WINDOWS-1252")
        )
        name = "FILE" if self.name == STANDARD_INPUT_NAME else self.name
        raise self.error(
            number,
            f"{reason}. Expected UTF-8. Convert it with "
            f"`iconv -f {encoding} -t UTF-8 {name} > utf8.txt`.",
        )


class Missing(Exception):
    """Raised for a row that lacks a part, such as "a label", in the column `place`; and `why`."""

    def __init__(self, part, *, place="", why=""):
        super().__init__(part)
        self.part, self.place, self.why = part, place, why


class ExampleSource:
    """One pass over the examples of a table, or of lines, in order; each type has a subclass.

    A subclass takes `data`: a path, `-` for standard input, `tfds:NAME/CONFIG:SPLIT`, a table in
    memory or a sequence. Examples of files are read when they are reached, and raise their
    InputErrors then. Those of data in memory are read at opening, and may be iterated again; an
    item of another type raises ValueError. Rows that lack a part are left out and counted; with the
    setting `missing` "error" they raise an InputError.

    Attributes: `name`, `kind` (see `Table`), `description`, one line for the user on how the data
    are read, `schema`, the columns as a model folder stores them (None where there are none),
    `is_chosen_by_content` (a column was chosen by what it holds, and not by its name), and
    `at_end`, a function that is called after the last example.
    """

    ROW = "row"  # what notes call that of an example
    description = ""
    schema = None
    is_chosen_by_content = False
    at_end = None

    def __init__(self, records, *, missing=SKIP, need_all=False, **columns):
        """`need_all`: a source of which everything is left out is an error; `columns`: settings
        that sequences do not have."""
        self._records, self._missing, self._need_all = records, missing, need_all
        self._left_out, self._count = {}, 0
        self.name, self.kind = records.name, records.kind
        for name, value in columns.items() if self.kind == "given" else ():
            if value is not None:
                raise InputError(f"`{name}` is for files; {self.name} have no columns.")

    def __iter__(self):
        yield from self._examples
        if self.at_end is not None:
            self.at_end()

    @property
    def location(self):
        """What the `line` of an example counts: "line", "row", "item" or "record"."""
        return self._records.location

    def error(self, line, message):
        """The InputError that names a location in the source."""
        return self._records.error(line, message)

    def notes(self):
        """Lines for the user about the examples read so far: what was left out, and where."""
        lines = [
            f"{self.name}, {located(where, self)}: {counted(len(where), self.ROW)} without {part}, "
            f"left out{why}."
            for (part, _, why), where in self._left_out.items()
        ]
        return lines + [f"{self.name}: {note}" for note in self._more_notes()]

    def _more_notes(self):
        return ()

    def _set_examples(self, examples):
        self._examples = list(examples) if self.kind in ("given", "table") else examples

    def _each(self, rows, read):
        """Yields `read(line, row)` of the rows that lack nothing, and counts the others."""
        for line, row in rows:
            try:
                example = read(line, row)
            except Missing as missing:
                if self._missing == ERROR:
                    raise self.error(
                        line,
                        f'a {self.ROW} without {missing.part}. Set `missing="skip"` to leave such '
                        f"{self.ROW}s out.",
                    ) from None
                key = missing.part, missing.place, missing.why
                self._left_out.setdefault(key, []).append(line)
            else:
                self._count += 1
                yield example
        if self._need_all and self._left_out and not self._count:
            part, place, _ = max(self._left_out, key=lambda key: len(self._left_out[key]))
            part = part.removeprefix("a ") + (f" in {place}" if place else "")
            where = located([line for lines in self._left_out.values() for line in lines], self)
            raise InputError(
                f"{self.name} {'have' if self.kind == 'given' else 'has'} no {part} of any record "
                f"({where}), so there is nothing to train on or to evaluate."
            )

    def may_lack(self, key):
        """Whether the first row has a key, so that others lack it where they do not have it."""
        return key in self._records.names

    def value(self, line, record, key, part, *, more=""):
        """What a dictionary has under a key; where it has nothing, Missing or an InputError."""
        value = record.get(key)
        if value is not None and value != "":
            return value
        if self.may_lack(key):
            raise Missing(part, place=f'"{key}"')
        columns = self._records.calls_columns
        raise self.error(line, f'no "{key}" among the {columns} ({listed(record)}){more}')

    def _text(self, line, record, key):
        """The text of a dictionary under a key; InputError where there is none."""
        text = record.get(key)
        if not isinstance(text, str):
            raise self.error(line, f'no text under "{key}"; a string is needed there.')
        if not is_text(text):
            raise self.error(line, f'"{key}" contains a NUL or half a surrogate pair.')
        return text


@dataclass(slots=True)  # one that is frozen takes three times as long to make
class Example:
    """What examples have in common: where each is in its `source`, a number or in words."""

    line: int | str
    source: Any = field(default=None, kw_only=True, compare=False, repr=False)

    def error(self, message):
        """The InputError that names the location of the example."""
        return self.source.error(self.line, message)


def not_reported(line):
    """The `report` of a caller that wants no lines: choices by content are warnings then."""


def report_source(source, report):
    """Reports how a source is read; without a report, warns where a column's content decided."""
    if report not in (None, not_reported) and source.description:
        report(source.description)
    elif report in (None, not_reported) and getattr(source, "is_chosen_by_content", False):
        warnings.warn(source.description, InputWarning, stacklevel=3)


def report_notes(source, report):
    """Reports what was left out of a source; without a report, a warning for each note."""
    for note in source.notes():
        if report in (None, not_reported):
            warnings.warn(note, InputWarning, stacklevel=3)
        else:
            report(f"Note: {note}")


def located(where, source):
    """The rows of a source: `line 4`, `lines 4, 7 and 9`, `lines 4, 7, 9, 12, 15 and 80 more`."""
    *first, last = map(str, islice(where, _MOST_LINES))
    more = len(where) - _MOST_LINES
    if more > 0:
        first, last = [*first, last], f"{more:,} more"
    location = "" if isinstance(where[0], str) else source.location
    location = f"{location}s " if location and first else location and f"{location} "
    return f"{location}{', '.join(first)} and {last}" if first else f"{location}{last}"


def first_location(examples):
    """The source and location of the first of some examples, and whether there are more."""
    first = examples[0]
    where = f"line {first.line}" if isinstance(first.line, int) else first.line
    return f"{first.source.name}, {where}" + (" and later" if len(examples) > 1 else "")
