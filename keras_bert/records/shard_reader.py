"""Reads the shards of a data folder in order, for people and for checks.

TensorFlow's reader does it, as in training, and this module names the record that it cannot read.
"""

import contextlib
import mmap
import os
import struct
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.records.folder import SPLITS

_BATCH = 1024
# A record of a TFRecord file: 8 bytes of length, a checksum, the record, a checksum.
_LENGTH, _AROUND_RECORD = struct.Struct("<Q"), 8 + 4 + 4
_AGAIN = "Make the data again with keras-bert pretraining-data --force."

# An error of TensorFlow's contains the bytes of the record, which may not be text.
_PARSING_ERRORS = (tf.errors.OpError, UnicodeDecodeError)
# What training raises for a bad record: in reading it, in parsing it, and in numpy.
_TRAINING_ERRORS = (
    tf.errors.DataLossError,
    tf.errors.InvalidArgumentError,
    UnicodeDecodeError,
    tf.errors.UnknownError,
)


def read_records(shard, compression):
    """Yields the records of a file in batches, string (R,).

    Raises `InputError` with the number of the first record that cannot be read, after those before
    it.
    """
    inside, is_whole = (-1, True) if compression else _records_inside(shard)
    options = tf.data.Options()
    options.autotune.enabled = False  # destroying an iterator would wait for its thread
    options.experimental_optimization.apply_default_optimizations = False  # nothing to fuse
    records = tf.data.TFRecordDataset(shard, compression).take(inside).with_options(options)
    count = 0
    try:
        for batch in records.batch(_BATCH):
            yield batch
            count += len(batch)
        if is_whole:
            return
    except tf.errors.DataLossError:
        # What was read of the last batch is lost. After a damaged record there is no other.
        for batch in records.skip(count).ignore_errors().batch(_BATCH):
            yield batch
            count += len(batch)
    raise _unreadable(shard, count, "the file is damaged or cut there")


def _records_inside(shard):
    """-> (how many records are inside a file by their lengths, whether they are all of it).

    TensorFlow's reader asks for memory for any length whose checksum is right, and if there is
    not as much it ends the process. So it reads only these, if the file is a local one.
    """
    if not os.path.isfile(shard):
        return -1, True
    count, end, size = 0, 0, os.path.getsize(shard)
    if not size:  # an empty file has no map
        return 0, True
    with open(shard, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        while end <= size - _AROUND_RECORD:
            end += _LENGTH.unpack_from(data, end)[0] + _AROUND_RECORD
            count += 1
    return count - (end > size), end == size


class ShardExamples(NamedTuple):
    """Consecutive examples of a shard, whatever spec they are stored by.

    R examples, the first of which is record `first` of the shard, from 0. `input_ids` int32 (R, S),
    padded with 0; `lengths` (R,); `segment_lengths` (R, 1 or 2); `next_sentence_labels` (R,) or
    None. `predictions` maps the features of masked tokens to int32 (R, P), of which the first
    `prediction_counts` (R,) per example count; it is empty if examples are not masked.
    """

    shard: str
    first: int
    input_ids: np.ndarray
    lengths: np.ndarray
    segment_lengths: np.ndarray
    next_sentence_labels: np.ndarray | None
    predictions: dict
    prediction_counts: np.ndarray

    def reject(self, bad, problem):
        """Raises `InputError` for the first example for which `bad`, (R,) or (R, n), is true."""
        bad = bad.reshape(len(bad), -1).any(axis=1)
        if bad.any():
            raise InputError(f"{self.shard}, record {self.first + int(bad.argmax())}: {problem}.")


def read_examples(folder, shard):
    """Yields the `ShardExamples` of a shard of a `DataFolder`, some at a time.

    Raises `InputError` with the number of the record if the file is damaged, or a record is not
    of the folder's spec, or has ids, lengths or positions that are out of range.
    """
    first = 0
    for records in read_records(shard, folder.compression):
        yield _examples_of(folder, records, shard=shard, first=first)
        first += len(records)


def _examples_of(folder, records, *, shard, first):
    """The `ShardExamples` of records, string (R,); raises as `read_examples`."""
    unpack = _unpack_padded if folder.spec.kind == "padded" else _unpack_compact
    try:
        parsed = folder.spec.parse(records)
    except _PARSING_ERRORS:
        for number, record in enumerate(records):
            try:
                folder.spec.parse(record[None])
            except _PARSING_ERRORS:
                problem = "it is not an example as the dataset card describes them"
                raise _unreadable(shard, first + number, problem) from None
        raise
    examples = unpack(shard, first, parsed, folder)
    _check_ranges(examples, folder.card)
    return examples


def _unreadable(shard, number, problem):
    return InputError(f"{shard}, record {number} cannot be read: {problem}. {_AGAIN}")


def _check_ranges(examples, card):
    """Raises `InputError` for the first example with a value that is out of range."""
    size, lengths, segments = card.vocabulary.size, examples.lengths, examples.segment_lengths
    ids, labels = examples.input_ids, examples.next_sentence_labels
    problems = [
        (lengths > card.max_length, "it is longer than the maximum length"),
        (lengths == 0, "it is empty"),
        ((ids < 0) | (ids >= size), "an id is not in the vocabulary"),
        (segments.sum(axis=1) != lengths, "its segments do not sum to its length"),
        (segments <= card.template.belonging(segments.shape[1]), "a segment is empty"),
    ]
    if labels is not None:
        problems.append(((labels != 0) & (labels != 1), "its next-sentence label is not 0 or 1"))
    counts, ends = examples.prediction_counts, lengths[:, None]
    if examples.predictions:
        positions = examples.predictions["masked_lm_positions"]
        originals = examples.predictions["masked_lm_ids"]
        is_prediction = np.arange(positions.shape[1]) < counts[:, None]
        unknown = (originals < 0) | (originals >= size)
        outside = (positions < 0) | (positions >= ends)
        problems += [
            (counts > card.max_predictions, "it has too many predictions"),
            (is_prediction & outside, "a masked position is outside it"),
            (is_prediction & unknown, "a masked id is not in the vocabulary"),
        ]
    if "span_left" in examples.predictions:
        left, right = (examples.predictions[f"span_{side}"] for side in ("left", "right"))
        problems += [
            (
                is_prediction & ((left >= positions) | (positions >= right)),
                "a token is outside its span",
            ),
            (is_prediction & ((left < 0) | (right >= ends)), "a span ends outside it"),
        ]
    for bad, problem in problems:
        examples.reject(bad, problem)


def _unpack_compact(shard, first, batch, folder):
    labels = batch.get("next_sentence_labels")
    names = [name for name in batch if name.startswith(("masked_lm_", "span_"))]
    lengths = batch["input_ids"].row_lengths().numpy()
    counts = batch[names[0]].row_lengths().numpy() if names else np.zeros(len(lengths), np.int64)
    examples = ShardExamples(
        shard=shard,
        first=first,
        input_ids=batch["input_ids"].to_tensor().numpy(),
        lengths=lengths,
        segment_lengths=batch["segment_lengths"].numpy(),
        next_sentence_labels=None if labels is None else labels.numpy()[:, 0],
        predictions={name: batch[name].to_tensor().numpy() for name in names},
        prediction_counts=counts,
    )
    for name in names:
        differs = batch[name].row_lengths().numpy() != counts
        examples.reject(differs, f"{name} and {names[0]} have different numbers of values")
    return examples


def _unpack_padded(shard, first, batch, folder):
    has_pairs = folder.card.has_pairs
    batch = {name: value.numpy() for name, value in batch.items()}
    lengths = batch["input_mask"].sum(axis=1)
    second = batch["segment_ids"].sum(axis=1)
    weights = batch.pop("masked_lm_weights")
    counts = (weights > 0).sum(axis=1)
    examples = ShardExamples(
        shard=shard,
        first=first,
        input_ids=batch["input_ids"],
        lengths=lengths,
        segment_lengths=np.stack([lengths - second, second], axis=1)[:, : 1 + has_pairs],
        next_sentence_labels=batch["next_sentence_labels"][:, 0] if has_pairs else None,
        predictions={
            name: numbers
            for name, numbers in batch.items()
            if name.startswith(("masked_lm_", "span_"))
        },
        prediction_counts=counts,
    )
    position = np.arange(batch["input_mask"].shape[1])
    inside = position < lengths[:, None]
    for name, stored, expected in (
        ("input_mask", batch["input_mask"], inside),
        ("segment_ids", batch["segment_ids"], inside & (position >= (lengths - second)[:, None])),
        ("masked_lm_weights", weights, np.arange(weights.shape[1]) < counts[:, None]),
    ):
        examples.reject(stored != expected, f"its {name} are not one run of 1, and 0 elsewhere")
    return examples


def find_damage(folder, split):
    """Reads a split of a `DataFolder` record by record.

    Returns the `InputError` of the first record that cannot be read, or of the first shard that has
    lost examples, or None.
    """
    errors = (damage_of(folder, shard, expected=count) for shard, count in _counted(folder, split))
    return next((error for error in errors if error is not None), None)


def damage_of(folder, shard, *, expected=None):
    """Finds the damage of one shard (a path), as `find_damage`.

    `expected` is its number of examples, if that is known: a file may have been cut between two
    records.
    """
    number = 0
    try:
        for part in read_examples(folder, shard):
            number += len(part.lengths)
    except InputError as error:
        return error
    if expected in (None, number):
        return None
    return InputError(f"{shard} has {number} examples, the dataset card {expected}. {_AGAIN}")


def _counted(folder, split):
    """Pairs of a split's shards and their number of examples, which an old card does not have."""
    shards = folder.shards(split)
    counts = folder.card.splits[split].shard_instances or [None] * len(shards)
    return zip(shards, counts, strict=True)


def reject_lost_records(folder):
    """Raises `InputError` if the shards of a `DataFolder` are not as large as its card says.

    They are read only then, to name the file. TensorFlow reads a file that was cut between two
    records, or inside a compressed one, as a shorter file, which would move every position in the
    data.
    """
    for split in SPLITS:
        size = sum(tf.io.gfile.stat(shard).length for shard in folder.shards(split))
        if folder.card.splits[split].counters["bytes"] not in (0, size):  # 0: unknown
            error = find_damage(folder, split)
            if error is not None:
                raise error


@contextlib.contextmanager
def damage_is_named(folder):
    """Raises the error of `find_damage` if TensorFlow fails in the body on damaged examples."""
    try:
        yield
    except _TRAINING_ERRORS as failed:
        errors = (find_damage(folder, split) for split in SPLITS)
        raise next((error for error in errors if error is not None), failed) from None
