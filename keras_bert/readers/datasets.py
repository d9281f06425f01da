"""Tables that other libraries keep on disk: Parquet files, folders of `datasets`, and of tfds.

`Dataset.save_to_disk` writes Arrow files and a state.json that lists them. Both it and Parquet keep
the features of the library, with the names of class labels, in the metadata of their schema.

A prepared TensorFlow Dataset is a folder of TFRecord shards. It is read from disk: nothing is
downloaded, and tensorflow-datasets need not be installed.
"""

import json
import os
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json
from keras_bert.base.formatting import listed
from keras_bert.records.tfds_folders import (
    INFO,
    latest_version,
    not_prepared,
    parse_tfds_name,
    shard_paths,
    split_info,
)

_PARQUET = b"PAR1"  # how such a file begins
_STATE = "state.json"  # of a folder with a `datasets.Dataset`
_SPLITS = "dataset_dict.json"  # of one with a `datasets.DatasetDict`
_ROWS_TOGETHER = 1024
_FEATURES = "features.json"  # of tfds
_UNKNOWN_LABEL = -1  # of a test split whose labels nobody has


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


def with_names(row, class_names):
    """A row with the names of its labels, of {column: the labels' names}; None for unknown ones."""
    return {k: _named(v, class_names[k]) if k in class_names else v for k, v in row.items()}


def _named(value, names):
    """The name of a label that is given as a number, or the names of a list of them."""
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    return names[value] if value not in (None, _UNKNOWN_LABEL) else None


class ArrowTable:
    """The rows of a Parquet file or of a folder that `datasets` saved, read in small batches.

    Attributes:
        format: the format in words.
        class_labels: {column of class labels, or of lists of them: the labels' names}.

    Raises:
        InputError: the folder has several splits, or a file is missing or damaged.
    """

    def __init__(self, path):
        self._path = Path(path)
        self._is_folder = self._path.is_dir()
        self.format = "a saved dataset" if self._is_folder else "Parquet"
        files = _files_of(self._path) if self._is_folder else [self._path]
        self._batches = (batch for file in files for batch in self._batches_of(file))
        self._first = next(self._batches, None)
        metadata = {} if self._first is None else self._first.schema.metadata
        self.class_labels = _class_names(metadata)

    def rows(self):
        """Yields a dictionary per row."""
        batch = self._first
        while batch is not None:
            for begin in range(0, batch.num_rows, _ROWS_TOGETHER):
                for row in batch.slice(begin, _ROWS_TOGETHER).to_pylist():
                    yield with_names(row, self.class_labels)
            batch = next(self._batches, None)

    def _batches_of(self, path):
        import pyarrow
        from pyarrow import parquet

        try:
            if self._is_folder:
                with pyarrow.memory_map(str(path)) as file, pyarrow.ipc.open_stream(file) as stream:
                    yield from stream
            else:
                with parquet.ParquetFile(path) as file:
                    yield from file.iter_batches(_ROWS_TOGETHER)
        except (OSError, pyarrow.ArrowException) as error:
            what = "Arrow" if self._is_folder else "Parquet"
            reason = str(error).splitlines()[0][:200].rstrip(".")
            raise InputError(f"Could not read {path} as a file of {what}: {reason}.") from None


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


class TfdsSplit:
    """The records of a prepared TensorFlow Dataset, `tfds:NAME/CONFIG:SPLIT`.

    A record is a dictionary by the feature's name (`answers/text` of a feature inside another). A
    text is a str, a number an int or a float, a class its label's name (None where it is unknown),
    and a sequence a list of these.

    Attributes:
        format: the format in words.
        class_labels: the features that are class labels.

    Raises:
        InputError: it is not prepared, or a shard is missing or damaged.
    """

    format = "a prepared tfds split"

    def __init__(self, name):
        self._name = name
        dataset = parse_tfds_name(name)
        versions = [path.parent.name for path in Path(dataset.folder).glob(f"*/{INFO}")]
        version = dataset.version or latest_version(versions)
        if version not in versions:
            raise not_prepared(name, dataset.folder)
        folder = Path(dataset.folder) / version
        info = read_json(folder / INFO)
        paths = shard_paths(info, split_info(info, dataset.split, folder=folder), folder=folder)
        for path in paths:
            if not os.path.exists(path):
                raise InputError(f"{path} is missing. Prepare the dataset {name} again.")
        features = read_json(folder / _FEATURES).get("featuresDict", {}).get("features", {})
        self.class_labels = [name for name, about in features.items() if _is_class(about)]
        self._paths, self._readers = paths, dict(_feature_readers(features, folder))

    def rows(self):
        """Yields a dictionary per record."""
        import tensorflow as tf

        number = 0
        try:
            for record in tf.data.TFRecordDataset(self._paths).as_numpy_iterator():
                number += 1
                features = tf.train.Example.FromString(record).features.feature
                yield {name: read(features[name]) for name, read in self._readers.items()}
        except (tf.errors.OpError, ValueError) as error:
            reason = str(getattr(error, "message", error)).splitlines()[0][:200]
            raise InputError(f"{self._name}, after record {number}: damaged ({reason}).") from None


def _is_class(about):
    return "classLabel" in about or str(about.get("pythonClassName", "")).endswith("ClassLabel")


def _feature_readers(features, folder, *, prefix="", in_list=False):
    """Yields (name, function from a `tf.train.Feature` to its value) for every leaf.

    `features` are those of `features.json`; a feature inside another has both names.
    """
    for name, about in features.items():
        full = f"{prefix}{name}"
        sequence = about.get("sequence")
        inner = sequence["feature"] if sequence else about
        is_list = in_list or bool(sequence)
        nested = inner.get("featuresDict")
        if nested is not None:
            yield from _feature_readers(
                nested["features"], folder, prefix=f"{full}/", in_list=is_list
            )
            continue
        labels = None
        if _is_class(inner):
            path = folder / f"{full.replace('/', '-')}.labels.txt"
            labels = path.read_text(encoding="utf-8").splitlines() if path.exists() else None
        yield full, _feature_reader(labels, is_list=is_list)


def _feature_reader(labels, *, is_list):
    def plain(value):
        if isinstance(value, bytes):
            return value.decode("utf-8", errors="replace")
        if value == _UNKNOWN_LABEL and labels is not None:
            return None
        return labels[value] if labels is not None and 0 <= value < len(labels) else value

    def read(feature):
        kind = feature.WhichOneof("kind")
        values = [plain(value) for value in getattr(feature, kind).value] if kind else []
        return values if is_list else (values[0] if values else None)

    return read
