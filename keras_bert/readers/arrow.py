"""Tables that pyarrow reads: Parquet files, and folders that `datasets` has saved to disk.

`Dataset.save_to_disk` writes Arrow files and a state.json that lists them. Both formats keep the
features of the library, with the names of class labels, in the metadata of their schema.
"""

import json
import os
from pathlib import Path

from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.files import read_json
from keras_bert.base.formatting import listed

_PARQUET = b"PAR1"  # how such a file begins
_STATE = "state.json"  # of a folder with a `datasets.Dataset`
_SPLITS = "dataset_dict.json"  # of one with a `datasets.DatasetDict`
_ROWS_TOGETHER = 1024


def is_parquet(path):
    """Whether a file begins as Parquet does."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(_PARQUET)) == _PARQUET
    except OSError:  # reported where the file is read
        return False


def is_saved_dataset(path):
    """Whether a folder was written by `save_to_disk` of `datasets`."""
    return any(os.path.isfile(os.path.join(path, name)) for name in (_STATE, _SPLITS))


class ArrowTable:
    """The rows of a Parquet file or of a folder that `datasets` saved, read in small batches.

    Attributes:
        format: the format in words.
        class_names: {column of class labels, or of lists of them: the labels' names}.

    Raises:
        InputError: the folder has several splits, or a file is missing or damaged.
    """

    def __init__(self, path):
        self._path = Path(path)
        if self._path.is_dir():
            self.format, self._files = "a saved dataset", _files_of(self._path)
            read = _arrow_batches
        else:
            self.format, self._files = "Parquet", [self._path]
            read = _parquet_batches
        self._batches = (batch for file in self._files for batch in read(file))
        self._first = next(self._batches, None)
        metadata = {} if self._first is None else self._first.schema.metadata
        self.class_names = _class_names(metadata)

    def rows(self):
        """Yields a dictionary per row."""
        batch = self._first
        while batch is not None:
            for begin in range(0, batch.num_rows, _ROWS_TOGETHER):
                yield from batch.slice(begin, _ROWS_TOGETHER).to_pylist()
            batch = next(self._batches, None)


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


def _arrow_batches(path):
    import pyarrow

    try:
        with pyarrow.memory_map(str(path)) as file, pyarrow.ipc.open_stream(file) as stream:
            yield from stream
    except (OSError, pyarrow.ArrowException) as error:
        raise _unreadable(path, "Arrow", error) from None


def _parquet_batches(path):
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(_ROWS_TOGETHER)
    except (OSError, pyarrow.ArrowException) as error:
        raise _unreadable(path, "Parquet", error) from None


def _unreadable(path, what, error):
    return InputError(f"Could not read {path} as a file of {what}: {reason_of(error)}.")


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
