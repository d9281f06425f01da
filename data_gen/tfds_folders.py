"""Prepared TensorFlow Datasets as a source of documents: `tfds:NAME/CONFIG:SPLIT`.

A prepared dataset is a folder of TFRecord shards beside `dataset_info.json`. It is read as what it
is, from disk: nothing is downloaded, and tensorflow-datasets need not be installed.
"""

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from data_gen.reading import Block, Window
from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.records.tfds_folders import (
    INFO,
    PREFIX,
    latest_version,
    not_prepared,
    parse_tfds_name,
    shard_paths,
    split_info,
)

__all__ = ["PREFIX", "contents", "spans", "windows"]
_AT_ONCE = 256


def windows(name):
    """The shards of `tfds:NAME/CONFIG:SPLIT` as windows (see `TfdsName`).

    Raises `InputError` for a dataset or a split that is not prepared there.
    """
    dataset = parse_tfds_name(name)
    folder = dataset.folder
    folder = f"{folder}/{dataset.version or _latest(folder, name)}"
    info = _read_info(folder, name)
    split = split_info(info, dataset.split, folder=folder)
    paths = shard_paths(info, split, folder=folder)
    for path in paths:
        if not FileSystems.exists(path):
            raise InputError(f"{path} is missing: prepare the dataset {name} again")
    size = int(split.get("numBytes", 0)) // max(1, len(paths))
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
    """The highest version in a dataset's folder."""
    try:
        found = FileSystems.match([f"{folder}/*/{INFO}"])[0].metadata_list
    except (BeamIOError, ValueError) as error:
        raise InputError(f"{folder} cannot be listed: {error}") from None
    version = latest_version(match.path.split("/")[-2] for match in found)
    if version is None:
        raise not_prepared(name, folder)
    return version


def _read_info(folder, name):
    try:
        with FileSystems.open(f"{folder}/{INFO}") as file:
            return parse_json(file.read())
    except (BeamIOError, OSError):
        raise InputError(f"{name} is not prepared: there is no {folder}/{INFO}") from None
    except NotJson as error:
        raise InputError(f"{folder}/{INFO} is not JSON: {error}") from None
