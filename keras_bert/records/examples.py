"""Reads the shards of a data folder record by record: for people, for checks, and for recovery.

TensorFlow's own reader trusts the length in a record whose checksum is right, however large, and
runs out of memory; here it is compared with the size of the file. After a damaged record it skips
the rest of the file, intact records too.
"""

import contextlib
import dataclasses
import gzip
import io
import itertools
import json
import struct
import zlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.files import new_folder, read_small, write_json
from keras_bert.records.folder import SPLITS, DataFolder

_BATCH = 1024
_BUFFER = 1 << 20
_HEADER, _FOOTER = struct.Struct("<QI"), struct.Struct("<I")  # length and checksum; of the data
_MAX_COMPRESSION = 1032  # the highest factor of deflate
_LEFT_OUT = "left_out.json"
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


class Record(NamedTuple):
    """A record of a file; `damage` is a phrase for what is wrong, or None."""

    content: bytes | None
    damage: str | None


def read_records(shard, compression):
    """Yields the `Record`s of a file, damaged ones included.

    It ends after a record behind which the next cannot be found: its length is wrong, or the file
    ends inside it, or is compressed and damaged there.
    """
    with tf.io.gfile.GFile(shard, "rb") as file, contextlib.ExitStack() as opened:
        largest = file.size()
        data = opened.enter_context(io.BufferedReader(_Raw(file), _BUFFER))
        if compression:
            largest *= _MAX_COMPRESSION
            data = opened.enter_context(gzip.GzipFile(fileobj=data))
        while True:
            try:
                record = _next_record(data, largest)
            except (EOFError, gzip.BadGzipFile, zlib.error):
                yield Record(None, "the compressed file is damaged there")
                return
            if record is None:
                return
            yield record
            if record.content is None:
                return


class _Raw(io.RawIOBase):
    """A `GFile` for `io.BufferedReader`."""

    def __init__(self, file):
        super().__init__()
        self._file = file

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _next_record(data, largest):
    """The next `Record` of a file; None at its end."""
    header = data.read(_HEADER.size)
    if not header:
        return None
    if len(header) < _HEADER.size:
        return Record(None, "the file ends inside it")
    length, check = _HEADER.unpack(header)
    if check != _masked_crc(header[:8]):
        return Record(None, "its checksum is wrong")
    if length > largest:
        return Record(None, f"its length is {length} bytes, more than the file has")
    content, footer = _read(data, length), data.read(_FOOTER.size)
    if len(footer) < _FOOTER.size:
        return Record(None, "the file ends inside it")
    if _FOOTER.unpack(footer)[0] != _masked_crc(content):
        return Record(content, "its checksum is wrong")
    return Record(content, None)


def _read(data, length):
    """Up to `length` bytes; memory is not allocated for more than there are."""
    if length <= _BUFFER:
        return data.read(length)
    parts = []
    while length and (part := data.read(min(length, _BUFFER))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _masked_crc(data):
    """The checksum of TFRecord files: a CRC-32C, rotated, plus a constant."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class ShardExamples(NamedTuple):
    """Consecutive examples of a shard, whatever spec they are stored by.

    R examples, the first of which is record `first` of the shard, from 0. `input_ids` int32 (R, S),
    padded with 0; `lengths` (R,); `segment_lengths` (R, 1 or 2); `next_sentence_labels` (R,) or
    None. `predictions` maps the features of masked tokens to int32 (R, P), of which the first
    `prediction_counts` (R,) per example count; it is empty where examples are not masked.
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

    Raises `InputError` with the number of the record where the file is damaged, or a record is not
    of the folder's spec, or has ids, lengths or positions that are out of range.
    """
    first, records = 0, read_records(shard, folder.compression)
    while batch := list(itertools.islice(records, _BATCH)):
        damaged = next((n for n, record in enumerate(batch) if record.damage is not None), None)
        whole = [record.content for record in batch[:damaged]]
        if whole:
            yield _examples_of(folder, whole, shard=shard, first=first)
        if damaged is not None:
            raise _unreadable(shard, first + damaged, batch[damaged].damage)
        first += len(batch)


def _examples_of(folder, records, *, shard, first):
    """The `ShardExamples` of some records (bytes); raises as `read_examples`."""
    unpack = _unpack_padded if folder.spec.kind == "padded" else _unpack_compact
    try:
        parsed = folder.spec.parse(tf.constant(records))
    except _PARSING_ERRORS:
        for number, record in enumerate(records):
            try:
                folder.spec.parse(tf.constant([record]))
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
        held = np.arange(positions.shape[1]) < counts[:, None]
        unknown = (originals < 0) | (originals >= size)
        outside = (positions < 0) | (positions >= ends)
        problems += [
            (counts > card.max_predictions, "it has too many predictions"),
            (held & outside, "a masked position is outside it"),
            (held & unknown, "a masked id is not in the vocabulary"),
        ]
    if "span_left" in examples.predictions:
        left, right = (examples.predictions[f"span_{side}"] for side in ("left", "right"))
        problems += [
            (held & ((left >= positions) | (positions >= right)), "a token is outside its span"),
            (held & ((left < 0) | (right >= ends)), "a span ends outside it"),
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
            name: values
            for name, values in batch.items()
            if name.startswith(("masked_lm_", "span_"))
        },
        prediction_counts=counts,
    )
    position = np.arange(batch["input_mask"].shape[1])
    inside = position < lengths[:, None]
    for name, values, expected in (
        ("input_mask", batch["input_mask"], inside),
        ("segment_ids", batch["segment_ids"], inside & (position >= (lengths - second)[:, None])),
        ("masked_lm_weights", weights, np.arange(weights.shape[1]) < counts[:, None]),
    ):
        examples.reject(values != expected, f"its {name} are not one run of 1, and 0 elsewhere")
    return examples


def find_damage(folder, split):
    """Reads a split of a `DataFolder` record by record.

    Returns the `InputError` of the first record that cannot be read, or of the first shard that has
    lost examples, or None.
    """
    found = (damage_of(folder, shard, expected=count) for shard, count in _counted(folder, split))
    return next((error for error in found if error is not None), None)


def damage_of(folder, shard, *, expected=None):
    """As `find_damage` for one shard (a path).

    `expected` is its number of examples, where that is known: a file may have been cut between two
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
    """Raises `InputError` where the shards of a `DataFolder` are not as large as its card says.

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
    """Raises the error of `find_damage` where TensorFlow fails in the body on damaged examples."""
    try:
        yield
    except _TRAINING_ERRORS as failed:
        found = (find_damage(folder, split) for split in SPLITS)
        error = next((error for error in found if error is not None), failed)
        raise error from None


class ReadableExamples(DataFolder):
    """The examples of a `DataFolder` that can be read.

    `left_out` maps the name of each damaged shard to the number of its records that are left out.
    The `card` counts the examples that are left, and estimates their tokens.
    """

    def __init__(self, folder, recovery_folder, recovered):
        self.left_out = {name: shard["left_out"] for name, shard in recovered.items()}
        self._recovery_folder = recovery_folder
        splits = {split: _recount(folder, split, recovered) for split in SPLITS}
        super().__init__(path=folder.path, card=dataclasses.replace(folder.card, splits=splits))

    def shards(self, split):
        return [
            str(self._recovery_folder / name) if (name := _name(shard)) in self.left_out else shard
            for shard in super().shards(split)
        ]


def readable_examples(folder, recovery_folder):
    """Returns the `ReadableExamples` of a `DataFolder`.

    The intact records of damaged shards are written into the folder `recovery_folder`, once: a run
    that resumes reads the same ones.

    Raises `InputError` where a shard is missing, where a split that had examples has none left, and
    for damage in a folder whose card does not have the number of examples per shard.
    """
    recovery_folder = Path(recovery_folder)
    if not (recovery_folder / _LEFT_OUT).exists():
        recovery_folder.parent.mkdir(exist_ok=True)
        with new_folder(recovery_folder) as temporary:
            write_json(temporary / _LEFT_OUT, dict(_recover(folder, temporary)))
    recovered = json.loads(read_small(recovery_folder / _LEFT_OUT))
    examples = ReadableExamples(folder, recovery_folder, recovered)
    for split in SPLITS:
        if folder.card.splits[split].instances and not examples.card.splits[split].instances:
            raise InputError(f"No record of the {split} split of {folder.path} can be read.")
    return examples


def _recover(folder, recovery_folder):
    """Writes the good records of damaged shards; yields (name, their numbers) per shard."""
    for split in SPLITS:
        for shard, count in _counted(folder, split):
            damage = damage_of(folder, shard, expected=count)
            if damage is None:
                continue
            if count is None:
                raise damage
            records = read_records(shard, folder.compression)
            whole = [record.content for record in records if record.damage is None]
            good = [
                record
                for begin in range(0, len(whole), _BATCH)
                for record in _valid(whole[begin : begin + _BATCH], folder)
            ]
            path = str(recovery_folder / _name(shard))
            with tf.io.TFRecordWriter(path, folder.compression) as writer:
                for record in good:
                    writer.write(record)
            # "rows" is the key of runs that are there already.
            yield _name(shard), {"rows": len(good), "left_out": count - len(good)}


def _valid(records, folder):
    """The records that are examples of a `DataFolder`, found by bisection."""
    if not records:
        return []
    try:
        _examples_of(folder, records, shard="", first=0)
    except InputError:
        if len(records) == 1:
            return []
        half = len(records) // 2
        return [*_valid(records[:half], folder), *_valid(records[half:], folder)]
    return records


def _recount(folder, split, recovered):
    """The `CardSplit` of what is left of a split."""
    card = folder.card.splits[split]
    names = [_name(shard) for shard in folder.shards(split)]
    if not any(name in recovered for name in names):
        return card
    counts = [
        recovered[name]["rows"] if name in recovered else count
        for name, count in zip(names, card.shard_instances, strict=True)
    ]
    return dataclasses.replace(
        card,
        instances=sum(counts),
        tokens=round(card.tokens * sum(counts) / card.instances),
        shard_instances=tuple(counts),
        counters=Counter({**card.counters, "bytes": 0}),  # 0: unknown
    )


def _name(shard):
    return shard.rpartition("/")[2]
