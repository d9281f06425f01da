"""Parquet files and prepared TensorFlow Datasets as sources of documents.

The functions `…_spans` yield the blocks of a window without counts, `…_contents` yield
(start, end, text) for each document of a block. Text files are in `data_gen.text_files`.

Prepared datasets are read from disk as TFRecord files: nothing is downloaded, and
tensorflow-datasets is not needed.
"""

import contextlib
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from data_gen import files
from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import listed
from keras_bert.records.tfds_folders import (
    INFO,
    latest_version,
    not_prepared,
    parse_tfds_name,
    shard_paths,
    split_info,
)

_PARQUET_BATCH, _TFDS_BATCH = 1024, 256


class Window(NamedTuple):
    """The documents of `path` that begin from byte `start` up to `stop` (None: the end)."""

    path: str
    format: str | None  # None: to be detected from the content
    start: int
    stop: int | None
    size: int  # its bytes on disk


class Block(NamedTuple):
    """A run of documents from `start` to `end` of a file (None: to its end).

    The offsets are bytes of a text file, rows of a Parquet file, records of a tfds shard. A
    `stream` cannot be entered in its middle: it is one block of any length.

    `digest` is a hash of the documents, `size` their bytes. `eval_documents` and `eval_size` count
    those with a hash below the limit that was asked for, `lowest` and `highest` are the ends of
    their hashes. `counts` are pairs (name, number) of what was left out. `dropped` are the hashes
    of documents that are read from another block.
    """

    path: str
    format: str
    start: int
    end: int | None
    stream: bool = False
    digest: bytes = b""
    documents: int = 0
    size: int = 0
    eval_documents: int = 0
    eval_size: int = 0
    lowest: int = 2**64
    highest: int = -1
    counts: tuple = ()
    dropped: tuple = ()


def parquet_spans(window, reading):
    """A block per row group, which can be read on its own; `start` is the number of the group."""
    if window.start:
        return  # the first window has the whole file
    with _open_parquet(window.path, reading) as file:
        for group in range(file.num_row_groups):
            yield Block(window.path, "parquet", group, group + 1, stream=True)


def parquet_contents(block, reading, counts):
    """The documents are in a column of strings; offsets are rows of the group."""
    with _open_parquet(block.path, reading) as file:
        batches = file.iter_batches(
            batch_size=_PARQUET_BATCH,
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
def _open_parquet(path, reading):
    with files.reading(path) as stream:
        try:
            file = pq.ParquetFile(stream)
            names = file.schema_arrow.names
            if reading.text_field not in names:
                raise InputError(
                    f"{path} has no column {reading.text_field}. Set `text_field` to the column of "
                    f"the text, one of {listed(names)}."
                )
            dtype = file.schema_arrow.field(reading.text_field).type
            if not (pa.types.is_string(dtype) or pa.types.is_large_string(dtype)):
                raise InputError(
                    f"The column {reading.text_field} of {path} has the type {dtype}. Set "
                    "`text_field` to a column of strings."
                )
            yield file
        except pa.ArrowException as error:
            raise InputError(f"Could not read {path} as a Parquet file: {error}.") from None


def tfds_windows(name):
    """The shards of `tfds:NAME/CONFIG:SPLIT` (see `TfdsName`) as windows.

    Raises `InputError` for a dataset or a split that is not prepared.
    """
    dataset = parse_tfds_name(name)
    folder = dataset.folder
    folder = f"{folder}/{dataset.version or _latest(folder, name)}"
    info = _read_info(folder, name)
    split = split_info(info, dataset.split, folder=folder)
    paths = shard_paths(info, split, folder=folder)
    for path in paths:
        if not FileSystems.exists(path):
            raise InputError(f"{path} is missing. Prepare the dataset {name} again.")
    size = int(split.get("numBytes", 0)) // max(1, len(paths))
    return [Window(path, "tfds", 0, None, size) for path in paths]


def tfds_spans(window, reading):
    """The shard as one block."""
    yield Block(window.path, "tfds", 0, None, stream=True)


def tfds_contents(block, reading, counts):
    """The offsets are numbers of records."""
    import tensorflow as tf

    features = {reading.text_field: tf.io.FixedLenFeature([], tf.string)}
    number = 0
    try:
        for records in tf.data.TFRecordDataset(block.path).batch(_TFDS_BATCH):
            texts = tf.io.parse_example(records, features)[reading.text_field]
            for text in texts.numpy().tolist():
                yield number, number + 1, text.decode("utf-8", errors="replace")
                number += 1
    except tf.errors.OpError as error:
        raise InputError(
            f"Could not read a text after record {number} of {block.path} from the feature "
            f"{reading.text_field}. Set `text_field` to the feature of the text "
            f"({reason_of(error)})."
        ) from None


def _latest(folder, name):
    """The highest version in a dataset's folder."""
    try:
        matches = FileSystems.match([f"{folder}/*/{INFO}"])[0].metadata_list
    except (BeamIOError, ValueError) as error:
        raise InputError(f"Could not list {folder}: {error}.") from None
    version = latest_version(match.path.split("/")[-2] for match in matches)
    if version is None:
        raise not_prepared(name, folder)
    return version


def _read_info(folder, name):
    try:
        with FileSystems.open(f"{folder}/{INFO}") as file:
            return parse_json(file.read())
    except (BeamIOError, OSError):
        raise InputError(
            f"{name} is not prepared: there is no {folder}/{INFO}. Prepare the dataset again."
        ) from None
    except NotJson as error:
        raise InputError(f"{folder}/{INFO} is not JSON: {error}.") from None
