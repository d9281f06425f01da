"""gzip, Parquet and saved datasets: how such files begin, and how they are read.

gzip and Parquet are open binary files, of this machine or of Beam's file systems. The
`Dataset.save_to_disk` of `datasets` writes Arrow files and a state.json that lists them. Both it
and Parquet keep the features of the library, with the names of class labels, in the metadata of
their schema.
"""

import contextlib
import gzip
import json
import os
import zlib
from pathlib import Path

from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.files import read_json
from keras_bert.base.formatting import listed
from keras_bert.records.tfds_folders import UNKNOWN_LABEL

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"  # how such a file begins
ROWS_PER_BATCH = 1024


@contextlib.contextmanager
def gzip_errors(name):
    """Raises an InputError that names the file where it is damaged or cut short."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name} is not a complete gzip file ({error}).") from None


def decompressed(file):
    """A binary file, decompressed. Read it within `gzip_errors`."""
    return gzip.GzipFile(fileobj=file)


@contextlib.contextmanager
def open_parquet(file, name):
    """Opens a Parquet file; InputError where it is damaged, then and when it is read."""
    import pyarrow
    from pyarrow import parquet

    try:
        yield parquet.ParquetFile(file)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"Could not read {name} as a Parquet file: {reason_of(error)}.") from None


def parquet_batches(file, name, **part):
    """Yields the record batches of a Parquet file; `part` are arguments of `iter_batches`."""
    with open_parquet(file, name) as opened:
        yield from opened.iter_batches(ROWS_PER_BATCH, **part)


_STATE = "state.json"  # of a folder with a `datasets.Dataset`
_SPLITS = "dataset_dict.json"  # of one with a `datasets.DatasetDict`


def is_parquet(path):
    """Whether a file begins as Parquet does."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError:  # reported where the file is read
        return False


def is_saved_dataset(path):
    """Whether a folder was written by `save_to_disk` of `datasets`."""
    return any(os.path.isfile(os.path.join(path, name)) for name in (_STATE, _SPLITS))


def with_names(row, class_names):
    """A row with the names of its labels, of {column: the labels' names}; None for unknown ones."""
    return {k: _named(v, class_names[k]) if k in class_names else v for k, v in row.items()}


def _named(value, names):
    """The name of a label that is given as a number, or the names of a list of them."""
    if isinstance(value, list):
        return [_named(label, names) for label in value]
    return names[value] if value not in (None, UNKNOWN_LABEL) else None


class ArrowTable:
    """The rows of a Parquet file or of a folder that `datasets` saved, read in small batches.

    Attributes:
        format: the format in words.
        class_labels: {column of class labels, or of lists of them: the labels' names}.

    Raises:
        InputError: the folder has several splits, or a file is missing or damaged.
    """

    kind, location, calls_columns = "arrow", "row", "columns"

    def __init__(self, path):
        path = Path(path)
        self._is_folder = path.is_dir()
        self.format = "a saved dataset" if self._is_folder else "Parquet"
        self._files = _files_of(path) if self._is_folder else [path]
        first = next(self._batches(), None)
        self.class_labels = _class_names({} if first is None else first.schema.metadata)

    def rows(self):
        """Yields a dictionary per row."""
        for batch in self._batches():
            for begin in range(0, batch.num_rows, ROWS_PER_BATCH):
                for row in batch.slice(begin, ROWS_PER_BATCH).to_pylist():
                    yield with_names(row, self.class_labels)

    def _batches(self):
        return (batch for file in self._files for batch in self._batches_of(file))

    def _batches_of(self, path):
        if not self._is_folder:
            yield from parquet_batches(path, path)
            return
        import pyarrow

        try:
            with pyarrow.memory_map(str(path)) as file, pyarrow.ipc.open_stream(file) as stream:
                yield from stream
        except (OSError, pyarrow.ArrowException) as error:
            raise InputError(
                f"Could not read {path} as a file of Arrow: {reason_of(error)}."
            ) from None


def _files_of(folder):
    """The Arrow files of a folder, in order."""
    if not (folder / _STATE).exists():
        splits = read_json(folder / _SPLITS).get("splits")
        names = [str(folder / split) for split in splits or ()]
        raise InputError(f"{folder} has several splits. Give one of them: {listed(names)}.")
    files = read_json(folder / _STATE).get("_data_files")
    if not isinstance(files, list) or not all(isinstance(file, dict) for file in files):
        raise InputError(f"{folder / _STATE} lists no files. Save the dataset again.")
    return [folder / str(file.get("filename")) for file in files]


def _class_names(metadata):
    """The names of class labels by column, from the metadata of a schema."""
    try:
        features = json.loads((metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
        return {
            column: inner["names"]
            for column, feature in features.items()
            if isinstance(inner := _inner(feature), dict) and inner.get("_type") == "ClassLabel"
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}  # of another program


def _inner(feature):
    """The feature of a list's elements, or the feature itself."""
    if isinstance(feature, list):
        return feature[0] if feature else None
    return feature.get("feature", feature) if isinstance(feature, dict) else None
