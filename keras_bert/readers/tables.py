"""Rows of TSV, JSON Lines and plain lines, each with the place where it stands.

A quote is a literal character: none of these formats has quoting.
"""

from collections.abc import Iterator
from itertools import chain, islice

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import counted
from keras_bert.readers.text_file import TextFile

# How many lines are looked at before the format and the columns are settled.
SAMPLE_LINES = 1000


class Table(TextFile):
    """One pass over the rows of a file, a pipe or standard input, told apart by content.

    A first line that is a JSON object makes it JSON Lines; a first line with a TAB makes it TSV;
    otherwise every line is a row of one column. Attributes:

    * `name`: the path, or "standard input"; every error begins with it.
    * `kind`: "tsv", "jsonl" or "lines".
    * `sample`: the first rows as (line number, cells), read ahead at opening.
    * `width`: the number of columns; None for JSON Lines, whose objects may differ.
    * `skipped`: how many lines were left out so far.

    A cell of TSV and lines is a str. A row of JSON Lines is a dict, as it was parsed.
    Memory is the sample's; a missing, empty or unreadable file raises InputError at opening, a bad
    line when it is reached: with `skip_odd`, one of another number of columns is left out instead.
    """

    calls_columns = "keys"  # of objects; cells have none

    def __init__(self, path, *, sample_lines=SAMPLE_LINES, skip_odd=False):
        self.skipped = 0
        self._skip_odd = skip_odd
        super().__init__(path)
        with self.closed_on_error():
            self._begin(self._lines(), sample_lines)

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

    def _tsv_rows(self, lines):
        for number, line in lines:
            if not line:
                continue  # an empty line between or after rows holds nothing
            cells = line.split("\t")
            if len(cells) != self.width and self._skip_odd:
                self.skipped += 1
                continue
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
            yield number, self._json_object(number, line)


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
