"""Records that cannot be read: why, in one sentence, and a data folder without them.

After the first bad record of a file TensorFlow's reader leaves out all the rest, the good rows too.
So the shards are read once before training, and what is whole in the damaged ones is written again
into a folder of the run. The rows, and with them the place in the data at every step, are settled
then: a run that goes on takes the same ones.
"""

import contextlib
import dataclasses
import json
from collections import Counter
from pathlib import Path

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.files import new_folder, read_small, write_json
from keras_bert.records.dataset_card import SPLITS
from keras_bert.records.folder import DataFolder
from keras_bert.records.rows import examples_of, read_examples, read_records

# What training raises over a bad record: in reading it, in parsing it (TensorFlow's error has its
# bytes, which may not be text), and in numpy.
_OF_EXAMPLES = (
    tf.errors.DataLossError,
    tf.errors.InvalidArgumentError,
    UnicodeDecodeError,
    tf.errors.UnknownError,
)


def reject_lost_records(folder):
    """Raises `InputError` where the shards of a `DataFolder` are not as large as its card says.

    They are read only then, to name the file. TensorFlow takes a file that was cut between two
    records, or is compressed, for a shorter one; every place in the data would be another.
    """
    for split in SPLITS:
        size = sum(tf.io.gfile.stat(shard).length for shard in folder.shards(split))
        if folder.card.splits[split].counters["bytes"] not in (0, size):  # 0: it does not say
            error = find_damage(folder, split)
            if error is not None:
                raise error


@contextlib.contextmanager
def damage_is_named(folder):
    """Raises the error of `find_damage` where TensorFlow fails in the body over damaged rows."""
    try:
        yield
    except _OF_EXAMPLES as failed:
        found = (find_damage(folder, split) for split in SPLITS)
        error = next((error for error in found if error is not None), failed)
        raise error from None


def find_damage(folder, split):
    """Reads a split of a `DataFolder` record by record.

    Returns the `InputError` of the first record that cannot be read, or of the first shard that has
    lost rows, or None: for whoever has read many shards at once and knows only that something in
    them is damaged.
    """
    shards = folder.shards(split)
    counts = folder.card.splits[split].shard_instances or [None] * len(shards)
    found = (
        damage_of(folder, shard, rows=rows) for shard, rows in zip(shards, counts, strict=True)
    )
    return next((error for error in found if error is not None), None)


def damage_of(folder, shard, *, rows=None):
    """As `find_damage` for one shard (a path).

    `rows` is how many it should hold, where that is known: a file may have been cut between two
    records.
    """
    number = 0
    try:
        for part in read_examples(folder, shard):
            number += len(part.lengths)
    except InputError as error:
        return error
    if rows in (None, number):
        return None
    return InputError(
        f"{shard} has {number} rows, and the dataset card says {rows}; make the data again with "
        "keras-bert pretraining-data --force"
    )


_LEFT_OUT = "left_out.json"
_AT_ONCE = 1024


class ReadableExamples(DataFolder):
    """The rows of a `DataFolder` that can be read.

    `left_out` maps the name of each damaged shard to how many records of it are left out; its
    `card` counts what is left (of tokens about as many as that makes).
    """

    def __init__(self, folder, salvage_folder, said):
        self.left_out = {name: shard["left_out"] for name, shard in said.items()}
        self._salvage_folder = salvage_folder
        splits = {split: _counted(folder, split, said) for split in SPLITS}
        super().__init__(path=folder.path, card=dataclasses.replace(folder.card, splits=splits))

    def shards(self, split):
        return [
            str(self._salvage_folder / name) if (name := _name(shard)) in self.left_out else shard
            for shard in super().shards(split)
        ]


def readable_examples(folder, salvage_folder):
    """Returns the `ReadableExamples` of a `DataFolder`.

    The intact records of damaged shards are written into the folder `salvage_folder`, once.

    Raises `InputError` where a shard is missing, where a split that had rows has none left, and for
    damage in a folder whose card does not count the rows of each shard.
    """
    salvage_folder = Path(salvage_folder)
    if not (salvage_folder / _LEFT_OUT).exists():
        salvage_folder.parent.mkdir(exist_ok=True)
        with new_folder(salvage_folder) as temporary:
            write_json(temporary / _LEFT_OUT, dict(_salvaged(folder, temporary)))
    rows = ReadableExamples(
        folder, salvage_folder, json.loads(read_small(salvage_folder / _LEFT_OUT))
    )
    for split in SPLITS:
        if folder.card.splits[split].instances and not rows.card.splits[split].instances:
            raise InputError(f"No record of the {split} split of {folder.path} can be read.")
    return rows


def _salvaged(folder, salvage_folder):
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
            records = read_records(shard, folder.compression)
            whole = [record.content for record in records if record.damage is None]
            good = [
                record
                for begin in range(0, len(whole), _AT_ONCE)
                for record in _rows_among(whole[begin : begin + _AT_ONCE], folder)
            ]
            with tf.io.TFRecordWriter(
                str(salvage_folder / _name(shard)), folder.compression
            ) as writer:
                for record in good:
                    writer.write(record)
            yield _name(shard), {"rows": len(good), "left_out": count - len(good)}


def _rows_among(records, folder):
    """The records that are rows of a `DataFolder`."""
    if not records:
        return []
    try:
        examples_of(folder, records, shard="", first=0)
    except InputError:
        if len(records) == 1:
            return []
        half = len(records) // 2
        return [*_rows_among(records[:half], folder), *_rows_among(records[half:], folder)]
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
