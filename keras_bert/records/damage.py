"""Which record of a shard cannot be read, and why, in one sentence."""

import contextlib

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.records.dataset_card import SPLITS
from keras_bert.records.rows import read_rows

# What training raises over a bad record: in reading it, in parsing it (TensorFlow's error has its
# bytes, which may not be text), and in numpy.
_OF_ROWS = (
    tf.errors.DataLossError,
    tf.errors.InvalidArgumentError,
    UnicodeDecodeError,
    tf.errors.UnknownError,
)


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
    except _OF_ROWS as failed:
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
        for part in read_rows(folder, shard):
            number += len(part.lengths)
    except InputError as error:
        return error
    if rows in (None, number):
        return None
    return InputError(
        f"{shard} has {number} rows, and the dataset card says {rows}; make the data again with "
        "keras-bert pretraining-data --force"
    )
