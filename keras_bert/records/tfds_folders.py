"""How prepared TensorFlow Datasets are stored: NAME/CONFIG/VERSION/ with shards and their info.

Shared by the data jobs, which read them by Beam's file systems, and the labelled examples.
"""

import os
import re
from typing import NamedTuple

from keras_bert.base.errors import InputError

PREFIX = "tfds:"
INFO = "dataset_info.json"


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
    splits = {each["name"]: each for each in info.get("splits", [])}
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
