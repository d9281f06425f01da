"""gzip, Parquet, saved datasets and prepared TensorFlow Datasets: how such files are read.

gzip and Parquet are open binary files, of this machine or of Beam's file systems. The
`Dataset.save_to_disk` of `datasets` writes Arrow files and a state.json that lists them. Both it
and Parquet keep the features of the library, with the names of class labels, in the metadata of
their schema.

A prepared TensorFlow Dataset is NAME/CONFIG/VERSION/ with TFRecord shards and their info. It is
shared by the data jobs, which find their files by Beam's file systems, and the labelled examples.
Nothing is downloaded, and tensorflow-datasets need not be installed.
"""

import bisect
import contextlib
import gzip
import json
import os
import re
import zlib
from pathlib import Path
from typing import NamedTuple

from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.files import read_json
from keras_bert.base.formatting import listed

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"  # how such a file begins
ROWS_PER_BATCH = 1024
_STATE = "state.json"  # of a folder with a `datasets.Dataset`
_SPLITS = "dataset_dict.json"  # of one with a `datasets.DatasetDict`
PREFIX = "tfds:"  # of the name of a prepared dataset
INFO = "dataset_info.json"
UNKNOWN_LABEL = -1  # of a test split whose labels nobody has
_FEATURES = "features.json"
_RECORDS_PER_BATCH = 256


@contextlib.contextmanager
def gzip_errors(name):
    """Raises an InputError that names the file if it is damaged or cut short."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name} is not a complete gzip file ({error}).") from None


def decompressed(file):
    """A binary file, decompressed. Read it within `gzip_errors`."""
    return gzip.GzipFile(fileobj=file)


@contextlib.contextmanager
def open_parquet(file, name):
    """Opens a Parquet file. Raises InputError if it does not exist, or is found to be damaged."""
    import pyarrow
    from pyarrow import parquet

    try:
        yield parquet.ParquetFile(file)
    except FileNotFoundError:
        raise InputError(f"{name} does not exist. Give the path of a Parquet file.") from None
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"Could not read {name} as a Parquet file: {reason_of(error)}.") from None


def parquet_batches(file, name, **part):
    """Yields the record batches of a Parquet file; `part` are arguments of `iter_batches`."""
    with open_parquet(file, name) as opened:
        yield from opened.iter_batches(ROWS_PER_BATCH, **part)


def is_parquet(path):
    """Whether a file begins as Parquet does."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError:  # reported when the file is read
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
        declared: the columns of class labels, and those that pandas wrote as categories.

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
        fields = () if first is None else first.schema
        categories = [field.name for field in fields if hasattr(field.type, "index_type")]
        self.declared = [*self.class_labels, *categories]

    def rows(self):
        """Yields a dictionary per row."""
        for batch in self._batches():
            for begin in range(0, batch.num_rows, ROWS_PER_BATCH):
                for row in batch.slice(begin, ROWS_PER_BATCH).to_pylist():
                    yield with_names(row, self.class_labels)

    def columns(self, numbers):
        """Rows with these numbers, counted from 1 and in their order, as they are stored.

        Returns {name: a `pyarrow.ChunkedArray`}, without columns of class labels, whose rows have
        names, and without several of one name.
        """
        import pyarrow
        from pyarrow import compute

        numbers, begin, parts = [number - 1 for number in numbers], 0, []
        for batch in self._batches():
            end = bisect.bisect_left(numbers, begin + batch.num_rows)
            some = pyarrow.array(numbers[:end], pyarrow.int64())
            parts.append(batch.take(compute.subtract(some, begin)))
            numbers, begin = numbers[end:], begin + batch.num_rows
            if not numbers:
                break
        table = pyarrow.Table.from_batches(parts)
        names = table.column_names
        return {
            name: table.column(number)
            for number, name in enumerate(names)
            if name not in self.class_labels and names.count(name) == 1
        }

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


class TfdsName(NamedTuple):
    """The parts of `tfds:NAME/CONFIG:SPLIT` or `tfds:NAME/CONFIG:VERSION:SPLIT`.

    `folder` has the dataset's versions; it is in TFDS_DATA_DIR or ~/tensorflow_datasets, as for
    tfds itself. `version` is None for the latest prepared one.
    """

    folder: str
    version: str | None
    split: str


def parse_tfds_name(name):
    """The `TfdsName`; InputError for a name of another format."""
    parts = name.removeprefix(PREFIX).split(":")
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(f"Invalid dataset name {name}. Expected tfds:NAME/CONFIG:SPLIT.")
    root = os.environ.get("TFDS_DATA_DIR") or os.path.expanduser("~/tensorflow_datasets")
    version = parts[1] if len(parts) == 3 else None
    return TfdsName(f"{root.rstrip('/')}/{parts[0]}", version, parts[-1])


def latest_version(names):
    """The highest of the names that are versions (1.10.0 is above 1.9.0), or None."""
    versions = [name for name in names if re.fullmatch(r"\d+\.\d+\.\d+", name)]
    return max(versions, key=lambda name: tuple(map(int, name.split("."))), default=None)


def not_prepared(name, folder):
    """The InputError for a dataset that is missing."""
    return InputError(
        f"{name} is not prepared: there is no {folder}/VERSION/{INFO}. Prepare it with "
        "tensorflow-datasets, or set TFDS_DATA_DIR to its folder."
    )


def split_info(info, split, *, folder):
    """The split of a dataset's info; InputError if it cannot be read."""
    if info.get("fileFormat", "tfrecord") != "tfrecord":
        raise InputError(
            f"{folder} is stored as {info['fileFormat']}. Prepare the dataset with "
            "file_format=tfrecord."
        )
    splits = {part["name"]: part for part in info.get("splits", [])}
    if split not in splits:
        raise InputError(
            f"{folder} has no split {split}. Choose from: {', '.join(splits) or 'none'}."
        )
    return splits[split]


def shard_paths(info, split, *, folder):
    """The paths of the shards of a split (see `split_info`), in order."""
    count = len(split["shardLengths"])
    template = split.get("filepathTemplate") or "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    return [
        f"{folder}/"
        + template.replace("{DATASET}", info["name"])
        .replace("{SPLIT}", split["name"])
        .replace("{FILEFORMAT}", "tfrecord")
        .replace("{SHARD_X_OF_Y}", f"{index:05d}-of-{count:05d}")
        .replace("{SHARD_INDEX}", f"{index:05d}")
        .replace("{NUM_SHARDS}", f"{count:05d}")
        for index in range(count)
    ]


def shard_texts(path, feature):
    """Yields the text of a feature of every record in a shard, for the data jobs.

    Raises InputError if the shard is damaged, or has no such feature.
    """
    import tensorflow as tf

    features = {feature: tf.io.FixedLenFeature([], tf.string)}
    number = 0
    try:
        for records in tf.data.TFRecordDataset(path).batch(_RECORDS_PER_BATCH):
            for text in tf.io.parse_example(records, features)[feature].numpy().tolist():
                yield text.decode("utf-8", errors="replace")
                number += 1
    except tf.errors.OpError as error:
        raise InputError.naming(
            "Could not read a text after record {} of {} from the feature {}. Set {text_field} to "
            "the feature of the text ({}).",
            number,
            path,
            feature,
            reason_of(error),
        ) from None


class TfdsSplit:
    """The records of a prepared TensorFlow Dataset, `tfds:NAME/CONFIG:SPLIT`.

    A record is a dictionary by the feature's name (`answers/text` of a feature inside another). A
    text is a str, a number an int or a float, a class its label's name (None if it is unknown),
    and a sequence a list of these.

    Attributes:
        format: the format in words.
        class_labels, declared: the features that are class labels.

    Raises:
        InputError: it is not prepared, or a shard is missing or damaged.
    """

    kind, location, calls_columns = "tfds", "record", "features"
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
        self.declared = self.class_labels
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
            raise InputError(
                f"{self._name} is damaged after record {number}: {reason_of(error)}. Prepare the "
                "dataset again."
            ) from None


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
        if value == UNKNOWN_LABEL and labels is not None:
            return None
        return labels[value] if labels is not None and 0 <= value < len(labels) else value

    def read(feature):
        kind = feature.WhichOneof("kind")
        content = [plain(value) for value in getattr(feature, kind).value] if kind else []
        return content if is_list else (content[0] if content else None)

    return read
