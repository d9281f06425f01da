"""A data folder without those of its records that cannot be read.

After the first bad record of a file TensorFlow's reader leaves out all the rest, the good rows too.
So the shards are read once before training, and what is whole in the damaged ones is written again
into a folder of the run. The rows, and with them the place in the data at every step, are settled
then: a run that goes on takes the same ones.
"""

import contextlib
import dataclasses
import gzip
import json
import struct
import zlib
from collections import Counter
from pathlib import Path

import google_crc32c
import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.files import new_folder, read_small, write_json
from keras_bert.records.damage import damage_of
from keras_bert.records.dataset_card import SPLITS
from keras_bert.records.folder import DataFolder

_LEFT_OUT = "left_out.json"
_HEADER, _FOOTER = struct.Struct("<QI"), struct.Struct("<I")  # length and its check; the data's


class ReadableRows(DataFolder):
    """The rows of a `DataFolder` that can be read.

    `left_out` maps the name of each damaged shard to how many records of it are left out; its
    `card` counts what is left (of tokens about as many as that makes).
    """

    def __init__(self, folder, place, said):
        self.left_out = {name: shard["left_out"] for name, shard in said.items()}
        self._place = place
        splits = {split: _counted(folder, split, said) for split in SPLITS}
        super().__init__(path=folder.path, card=dataclasses.replace(folder.card, splits=splits))

    def shards(self, split):
        return [
            str(self._place / name) if (name := _name(shard)) in self.left_out else shard
            for shard in super().shards(split)
        ]


def readable_rows(folder, place):
    """Returns the `ReadableRows` of a `DataFolder`.

    What is whole of damaged shards is written into `place` (a path, which is not there yet), once:
    where it is there, the rows are those that it was written for.

    Raises `InputError` where a shard is missing, where a split that had rows has none left, and for
    damage in a folder whose card does not count the rows of each shard.
    """
    place = Path(place)
    if not (place / _LEFT_OUT).exists():
        place.parent.mkdir(exist_ok=True)
        with new_folder(place) as aside:
            write_json(aside / _LEFT_OUT, dict(_salvaged(folder, aside)))
    rows = ReadableRows(folder, place, json.loads(read_small(place / _LEFT_OUT)))
    for split in SPLITS:
        if folder.card.splits[split].instances and not rows.card.splits[split].instances:
            raise InputError(f"No record of the {split} split of {folder.path} can be read.")
    return rows


def _salvaged(folder, place):
    """Writes the good records of damaged shards; yields (name, what is to be known of it)."""
    for split in SPLITS:
        shards = folder.shards(split)
        counts = folder.card.splits[split].shard_instances or [None] * len(shards)
        for shard, count in zip(shards, counts, strict=True):
            damage = damage_of(folder, shard, rows=count)
            if damage is None:
                continue
            if count is None:
                raise damage
            good = _of_spec(list(_records(shard, folder.compression)), folder.spec)
            with tf.io.TFRecordWriter(str(place / _name(shard)), folder.compression) as writer:
                for record in good:
                    writer.write(record)
            yield _name(shard), {"rows": len(good), "left_out": count - len(good)}


def _records(shard, compression):
    """Yields each record of a file whose bytes are those that were written.

    Ends where the next one cannot be found: after a length that is wrong, or in a compressed file
    where it is damaged.
    """
    with contextlib.ExitStack() as opened:
        file = opened.enter_context(tf.io.gfile.GFile(shard, "rb"))
        if compression:
            file = opened.enter_context(gzip.GzipFile(fileobj=file))
            opened.enter_context(contextlib.suppress(EOFError, gzip.BadGzipFile, zlib.error))
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, check = _HEADER.unpack(header)
            if check != _masked_crc(header[:8]):
                return
            record, footer = file.read(length), file.read(_FOOTER.size)
            if len(footer) < _FOOTER.size:
                return
            if _FOOTER.unpack(footer)[0] == _masked_crc(record):
                yield record


def _masked_crc(data):
    """The check that TFRecord files have: a CRC-32C, rotated and moved."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _of_spec(records, spec):
    """The records that are rows of a `FeatureSpec`."""
    if not records:
        return []
    try:
        spec.parse(tf.constant(records))
    except tf.errors.OpError:
        if len(records) == 1:
            return []
        half = len(records) // 2
        return [*_of_spec(records[:half], spec), *_of_spec(records[half:], spec)]
    return records


def _counted(folder, split, said):
    """The card's `CardSplit` with what is left of it."""
    card = folder.card.splits[split]
    names = [_name(shard) for shard in folder.shards(split)]
    if not any(name in said for name in names):
        return card
    rows = [
        said[name]["rows"] if name in said else count
        for name, count in zip(names, card.shard_instances, strict=True)
    ]
    return dataclasses.replace(
        card,
        instances=sum(rows),
        tokens=round(card.tokens * sum(rows) / card.instances),
        shard_instances=tuple(rows),
        counters=Counter({**card.counters, "bytes": 0}),  # 0: it does not say
    )


def _name(shard):
    return shard.rpartition("/")[2]
