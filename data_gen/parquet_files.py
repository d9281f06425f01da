"""Parquet files as a source of documents: each row has one, in a column of strings.

A block is a run of row groups: they are what can be read without what stands before them.
"""

import contextlib

import pyarrow as pa
import pyarrow.parquet as pq

from data_gen import files
from data_gen.reading import Block
from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed

_EXAMPLES_AT_ONCE = 1024


def spans(window, reading):
    """Yields each row group as a block without counts; `start` and `end` are numbers of groups."""
    if window.start:
        return  # the first window has the whole file
    with _opened(window.path, reading) as file:
        for group in range(file.num_row_groups):
            yield Block(window.path, "parquet", group, group + 1, stream=True)


def contents(block, reading, counts):
    """Yields (start, end, text) for each row; the places are rows from the group's first on."""
    with _opened(block.path, reading) as file:
        batches = file.iter_batches(
            batch_size=_EXAMPLES_AT_ONCE,
            row_groups=list(range(block.start, block.end)),
            columns=[reading.text_field],
        )
        row = 0
        for batch in batches:
            for text in batch.column(0).to_pylist():
                if text is None:
                    counts["empty_rows"] += 1
                else:
                    yield row, row + 1, text
                row += 1


@contextlib.contextmanager
def _opened(path, reading):
    with files.reading(path) as stream:
        try:
            file = pq.ParquetFile(stream)
            names = file.schema_arrow.names
            if reading.text_field not in names:
                raise InputError(
                    f"{path} has no column {reading.text_field}: name the one that holds the text "
                    f"with `text_field`, one of {listed(names)}"
                )
            kind = file.schema_arrow.field(reading.text_field).type
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise InputError(
                    f"the column {reading.text_field} of {path} holds {kind}, not strings: name "
                    "one that holds text with `text_field`"
                )
            yield file
        except pa.ArrowException as error:
            raise InputError(f"{path} is not a Parquet file that can be read: {error}") from None
