"""The rows of a source of examples, as dictionaries by the names of its columns."""

from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any

from keras_bert.base.errors import InputError, Naming
from keras_bert.base.formatting import quoted
from keras_bert.readers.sources import (
    CSV,
    FASTTEXT,
    FOLDER,
    JSON,
    TSV,
    Located,
    TextFile,
    is_unnamed,
)
from keras_bert.records.file_formats import ArrowTable

_TOGETHER = 2048  # rows whose types are found together


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
    declared: Any = ()  # the columns that the table declares as labels, pandas' categories too
    repeated: Any = ()  # names of several columns
    first: int = 1  # the line of the header, or of the first row
    is_undecided: bool = False  # the rule, and not the user, decided whether there is a header
    skipped: int = 0  # lines that were left out so far
    delimiter: str | None = None  # between the cells of a text file
    stored: ArrowTable | None = None  # which it was read from
    # {a name: as the header has it, with white space around it}
    written: Any = field(default_factory=dict)
    index: Any = None  # of a DataFrame the labels of its rows, by which messages name them

    def __iter__(self):
        names = self.names if self.has_names else ()
        header = ["" if is_unnamed(name) else name.strip().casefold() for name in names]
        for line, row in self.rows() if callable(self.rows) else self.rows:
            # Of several names, in any case; one word alone may be a text.
            if len(header) > 1 and _is_header(row, header):
                raise self.error(
                    line,
                    Naming(
                        "the header line again, as in files that were joined; remove it here (if "
                        "the first line is not a header, set {header=False})."
                    ),
                )
            yield line, row

    def survey(self):
        """Iterates over the rows, which are read again, those of a pipe too."""
        return iter(self.rows(keep=True) if callable(self.rows) else self.rows)

    def peek(self):
        """The first row, which is read again; None of an empty table."""
        return next(self.survey(), None)

    def sample(self, count):
        """Up to `count` rows, which are read again; of a pipe the first one alone."""
        return [row for _, row in islice(self.survey(), 1 if self.is_stream else count)]

    def all_names(self):
        """The names of all columns; of JSON those of all objects, which are read for it."""
        if self.kind != JSON:
            return [*self.names]
        return [*dict.fromkeys(name for _, row in self.survey() for name in row)]

    def arrow_types(self):
        """{name of a column: the Arrow type of its values}; string for values of several types."""
        import pyarrow

        names = self.all_names() if not self.is_stream else self.names
        types = dict.fromkeys(names, pyarrow.string())
        if self.are_cells or self.is_stream or self.kind in (FASTTEXT, FOLDER):
            return types
        found, rows = {}, self.survey()
        while some := [row for _, row in islice(rows, _TOGETHER)]:
            for name in types:
                values = [row.get(name) for row in some]
                found[name] = _unified(found.get(name, pyarrow.null()), values)
        nothing = pyarrow.null()
        return {
            name: kind if found.get(name, nothing) == nothing else found[name]
            for name, kind in types.items()
        }

    def label(self, line):
        return line if self.index is None or not isinstance(line, int) else self.index[line - 1]

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

        Raises InputError if two columns have the name.
        """
        name = str(column)
        if name in self.repeated:
            if self.file is None:
                raise InputError(f'{self.name}: two columns have the same name, "{name}".')
            raise self.error(self.first, f'two columns of the header have the same name, "{name}".')
        if (found := same_name(name, self.names)) is not None:
            return found
        is_number = self.has_names and name.isdigit() and 1 <= int(name) <= len(self.names)
        return self.names[int(name) - 1] if is_number else None

    def existing(self, column):
        """The name of a column, as `column` finds it; InputError if there is no such column."""
        name = self.column(column)
        if name is None:
            first, *_, last = self.names[0], *self.names
            names = quoted(self.names) if self.has_names else f"{first} to {last}"
            raise InputError(f'{self.name} has no column "{column}". Its columns are {names}.')
        return name

    def describe(self, name):
        """A column for messages."""
        return f'"{name}"' if self.has_names else f"column {name}"


def same_name(name, names):
    """The one of the names of columns that is `name`, or is but for outer spaces; None without one.

    The header of a file is read without outer spaces, which a table in memory has.
    """
    if name in names:
        return name
    matches = [other for other in names if str(other).strip() == str(name).strip()]
    return matches[0] if len(matches) == 1 else None


def _unified(before, values):
    """The Arrow type of more values of a column; string if they are not of one type."""
    import pyarrow

    try:
        fields = [pyarrow.schema([("", kind)]) for kind in (before, pyarrow.array(values).type)]
        return pyarrow.unify_schemas(fields, promote_options="permissive").field(0).type
    except (pyarrow.ArrowException, UnicodeEncodeError, OverflowError, TypeError, ValueError):
        return pyarrow.string()


def _is_header(row, header):
    """Whether the cells of a row are the names of the columns, of which `header` are in lower case.

    The first cell tells most rows apart.
    """
    return len(row) == len(header) and all(
        cell.strip().casefold() == name if isinstance(cell, str) else cell is None and not name
        for cell, name in zip(row.values(), header, strict=True)
    )
