"""Tables that commands write, as CSV, JSON Lines or Parquet, and how they are recognized again.

A row is a dictionary. All rows of a table have the same columns. A Parquet file names the command
that wrote it in its metadata. CSV and JSON Lines have no place for that: such a file is recognized
by its columns.
"""

import contextlib
import csv
import json
from functools import partial
from itertools import chain, islice
from pathlib import Path

from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.files import NotJson, new_file, parse_json
from keras_bert.base.ownership import check_output_file
from keras_bert.base.version import __version__

# The endings of the files that can be written.
ENDINGS = (".csv", ".parquet", ".jsonl")
_MARK = "keras_bert"  # the key in the metadata of Parquet
_TOGETHER = 2048  # rows whose types are checked together


def import_pandas():
    """The module, for `as_dataframe`; `InputError` if it is not installed."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise InputError("`as_dataframe` needs pandas. Install it: pip install pandas.") from None
    return pandas


class PredictionRows:
    """The rows of a table of predictions, once in the order of the examples.

    A row is a dictionary: the columns of the input, if that is a table of texts, then those of the
    prediction, of which each probability is a column `probability_LABEL`. A column of the input
    that is called as one of the prediction is renamed: `input_NAME`, or `input_NAME_2` and so on if
    there is such a column, too. Of texts and labels there is the one of the prediction, `text` and
    `expected`. Keys that an object of JSON lacks are None.

    Args:
        source: where the examples were read, of `task.read`.
        pairs: an iterable of an example and its prediction.

    Attributes: `lines`, the locations of the examples so far.
    """

    def __init__(self, source, pairs):
        self._source, self._pairs = source, pairs
        self._names = {}  # of the input's columns, by their new names
        self.lines = []

    def __iter__(self):
        schema = self._source.schema or {}
        labels = schema.get("label", ())
        for number, (example, prediction) in enumerate(self._pairs):
            self.lines.append(example.line)
            columns = self._row_of(example)
            row = {}
            for name, value in prediction.items():
                if name == "probabilities" and isinstance(value, dict):
                    row |= {f"probability_{label}": value for label, value in value.items()}
                elif columns is None or name not in schema or name == "label":
                    row[name] = value  # the texts of a table are in its own columns
            if columns is not None and labels:
                row.setdefault("expected", None)
            if columns is not None and number == 0:
                self._names = names_beside(self._source, self._source.column_names(), row, labels)
            yield {new: columns.get(name) for new, name in self._names.items()} | row

    def _row_of(self, example):
        """The input's columns of an example; None if that is not a table of texts."""
        return self._source.row_of(example) if hasattr(self._source, "row_of") else None

    def arrow_columns(self, lines):
        """{name: an array of Arrow} of the columns of a Parquet file, in their types there.

        `lines` are locations as in `self.lines`.
        """
        if not self._names:
            return {}
        arrays = self._source.arrow_columns(lines)
        return {new: arrays[name] for new, name in self._names.items() if name in arrays}


def names_beside(source, names, prediction, labels):
    """{the name of a column beside those of a prediction: its name in the input}.

    `names` are columns of a `TextSource`, and `labels` those that the prediction has under another
    name.
    """
    beside, taken = {}, {*names, *prediction}
    for name in names:
        new, number = name, 1
        if name in prediction:
            if name in labels:
                continue  # it is `expected`
            new = f"input_{name}"
            while new in taken:
                number += 1
                new = f"input_{name}_{number}"
            taken.add(new)
        beside[source.written_name(name) if new == name else new] = name
    return beside


def check_table_output(path, *, inputs, force, command="predict"):
    """Raises InputError unless a table of a command may be written to a path.

    The columns of a CSV or JSON Lines file that would be replaced are checked by `write_table`.
    """
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError.naming(
            "{output} must be a file NAME.csv, NAME.parquet or NAME.jsonl. Received: {}.", path
        )
    is_ours = partial(_may_be_of, command=command)
    check_output_file(path, is_ours=is_ours, inputs=inputs, force=force)


def _may_be_of(path, *, command):
    return path.suffix.lower() != ".parquet" or is_parquet_of(path, command)


def write_table(rows, path, *, columns=(), command="predict"):
    """Writes rows, dictionaries, as a table, atomically; returns their number.

    In CSV, lists are written as JSON. JSON Lines have dates and decimals as text. A Parquet file is
    written when all rows are there.

    Args:
        rows: an iterable; the columns are those of the first row, and then others in their order.
            Of `PredictionRows`, Parquet keeps columns that come from Parquet in their types.
        path: NAME.csv, NAME.parquet or NAME.jsonl.
        columns: the names of the columns of a table without rows.
        command: the command that writes it, for the metadata of Parquet.

    Raises:
        InputError: a file at `path` has other columns than those of the rows, so that it is not a
            table of this command; or the format cannot hold a value.
    """
    path, iterator = Path(path), iter(rows)
    ending, first = path.suffix.lower(), list(islice(iterator, 1))
    if ending != ".parquet":
        expected = _always_there(first[0] if first else columns)
        is_ours = lambda path: _always_there(_columns_of(path)) == expected  # noqa: E731
        check_output_file(path, is_ours=is_ours, force=True)
    write = {".csv": _write_csv, ".jsonl": _write_json}.get(ending)
    if write is None:
        given = rows if isinstance(rows, PredictionRows) else None
        write = partial(_write_parquet, given=given, command=command)
    with new_file(path) as temporary:
        return write(chain(first, iterator), temporary, columns=columns)


def _always_there(columns):
    """The columns without that of labels, which may begin in a later row."""
    return [name for name in columns if name != "expected"]


def _columns_of(path):
    """The columns of a CSV or JSON Lines file by its beginning; empty of another file."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix.lower() == ".csv":
                return next(csv.reader(file, strict=True), ())
            first = parse_json(file.readline())
            return first if isinstance(first, dict) else ()
    except (UnicodeDecodeError, csv.Error, NotJson):
        return ()


def _write_json(rows, path, *, columns):
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for row in rows:
            row = as_json(row)
            try:
                line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
                line.encode()
            except UnicodeEncodeError:  # half a surrogate pair, as JSON may have it
                line = json.dumps(row, allow_nan=False) + "\n"
            file.write(line)
            count += 1
    return count


def _write_csv(rows, path, *, columns):
    columns, count = dict.fromkeys(columns), 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in rows:
            count += 1
            columns = {**(columns if count > 1 else {}), **dict.fromkeys(row)}
            if count == 1:
                width = len(columns)
                writer.writerow(columns)
            cells = {name: _cell(value) for name, value in row.items()}
            try:
                writer.writerow([cells.get(name) for name in columns])
            except UnicodeEncodeError:
                raise _not_held("CSV", f"row {count} has half a surrogate pair") from None
        if not count and columns:
            writer.writerow(columns)
    if count and width < len(columns):
        _widen(path, columns)
    return count


def _widen(path, columns):
    """Writes a CSV again whose later rows have more columns than its header."""
    wider = path.with_name(f"{path.name}.wider")
    with path.open(encoding="utf-8", newline="") as file:
        rows = islice(csv.reader(file), 1, None)
        with wider.open("w", encoding="utf-8", newline="") as new:
            writer = csv.writer(new, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([*row, *[""] * (len(columns) - len(row))] for row in rows)
    wider.replace(path)


def _cell(value):
    value = as_json(value)
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    return value


def as_json(value):
    """A value of a table in the types of JSON; what they do not have is text, NaN is None.

    Bytes that are not UTF-8 are escaped as in Python.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if value != value else value if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _write_parquet(rows, path, *, columns, given, command):
    import pyarrow

    def kept(lines):
        """The columns that keep their type."""
        try:
            return {} if given is None else given.arrow_columns(lines)
        except pyarrow.ArrowException as error:
            raise _not_held("Parquet", reason_of(error)) from None

    columns, types, count, typed = {name: [] for name in columns}, {}, 0, None
    while some := [*islice(rows, _TOGETHER)]:
        typed = kept([]) if typed is None else typed
        for name in dict.fromkeys(chain(columns, chain.from_iterable(some))):
            new = [None if name in typed else row.get(name) for row in some]
            # Before more is computed for it, what cannot be written is an error.
            columns.setdefault(name, [None] * count).extend(new)
            types[name] = _unified(name, types.get(name), new, columns[name])
        count += len(some)
    typed = kept(given.lines) if typed else {}
    arrays = {n: typed[n] if n in typed else _array(n, values) for n, values in columns.items()}
    schema = pyarrow.schema(
        [(name, array.type) for name, array in arrays.items()], metadata=marked(command)
    )
    with ParquetOutput(path, schema) as file:
        if arrays:
            file.write(pyarrow.Table.from_arrays([*arrays.values()], schema=schema))
    return count


def _unified(name, before, new, values):
    """The type of more values of a column; InputError if they are not of one type with others."""
    import pyarrow

    now = _array(name, new).type
    if before is None or before == now:
        return now
    try:
        fields = [pyarrow.schema([(name, type)]) for type in (before, now)]
        return pyarrow.unify_schemas(fields, promote_options="permissive").field(0).type
    except pyarrow.ArrowException:
        return _array(name, values).type


def _array(name, values):
    import pyarrow

    try:
        return pyarrow.array(values)
    except UnicodeEncodeError:
        raise _not_held("Parquet", f'the column "{name}" has half a surrogate pair') from None
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        why = f'the column "{name}" has values that are not of one of its types: '
        raise _not_held("Parquet", why + reason_of(error)) from None


def _not_held(format, reason):
    return InputError.naming(
        "{} cannot hold this table: {}. Write a {output} NAME.jsonl.", format, reason
    )


def marked(command, **settings):
    """The metadata of a Parquet file that a command writes, with its settings."""
    about = {"command": command, "version": __version__, **settings}
    return {_MARK: json.dumps(about)}


def mark_of(metadata):
    """Returns what `marked` put into the metadata of a schema; None of another program's."""
    try:
        about = json.loads((metadata or {}).get(_MARK.encode(), b"null"))
    except ValueError:
        return None
    return about if isinstance(about, dict) else None


def is_parquet_of(path, command):
    """Whether a command wrote a Parquet file."""
    import pyarrow
    from pyarrow import parquet

    try:
        about = mark_of(parquet.read_schema(path).metadata)
    except (OSError, pyarrow.ArrowException):
        return False
    # Those of `embed` did not name their command in earlier versions.
    return about is not None and about.get("command", "embed") == command


class ParquetOutput:
    """A Parquet file that is complete at the end of a `with`, unless its body failed.

    Args:
        path: the file, replaced if it exists.
        schema: of all its tables.
        options: further arguments of `pyarrow.parquet.ParquetWriter`.
    """

    def __init__(self, path, schema, **options):
        from pyarrow import parquet

        self.schema = schema
        # Python's own file, so that an error of the system is an `OSError`.
        self._file = open(path, "wb")
        self._writer = parquet.ParquetWriter(self._file, schema, **options)

    def __enter__(self):
        return self

    def write(self, table):
        """Writes a table as a row group."""
        self._writer.write_table(table)

    def flush(self):
        """Writes what is waiting; called at the end of the `with`."""

    def __exit__(self, kind, error, traceback):
        import pyarrow

        with self._file:
            if error is None:
                self.flush()
                self._writer.close()
            else:
                with contextlib.suppress(OSError, pyarrow.ArrowException):
                    self._writer.close()
