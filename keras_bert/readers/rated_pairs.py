"""Rated pairs of words, such as WordSim-353 and SimLex-999: tables with two words and a rating."""

import math
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from typing import NamedTuple

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import quoted
from keras_bert.readers.labels import has_decimal_comma, is_missing, is_number, parsed_number
from keras_bert.readers.sources import CSV, TXT, TextFile, is_stored_table, is_unnamed
from keras_bert.readers.tables import open_table

# Names of columns, in lower case. Those of words are pairs.
_WORDS = (
    *(("word1", "word2"), ("word 1", "word 2"), ("word_1", "word_2"), ("w1", "w2")),
    *(("word_a", "word_b"), ("first", "second")),
)
_RATINGS = (
    *("rating", "score", "similarity", "relatedness", "mean", "human", "human (mean)", "gold"),
    *("simlex999", "simlex"),
)
_KNOWN = {*(name for names in _WORDS for name in names), *_RATINGS}
_COMMENT = "#"
_SHOWN = 3  # values of a column in a message


class RatedPair(NamedTuple):
    """Two words, and their rating or None, in a line of a file."""

    line: int
    first: str
    second: str
    rating: float | None


class RatedPairs:
    """The rated pairs of a file, in order.

    A CSV, TSV, JSON Lines or Parquet file is read as all tables are. In a .txt file, and in one
    without an extension, columns are separated by tabs, commas, semicolons or spaces, and the first
    line is a header if it has a known name or no number. Lines that begin with "#" are comments.

    The words are in columns with usual names (`word1` and `word2`), or in the first two. The rating
    is in the column with a usual name (`rating`, `score`, `similarity`, `mean`), or in the only one
    that has numbers.

    Args:
        path: the file.

    Attributes: `columns`, the names of the three columns, or their numbers from 1 as strings.

    Raises:
        InputError: the file cannot be read, or several columns could be meant.
    """

    def __init__(self, path: str | PathLike[str]):
        self._table = _opened(path)
        names = [name for name in self._table.names if not is_unnamed(name)]
        words = self._words(names)
        self.columns = [*words, self._rating([name for name in names if name not in words])]

    def __iter__(self) -> Iterator[RatedPair]:
        first, second, rating = self.columns
        for line, row in self._table:
            value = row.get(rating)
            number = None
            if not is_missing(value, na=True):
                number = parsed_number(str(value))
                if not math.isfinite(number):
                    raise self._table.error(
                        line,
                        f"{value!r} in {self._table.describe(rating)}, where the ratings are. "
                        "Expected a number, with a point in front of decimals.",
                    )
            yield RatedPair(line, *(str(row.get(name)).strip() for name in (first, second)), number)

    def _words(self, names):
        by_name = {name.strip().casefold(): name for name in names}
        for known in _WORDS:
            if by_name.keys() >= {*known}:
                return [by_name[name] for name in known]
        numeric = self._numeric(names[:2])
        if numeric:
            raise self._unclear(
                f"the first columns should have the words, and {quoted(numeric)} has numbers",
                names,
                'Name the columns of the words "word1" and "word2" in the first line.',
            )
        return names[:2]

    def _rating(self, names):
        found = [name for name in names if name.strip().casefold() in _RATINGS]
        if not found:
            found = self._numeric(names)
        if len(found) != 1:
            what = (
                "no column has numbers"
                if not found
                else f"{' and '.join(map(self._table.describe, found))} could be the ratings"
            )
            advice = 'Name one "rating" in the first line, and no other of them by a usual name.'
            raise self._unclear(what, found or names, advice)
        return found[0]

    def _numeric(self, names):
        """The columns that have a number, with a point or a comma."""
        left, numeric = [*names], set()
        for _, row in self._table.survey():
            for name in left:
                value = str(row.get(name))
                if is_number(value) or has_decimal_comma(value):
                    numeric.add(name)
            left = [name for name in left if name not in numeric]
            if not left:
                break
        return [name for name in names if name in numeric]

    def _unclear(self, what, names, advice):
        rows = [row for _, row in islice(self._table.survey(), _SHOWN)]
        shown = "; ".join(
            f"{self._table.describe(name)}: {', '.join(str(row.get(name)) for row in rows)}"
            for name in names
        )
        return InputError(
            f"Could not read {self._table.name} as rated pairs: {what} ({shown}). {advice}"
        )


def _opened(path):
    """The `Table` of a file."""
    options = {
        "item": "pair",
        "as_record": dict,
        "least": 3,
        "noun": "rated pairs",
        "parts": "two words and a rating",
        "header_names": _KNOWN,
        "has_spaces": True,
    }
    if is_stored_table(path):
        return open_table(path, **options)
    file = _CommentedFile(path)
    if file.form == TXT:
        file.form = None  # columns, and not a text per line
    table = open_table(file, **options)
    row = table.peek()
    if not table.has_names and row is not None and not any(map(is_number, row[1].values())):
        return open_table(file, **options, header=True)
    if table.kind == CSV and file.form == CSV and any(map(is_number, table.names)):
        if not {name.casefold() for name in table.names} & _KNOWN:
            raise InputError(
                f"Could not read {table.name} as rated pairs: the first line of a .csv file names "
                f"its columns, and this one has a number ({', '.join(table.names)}). Add a line "
                "such as word1,word2,rating, or name the file .txt."
            )
    return table


class _CommentedFile(TextFile):
    """A file in which a line that begins with "#" counts as empty."""

    def raw_lines(self, *, keep=False):
        for line in super().raw_lines(keep=keep):
            yield "\n" if line.startswith(_COMMENT) else line
