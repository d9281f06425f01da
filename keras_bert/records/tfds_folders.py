"""Prepared TensorFlow Datasets: NAME/CONFIG/VERSION/ with TFRecord shards and their info.

Shared by the data jobs, which find their files by Beam's file systems, and the labelled examples.
Nothing is downloaded, and tensorflow-datasets need not be installed.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.files import read_json

PREFIX = "tfds:"
INFO = "dataset_info.json"
UNKNOWN_LABEL = -1  # of a test split whose labels nobody has
_FEATURES = "features.json"
_RECORDS_PER_BATCH = 256


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
    """The split of a dataset's info; InputError where it cannot be read."""
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

    Raises InputError where the shard is damaged, or has no such feature.
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
    text is a str, a number an int or a float, a class its label's name (None where it is unknown),
    and a sequence a list of these.

    Attributes:
        format: the format in words.
        class_labels: the features that are class labels.

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
