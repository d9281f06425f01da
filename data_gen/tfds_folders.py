"""Prepared TensorFlow Datasets as a source of documents: `tfds:NAME/CONFIG:SPLIT`.

A prepared dataset is a folder of TFRecord shards beside `dataset_info.json`. It is read as what it
is, from disk: nothing is downloaded, and tensorflow-datasets need not be installed.
"""

import json
import os
import re

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from data_gen.blocks import Block, Window
from keras_bert.errors import InputError

PREFIX = "tfds:"
_INFO = "dataset_info.json"
_AT_ONCE = 256


def windows(name):
    """The shards of `tfds:NAME/CONFIG:SPLIT` as windows.

    NAME may go with a version (`NAME/CONFIG:1.0.0:SPLIT`); without, the latest prepared one is
    taken. Datasets lie where TFDS_DATA_DIR says, or in ~/tensorflow_datasets, as for tfds itself.
    Raises `InputError` for a dataset or a split that is not prepared there.
    """
    parts = name.removeprefix(PREFIX).split(":")
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(f"{name} does not name a dataset: write tfds:NAME/CONFIG:SPLIT")
    root = os.environ.get("TFDS_DATA_DIR") or os.path.expanduser("~/tensorflow_datasets")
    folder = f"{root.rstrip('/')}/{parts[0]}"
    if len(parts) == 3:
        folder = f"{folder}/{parts[1]}"
    else:
        folder = _latest(folder, name)
    info = _read_info(folder, name)
    if info.get("fileFormat", "tfrecord") != "tfrecord":
        raise InputError(
            f"{folder} is stored as {info['fileFormat']}: prepare the dataset with "
            "file_format=tfrecord"
        )
    splits = {split["name"]: split for split in info.get("splits", [])}
    if parts[-1] not in splits:
        raise InputError(f"{folder} has no split {parts[-1]}: it has {', '.join(splits) or 'none'}")
    split = splits[parts[-1]]
    count = len(split["shardLengths"])
    template = split.get("filepathTemplate") or "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    paths = [
        f"{folder}/"
        + template.replace("{DATASET}", info["name"])
        .replace("{SPLIT}", split["name"])
        .replace("{FILEFORMAT}", "tfrecord")
        .replace("{SHARD_X_OF_Y}", f"{index:05d}-of-{count:05d}")
        .replace("{SHARD_INDEX}", f"{index:05d}")
        .replace("{NUM_SHARDS}", f"{count:05d}")
        for index in range(count)
    ]
    for path in paths:
        if not FileSystems.exists(path):
            raise InputError(f"{path} is missing: prepare the dataset {name} again")
    size = int(split.get("numBytes", 0)) // max(1, count)
    return [Window(path, "tfds", 0, None, size) for path in paths]


def spans(window, reading):
    """Yields the shard as one block without counts."""
    yield Block(window.path, "tfds", 0, None, stream=True)


def contents(block, reading, counts):
    """Yields (start, end, text) for each example; the places are numbers of records."""
    import tensorflow as tf

    features = {reading.text_field: tf.io.FixedLenFeature([], tf.string)}
    row = 0
    try:
        for records in tf.data.TFRecordDataset(block.path).batch(_AT_ONCE):
            texts = tf.io.parse_example(records, features)[reading.text_field]
            for text in texts.numpy().tolist():
                yield row, row + 1, text.decode("utf-8", errors="replace")
                row += 1
    except tf.errors.OpError as error:
        raise InputError(
            f"{block.path}, after record {row}: no text can be read from the feature "
            f"{reading.text_field}; name the one that holds it with `text_field` "
            f"({error.message.splitlines()[0][:200]})"
        ) from None


def _latest(folder, name):
    """The folder of the highest version in a dataset's folder."""
    try:
        found = FileSystems.match([f"{folder}/*/{_INFO}"])[0].metadata_list
    except (BeamIOError, ValueError) as error:
        raise InputError(f"{folder} cannot be listed: {error}") from None
    versions = {}
    for match in found:
        version = match.path.split("/")[-2]
        if re.fullmatch(r"\d+\.\d+\.\d+", version):
            versions[tuple(map(int, version.split(".")))] = match.path[: -len(_INFO) - 1]
    if not versions:
        raise InputError(
            f"{name} is not prepared: there is no {folder}/VERSION/{_INFO}; prepare it with "
            "tensorflow-datasets, or set TFDS_DATA_DIR to the folder that holds it"
        )
    return versions[max(versions)]


def _read_info(folder, name):
    try:
        with FileSystems.open(f"{folder}/{_INFO}") as file:
            return json.loads(file.read())
    except (BeamIOError, OSError):
        raise InputError(f"{name} is not prepared: there is no {folder}/{_INFO}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{folder}/{_INFO} is not JSON: {error}") from None
