"""Which record of a shard cannot be read, and why, in one sentence."""

import contextlib
import re

import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.records.dataset_card import SPLITS

# What TensorFlow says of a record, and what that means.
_MEANINGS = {
    "truncated record": "the file ends inside it",
    "corrupted record": "its bytes are not those that were written",
    "inflate": "the compressed file is damaged there",
}
_NODES = re.compile(r"\{\{.*?\}\}|\[.*?\]")


def refuse_lost_rows(folder):
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
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as failed:
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


def damage_of(folder, shard, *, first=0, rows=None):
    """As `find_damage` for one shard (a path), from its record `first` on.

    `rows` is how many it should hold, where that is known: a file that was cut between two records,
    or is compressed, ends for TensorFlow without an error.
    """
    records = tf.data.TFRecordDataset(shard, folder.compression)
    number = first
    for at_once in (1024, 1):  # the batch that holds it, and then the record
        what = None
        try:
            for serialized in records.skip(number).batch(at_once):
                folder.spec.parse(serialized)
                number += len(serialized)
            break
        except tf.errors.OpError as error:
            what = f"{shard}, record {number} cannot be read: {_meaning(error)}"
    if what is None and rows not in (None, number):
        what = f"{shard} has {number} rows, and the dataset card says {rows}"
    return what and InputError(
        f"{what}; make the data again with keras-bert pretraining-data --force"
    )


def _meaning(error):
    if isinstance(error, tf.errors.InvalidArgumentError):
        return "it is no row of the kind that the dataset card describes"
    for said, meaning in _MEANINGS.items():
        if said in error.message:
            return meaning
    return _NODES.sub("", error.message.splitlines()[0]).strip()
