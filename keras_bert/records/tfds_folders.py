"""How prepared TensorFlow Datasets lie on disk: NAME/CONFIG/VERSION/, shards beside their info.

What reads them (the data jobs by Beam's file systems, labelled examples from disk) shares this.
"""

import os
import re
from typing import NamedTuple

from keras_bert.base.errors import InputError

PREFIX = "tfds:"
INFO = "dataset_info.json"


class TfdsName(NamedTuple):
    """What `tfds:NAME/CONFIG:SPLIT` or `tfds:NAME/CONFIG:VERSION:SPLIT` says.

    `folder` is where the dataset's versions lie: where TFDS_DATA_DIR says, or in
    ~/tensorflow_datasets, as for tfds itself. `version` is None for the latest prepared one.
    """

    folder: str
    version: str | None
    split: str


def parse_tfds_name(name):
    """The `TfdsName`; InputError where the name is of another form."""
    parts = name.removeprefix(PREFIX).split(":")
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(f"{name} does not name a dataset: write tfds:NAME/CONFIG:SPLIT")
    root = os.environ.get("TFDS_DATA_DIR") or os.path.expanduser("~/tensorflow_datasets")
    version = parts[1] if len(parts) == 3 else None
    return TfdsName(f"{root.rstrip('/')}/{parts[0]}", version, parts[-1])


def latest_version(names):
    """The highest of the names that are versions (1.10.0 is above 1.9.0), or None."""
    versions = [name for name in names if re.fullmatch(r"\d+\.\d+\.\d+", name)]
    return max(versions, key=lambda name: tuple(map(int, name.split("."))), default=None)


def not_prepared(name, folder):
    """The InputError of a dataset that is not there."""
    return InputError(
        f"{name} is not prepared: there is no {folder}/VERSION/{INFO}; prepare it with "
        "tensorflow-datasets, or set TFDS_DATA_DIR to the folder that holds it"
    )


def split_info(info, split, *, folder):
    """The entry of a split in a dataset's info; InputError where it cannot be read."""
    if info.get("fileFormat", "tfrecord") != "tfrecord":
        raise InputError(
            f"{folder} is stored as {info['fileFormat']}: prepare the dataset with "
            "file_format=tfrecord"
        )
    splits = {entry["name"]: entry for entry in info.get("splits", [])}
    if split not in splits:
        raise InputError(f"{folder} has no split {split}: it has {', '.join(splits) or 'none'}")
    return splits[split]


def shard_paths(info, split, *, folder):
    """The paths of the shards of a split's entry (see `split_info`), in order."""
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
