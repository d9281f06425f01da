"""Predictions beside the rows that they are of, as a table: for pandas, and as a file."""

import csv
import json
from itertools import chain
from pathlib import Path

from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.files import new_file
from keras_bert.base.ownership import check_output_file

# The endings of the files that can be written.
ENDINGS = (".csv", ".parquet", ".jsonl")


def check_table_output(path, *, force):
    """Raises InputError unless predictions may be written to a path."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError.naming(
            "{output} must be a file NAME.csv, NAME.parquet or NAME.jsonl. Received: {}.", path
        )
    check_output_file(path, is_ours=_begins_as_table, force=force)


def _begins_as_table(path):
    """Whether an existing file is of the type that its name says."""
    with Path(path).open("rb") as file:
        first = file.readline()
    is_table = any(name in first for name in (b"label", b"score", b"tags", b"answer"))
    is_like = {".parquet": first.startswith(b"PAR1"), ".jsonl": first.startswith(b"{")}
    return is_like.get(Path(path).suffix.lower(), is_table)


def table_rows(source, pairs):
    """Yields (location, row) of pairs of an example and its prediction.

    A row is a dictionary: the columns of the input, if that is a table of texts, then those of the
    prediction, of which each probability is a column `probability_LABEL`. A column of the input
    that is called as one of the prediction has `input_` before its name; of texts and labels there
    is the one of the prediction, `text` and `expected`.
    """
    row_of, schema = getattr(source, "row_of", None), source.schema or {}
    labels = schema.get("label", ())
    for example, prediction in pairs:
        row = {}
        columns = row_of(example) if row_of is not None else None
        for name, value in prediction.items():
            if name == "probabilities" and isinstance(value, dict):
                row |= {f"probability_{label}": value for label, value in value.items()}
            elif columns is None or name not in schema or name == "label":
                row[name] = value  # the texts of a table are in its own columns
        if columns is not None and labels:
            row.setdefault("expected", None)
        given = {}
        for name, value in (columns or {}).items():
            if name not in row:
                given[name] = value
            elif name not in labels:
                given[f"input_{name}"] = value
        yield example.line, given | row


def write_table(rows, path):
    """Writes rows, dictionaries, as CSV, Parquet or JSON Lines, atomically; returns their number.

    In CSV, lists are written as JSON. A Parquet file is written when all rows are there.
    """
    path, rows = Path(path), iter(rows)
    with new_file(path) as temporary:
        if path.suffix.lower() == ".parquet":
            import pyarrow
            from pyarrow import parquet

            rows = list(rows)
            try:
                table = pyarrow.Table.from_pylist(rows)
            except pyarrow.ArrowException as error:
                raise InputError.naming(
                    "A column of the input has values of several types, which Parquet cannot hold "
                    "({}). Write a {output} NAME.jsonl or NAME.csv.",
                    reason_of(error),
                ) from None
            parquet.write_table(table, temporary)
            return len(rows)
        with temporary.open("w", encoding="utf-8", newline="") as file:
            return (_write_csv if path.suffix.lower() == ".csv" else _write_json)(rows, file)


def _write_json(rows, file):
    count = 0
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        count += 1
    return count


def _write_csv(rows, file):
    first = next(rows, None)
    if first is None:
        return 0
    writer, count = csv.DictWriter(file, list(first), lineterminator="\n"), 0
    writer.writeheader()
    for row in chain([first], rows):
        writer.writerow({name: _cell(value) for name, value in row.items()})
        count += 1
    return count


def _cell(value):
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    return value
