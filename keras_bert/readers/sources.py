"""Where labelled examples come from: the lines of a file, and what examples have in common."""

import codecs
import contextlib
import glob
import os
import re
import stat
import sys
import warnings
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from keras_bert.base.errors import InputError, InputWarning, Naming, argument
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import counted
from keras_bert.records.file_formats import GZIP, decompressed, gzip_errors
from keras_bert.records.stored_tables import is_parquet, is_saved_dataset
from keras_bert.records.tfds_folders import PREFIX

STANDARD_INPUT = "-"
# A whole SQuAD file may be one line; a file without line ends must not fill the memory.
_LONGEST_LINE = 256 << 20
CSV, TSV, TXT, CONLL, JSON, PARQUET = "csv", "tsv", "txt", "conll", "jsonl", "parquet"
_FORMS = {
    **{".csv": CSV, ".tsv": TSV, ".txt": TXT, ".conll": CONLL, ".conllu": CONLL},
    **{".json": JSON, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET},
}
_MOST_LINES = 5  # that a note lists
# JSON's escapes can write what UTF-8 and TensorFlow's strings cannot hold.
_IS_TEXT = re.compile(r"[^\0\ud800-\udfff]*").fullmatch
_BEGINS_ARRAY = re.compile(r"\s*\[\s*(\{\s*([\"}].*)?)?").fullmatch


def is_text(value):
    """Whether a value is a string, without a NUL or half a surrogate pair."""
    return isinstance(value, str) and _IS_TEXT(value) is not None


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
    are part of the text. A file may be read again; a pipe only after `hold`.

    Attributes: `name`, what errors begin with; `location`, what a number in them counts.
    """

    location = "line"

    def __init__(self, path):
        self._path = path
        self.name = "standard input" if str(path) == STANDARD_INPUT else str(path)
        self._head, self._rest = None, None
        stream = self._open()
        if stream is sys.stdin.buffer or not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            self._head, self._rest = [], self._raw_lines(stream)
        else:
            stream.close()

    def error(self, line, message):
        """The InputError that names this source and the location in it: a number, or in words."""
        where = f"{self.location} {line}" if isinstance(line, int) else line
        return InputError.naming("{}, {}: {}", self.name, where, message)

    def lines(self):
        """Yields (line number from 1, line without its end); InputError where it is not text."""
        for number, line in self.raw_lines():
            yield number, line.rstrip("\r\n")

    def raw_lines(self):
        """As `lines`, each with its end."""
        if self._rest is None:
            return self._raw_lines(self._open())
        return chain(self._head, self._rest)

    @property
    def may_be_read_again(self):
        """Whether `lines` may be called again: of a file, or of a pipe that is held."""
        return self._rest is None or self._rest == ()

    def hold(self):
        """Keeps all of a pipe, so that it can be read again; a file is not kept."""
        if self._rest is not None:
            self._head, self._rest = [*self._head, *self._rest], ()

    def first_lines(self, *, comment=None, count=0):
        """The lines up to the first that is neither empty nor begins with `comment`, or `count`.

        Raises InputError where all are empty.
        """
        head, is_empty = [], True
        for number, line in self.raw_lines() if self._rest is None else self._replayed():
            head.append((number, line.rstrip("\r\n")))
            if line.strip():
                is_empty = False
                if len(head) >= count and (comment is None or not line.startswith(comment)):
                    break
        if is_empty:
            raise InputError(f"{self.name} is empty. At least one line of text is needed.")
        return head

    def _replayed(self):
        """The lines of a pipe from its first one; those that are new are kept."""
        yield from list(self._head)
        for line in self._rest:
            self._head.append(line)
            yield line

    def _open(self):
        if self.name == "standard input":
            return sys.stdin.buffer
        try:
            return Path(self._path).open("rb")
        except FileNotFoundError:
            reason = "does not exist. Give the path of a text file"
        except IsADirectoryError:
            reason = "is a folder. Give the path of a text file"
        except PermissionError:
            reason = "may not be read by this user"
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
        raise InputError(f"{self._path} {reason}.")

    def _raw_lines(self, stream):
        peek = getattr(stream, "peek", None)
        is_gzip, number = peek is not None and peek(2)[:2] == GZIP, 0
        closed = contextlib.nullcontext() if stream is sys.stdin.buffer else stream
        with closed, gzip_errors(self.name):
            stream = decompressed(stream) if is_gzip else stream
            while read := stream.readline(_LONGEST_LINE + 1):
                if number == 0 and read.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise self._encoding_error(1, "the file is UTF-16", "UTF-16")
                if number == 0:
                    read = read.removeprefix(codecs.BOM_UTF8)
                for line in read.splitlines(keepends=True) if b"\r" in read else (read,):
                    number += 1
                    if len(line) > _LONGEST_LINE or b"\0" in line:
                        raise self._not_text(number, line)
                    try:
                        yield number, line.decode("utf-8")
                    except UnicodeDecodeError as error:
                        reason = f"byte {error.start + 1} is not UTF-8"
                        raise self._encoding_error(number, reason, "WINDOWS-1252") from None

    def _encoding_error(self, number, reason, encoding):
        name = "FILE" if self.name == "standard input" else self.name
        return self.error(
            number,
            f"{reason}. Expected UTF-8. Convert it with "
            f"`iconv -f {encoding} -t UTF-8 {name} > utf8.txt`.",
        )

    def _not_text(self, number, line):
        if len(line) > _LONGEST_LINE:
            return self.error(number, f"more than {_LONGEST_LINE >> 20} MiB without a line end.")
        return self.error(number, "contains a NUL byte; this is not a text file.")

    def json_objects(self):
        """Yields (line number, dictionary) of JSON Lines, or (number, dictionary) of a JSON array.

        Raises InputError where one is not a JSON object.
        """
        lines = self.lines()
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


def records_of_columns(columns):
    """{"text": […], "start": […]} -> a list of dictionaries; None where the lengths differ."""
    lists = list(columns.values())
    if not all(isinstance(cells, list) and len(cells) == len(lists[0]) for cells in lists):
        return None
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*lists, strict=True)]


class ExampleSource:
    """One pass over the examples of a table, or of lines, in order; each type has a subclass.

    A subclass takes `data`: a path, `-` for standard input, `tfds:NAME/CONFIG:SPLIT`, a table in
    memory or a sequence. Examples of files are read when they are reached, and raise their
    InputErrors then. Those of data in memory are read at opening, and may be iterated again; an
    item of another type raises ValueError. Settings of columns are not for sequences, which have
    none: `settings` are those that were given, or None. `stops` makes a row that is left out an
    error.

    Attributes: `name`, `kind` (see `Table`), `description`, one line for the user on how the data
    are read, `schema`, the columns as a model folder stores them (None where there are none),
    `is_chosen_by_content` (a column was chosen by what it holds, and not by its name), and
    `at_end`, a function that is called after the last example.
    """

    description = ""
    schema = None
    is_chosen_by_content = False
    at_end = None

    def __init__(self, records, *, stops=False, **settings):
        self._records, self._stops, self._left_out = records, stops, {}
        self.name, self.kind = records.name, getattr(records, "kind", None)
        for name, value in settings.items() if self.kind == "given" else ():
            if value is not None:
                raise InputError.naming(
                    "{} is for files; {} have no columns.", argument(name), self.name
                )

    def __iter__(self):
        yield from self._examples
        if self.at_end is not None:
            self.at_end()

    def error(self, line, message):
        """The InputError that names a location in the source."""
        return self._records.error(line, message)

    def notes(self):
        """Lines for the user about the examples read so far: what was left out, and where."""
        return [
            f"{self.name}, {located(where, self)}: {counted(len(where), 'row')} {reason}."
            for reason, where in self._left_out.items()
        ]

    def leave_out(self, line, reason):
        """Counts a row that is left out; InputError where `stops`."""
        if self._stops:
            reason = reason.partition(",")[0]
            raise self.error(
                line, Naming('a row {}. Set {missing="skip"} to leave such rows out.', reason)
            )
        self._left_out.setdefault(reason, []).append(line)

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
    *first, last = map(str, where[:_MOST_LINES])
    more = len(where) - _MOST_LINES
    if more > 0:
        first, last = [*first, last], f"{more:,} more"
    location = source._records.location
    return f"{location}s {', '.join(first)} and {last}" if first else f"{location} {last}"


def first_location(examples):
    """The source and location of the first of some examples, and whether there are more."""
    first = examples[0]
    where = f"line {first.line}" if isinstance(first.line, int) else first.line
    return f"{first.source.name}, {where}" + (" and later" if len(examples) > 1 else "")
