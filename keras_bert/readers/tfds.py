"""Labelled rows of a prepared TensorFlow Dataset: `tfds:NAME/CONFIG:SPLIT`.

A prepared dataset is a folder of TFRecord shards beside `dataset_info.json`. It is read as what it
is, from disk: nothing is downloaded, and tensorflow-datasets need not be installed.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.records.tfds_folders import (
    INFO,
    PREFIX,
    latest_version,
    not_prepared,
    parse_tfds_name,
    shard_paths,
    split_info,
)

__all__ = ["PREFIX", "TfdsTable"]
_FEATURES = "features.json"
_UNKNOWN_LABEL = -1  # of a test split whose labels nobody has


class TfdsTable:
    """One pass over the rows of a prepared split, with the interface of `Table`.

    A row is a dictionary by the feature's name (`answers/text` of a feature inside another): a
    text is a str, a number an int or a float, the feature of a class its label's name (None where
    it is unknown), and a sequence a list of these. A line is the number of the row, from 1.

    Args:
        name: `tfds:NAME/CONFIG:SPLIT`, or `tfds:NAME/CONFIG:VERSION:SPLIT`.

    Attributes: `name`, `kind` ("tfds"), `width` (None), `sample`, `skipped` (0).

    Raises:
        InputError: the split is not prepared, a file of it is missing, or a row is damaged.
    """

    kind = "tfds"
    calls_columns = "features"
    width = None
    skipped = 0

    def __init__(self, name, *, sample_rows=1):
        self.name = name
        dataset = parse_tfds_name(name)
        version = dataset.version or latest_version(_names(dataset.folder))
        if version is None:
            raise not_prepared(name, dataset.folder)
        folder = Path(dataset.folder) / version
        info = _read(folder / INFO, name)
        split = split_info(info, dataset.split, folder=folder)
        self._paths = shard_paths(info, split, folder=folder)
        for path in self._paths:
            if not os.path.exists(path):
                raise InputError(f"{path} is missing: prepare the dataset {name} again")
        features = _read(folder / _FEATURES, name)
        self._features = dict(_flat(features.get("featuresDict", {}).get("features", {}), folder))
        self._rows = self._read_rows()
        self.sample = list(islice(self._rows, sample_rows))
        if not self.sample:
            raise InputError(f"{name} holds no rows.")

    def __iter__(self) -> Iterator[tuple[int, dict]]:
        """Yields (row number from 1, row); may be called once."""
        return chain(self.sample, self._rows)

    def error(self, line, message):
        """The InputError that names the split and the row."""
        return InputError(f"{self.name}, row {line}: {message}")

    def closed_on_error(self):
        """A context with nothing to close."""
        return contextlib.nullcontext()

    def _read_rows(self):
        import tensorflow as tf

        line = 0
        try:
            for record in tf.data.TFRecordDataset(self._paths).as_numpy_iterator():
                line += 1
                found = tf.train.Example.FromString(record).features.feature
                yield line, {name: read(found) for name, read in self._features.items()}
        except (tf.errors.OpError, ValueError) as error:
            reason = str(getattr(error, "message", error)).splitlines()[0][:200]
            raise InputError(f"{self.name}, after row {line}: damaged ({reason})") from None


def _flat(features, folder, *, prefix="", in_list=False):
    """Yields (name, function of a record's features to the value) for every leaf.

    `features` are those of `features.json`; a feature inside another has both names.
    """
    for name, about in features.items():
        full = f"{prefix}{name}"
        sequence = about.get("sequence")
        inner = sequence["feature"] if sequence else about
        nested = inner.get("featuresDict")
        if nested is not None:
            more = _flat(
                nested["features"], folder, prefix=f"{full}/", in_list=in_list or bool(sequence)
            )
            yield from more
            continue
        labels = None
        if "classLabel" in inner or str(inner.get("pythonClassName", "")).endswith("ClassLabel"):
            labels = _labels(folder / f"{full.replace('/', '-')}.labels.txt")
        yield full, _reader(full, labels, is_list=in_list or bool(sequence))


def _reader(name, labels, *, is_list):
    def plain(value):
        if isinstance(value, bytes):
            return value.decode("utf-8", errors="replace")
        if value == _UNKNOWN_LABEL and labels is not None:
            return None
        return labels[value] if labels is not None and 0 <= value < len(labels) else value

    def read(found):
        feature = found[name]
        kind = feature.WhichOneof("kind")
        values = [plain(value) for value in getattr(feature, kind).value] if kind else []
        return values if is_list else (values[0] if values else None)

    return read


def _labels(path):
    """The names of a class's labels, a line each; None where nobody named them."""
    if not path.exists():
        return None
    return path.read_text(encoding="utf-8").splitlines()


def _names(folder):
    try:
        return [entry.name for entry in Path(folder).iterdir() if (entry / INFO).exists()]
    except OSError:
        return []


def _read(path, name):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{name} is not prepared: there is no {path}") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
