"""Embeddings as a Parquet file: one row a text."""

import contextlib
import json

import numpy as np
import pyarrow
from pyarrow import parquet

# Held back until so many numbers have come together (16 MiB): a row group of a few texts is slow to
# read, and a large one takes memory.
_NUMBERS_IN_A_GROUP = 1 << 22


class ParquetFile:
    """Writes `TextEmbedding`s, in memory that does not grow with their number.

    Columns: `line` int64, `text` string, `tokens` list of strings, `starts` and `ends` lists of
    int32, `vectors` a list of D float32 each, `cls` and `mean` D float32. The file's metadata has
    the settings as JSON under `keras_bert`.

    The file is whole at the end of a `with`, unless its body failed.

    Args:
        path: the file, replaced if it is there.
        width: D.
        settings: a dictionary that says how the vectors were made.
    """

    def __init__(self, path, *, width, settings):
        self._width = width
        vector = pyarrow.list_(pyarrow.float32(), width)
        self._schema = pyarrow.schema(
            [
                ("line", pyarrow.int64()),
                ("text", pyarrow.string()),
                ("tokens", pyarrow.list_(pyarrow.string())),
                ("starts", pyarrow.list_(pyarrow.int32())),
                ("ends", pyarrow.list_(pyarrow.int32())),
                ("vectors", pyarrow.list_(vector)),
                ("cls", vector),
                ("mean", vector),
            ],
            metadata={"keras_bert": json.dumps(settings)},
        )
        # Python's own file: what the system says of it comes as Python's own error.
        self._file = open(path, "wb")
        self._writer = parquet.ParquetWriter(
            self._file,
            self._schema,
            compression="zstd",
            # Vectors hardly repeat: looking for repetitions costs time and finds none.
            use_dictionary=["tokens.list.element"],
        )
        self._waiting, self._numbers = [], 0

    def write(self, embedding):
        """Takes the embedding of the next text."""
        self._waiting.append(embedding)
        self._numbers += embedding.vectors.size + 2 * self._width
        if self._numbers >= _NUMBERS_IN_A_GROUP:
            self._flush()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        with self._file:
            if error is None:
                self._flush()
                self._writer.close()
            else:
                with contextlib.suppress(OSError, pyarrow.ArrowException):
                    self._writer.close()

    def _flush(self):
        if not self._waiting:
            return
        rows = self._waiting
        splits = np.concatenate([[0], np.cumsum([len(row.starts) for row in rows])])

        def lists(values):
            return pyarrow.ListArray.from_arrays(pyarrow.array(splits, pyarrow.int32()), values)

        def vectors(arrays):
            numbers = np.concatenate(arrays).reshape(-1)
            return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(numbers), self._width)

        columns = [
            pyarrow.array([row.line for row in rows], pyarrow.int64()),
            pyarrow.array([as_utf8(row.text) for row in rows], pyarrow.string()),
            lists(
                pyarrow.array(
                    [as_utf8(token) for row in rows for token in row.tokens], pyarrow.string()
                )
            ),
            lists(pyarrow.array(np.concatenate([row.starts for row in rows]), pyarrow.int32())),
            lists(pyarrow.array(np.concatenate([row.ends for row in rows]), pyarrow.int32())),
            lists(vectors([row.vectors for row in rows])),
            vectors([row.cls for row in rows]),
            vectors([row.mean for row in rows]),
        ]
        self._writer.write_table(pyarrow.Table.from_arrays(columns, schema=self._schema))
        self._waiting, self._numbers = [], 0


def as_utf8(text):
    """The text as bytes; half of a surrogate pair, which has no UTF-8, as one question mark."""
    return text.encode("utf-8", "replace")


def is_ours(path):
    """Whether `ParquetFile` wrote the file."""
    try:
        metadata = parquet.read_schema(path).metadata
    except (OSError, pyarrow.ArrowInvalid):
        return False
    return b"keras_bert" in (metadata or {})


def described(path):
    """-> (the settings that `ParquetFile` wrote into a file of its own, its texts, its tokens)."""
    with parquet.ParquetFile(path) as file:
        settings = json.loads(file.schema_arrow.metadata[b"keras_bert"])
        batches = file.iter_batches(columns=["starts"])
        tokens = sum(len(batch.column(0).flatten()) for batch in batches)
        return settings, file.metadata.num_rows, tokens
