"""Rows of TSV, JSON Lines and plain lines, each with the place where it stands.

A quote is a literal character: none of these formats has quoting. A line ends at a line feed (with
or without a carriage return before it) and nowhere else: U+2028 and the like stay in the text.
"""

import contextlib
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from keras_bert.errors import InputError
from keras_bert.files import NotJson, parse_json
from keras_bert.wording import counted

STANDARD_INPUT = "-"
# How many lines are looked at before the format and the columns are settled.
SAMPLE_LINES = 1000


class Table:
    """One pass over the rows of a file, a pipe or standard input, told apart by content.

    A first line that is a JSON object makes it JSON Lines; a first line with a TAB makes it TSV;
    otherwise every line is a row of one column. Attributes:

    * `name`: the path, or "standard input"; every error begins with it.
    * `kind`: "tsv", "jsonl" or "lines".
    * `sample`: the first rows as (line number, cells), read ahead at opening.
    * `width`: the number of columns; None for JSON Lines, whose objects may differ.

    A cell of TSV and lines is a str. A row of JSON Lines is a dict, as it was parsed.
    Memory is the sample's; a missing, empty or unreadable file raises InputError at opening, a bad
    line when it is reached.
    """

    def __init__(self, path, *, sample_lines=SAMPLE_LINES):
        self._closer = contextlib.ExitStack()
        self.name, stream = self._open(path)
        with self.closed_on_error():
            self._begin(_decoded_lines(stream, self.name), sample_lines)

    def _begin(self, lines, sample_lines):
        head = []
        for number, line in lines:
            head.append((number, line))
            if line.strip():
                break
        else:
            raise InputError(f"{self.name} is empty; at least one line of text is needed.")
        lines = chain(head, lines)
        self.kind = _kind(line)
        self.width = {"tsv": line.count("\t") + 1, "lines": 1, "jsonl": None}[self.kind]
        rows = {"tsv": self._tsv_rows, "lines": _whole_lines, "jsonl": self._json_rows}
        self._rows = rows[self.kind](lines)
        # Plain lines need no look ahead, so that a pipe is answered line by line.
        self.sample = list(islice(self._rows, 1 if self.kind == "lines" else sample_lines))

    def __iter__(self) -> Iterator[tuple[int, list | dict]]:
        """Yields (line number from 1, row); may be called once."""
        with self._closer:
            yield from chain(self.sample, self._rows)

    @contextlib.contextmanager
    def closed_on_error(self):
        """A context that closes the file when it is left by an exception."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._closer)
            yield
            stack.pop_all()

    def error(self, line, message):
        """The InputError that names this file and the line."""
        return InputError(f"{self.name}, line {line}: {message}")

    def _open(self, path):
        if str(path) == STANDARD_INPUT:
            return "standard input", sys.stdin.buffer
        path = Path(path)
        try:
            return str(path), self._closer.enter_context(path.open("rb"))
        except FileNotFoundError:
            raise InputError(f"{path} does not exist; give the path of a text file.") from None
        except IsADirectoryError:
            raise InputError(f"{path} is a folder; give the path of a text file.") from None
        except PermissionError:
            raise InputError(f"{path} may not be read by this user.") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None

    def _tsv_rows(self, lines):
        for number, line in lines:
            if not line:
                continue  # an empty line between or after rows holds nothing
            cells = line.split("\t")
            if len(cells) != self.width:
                raise self.error(
                    number,
                    f"{counted(len(cells), 'column')}, but the first line has {self.width}; every "
                    "line needs the same number of columns, parted by single TABs.",
                )
            yield number, cells

    def _json_rows(self, lines):
        for number, line in lines:
            if not line.strip():
                continue
            try:
                row = parse_json(line)
            except NotJson as error:
                raise self.error(
                    number, f"not JSON ({error}); JSON Lines have one object a line."
                ) from None
            if not isinstance(row, dict):
                raise self.error(number, "not a JSON object; write it as {…} on one line.")
            yield number, row


def _kind(first_line):
    if first_line.lstrip().startswith("{"):
        try:
            if isinstance(parse_json(first_line), dict):
                return "jsonl"
        except NotJson:
            # A brace and quotes at the start can only be meant as JSON; anything else is text.
            if first_line.lstrip("{ ").startswith('"'):
                return "jsonl"
    return "tsv" if "\t" in first_line else "lines"


def _whole_lines(lines):
    for number, line in lines:
        yield number, [line]


def _decoded_lines(stream, name):
    """Yields (line number from 1, text without line end) of a binary stream."""
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if b"\0" in line:
            raise InputError(f"{name}, line {number}: holds a NUL byte; this is not a text file.")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: byte {error.start + 1} is not UTF-8; "
                "convert the file to UTF-8."
            ) from None
        yield number, text.removesuffix("\n").removesuffix("\r")
