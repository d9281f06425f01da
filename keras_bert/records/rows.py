"""Reads the rows of a data folder back as numpy arrays, for people and for checks.

TensorFlow's own reader believes the length that a record gives, however large, if its check is
right: it asks for so much memory, and the process dies. Here it is compared with the file's size.
"""

import contextlib
import gzip
import io
import itertools
import struct
import zlib
from typing import NamedTuple

import google_crc32c
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError

# What parsing raises. An error of TensorFlow's has the record's bytes in it, which may not be text.
_PARSING_ERRORS = (tf.errors.OpError, UnicodeDecodeError)

_AT_ONCE = 1024
_BUFFER = 1 << 20
_HEADER, _FOOTER = struct.Struct("<QI"), struct.Struct("<I")  # length and its check; the data's
_MOST_COMPRESSED = 1032  # times that deflate makes something smaller


class ShardExamples(NamedTuple):
    """Consecutive rows of a shard, R of them, whatever spec they are stored by.

    `first` is the number of the first row in its shard, from 0. `input_ids` int32 (R, S), padded
    with 0; `lengths` (R,); `segment_lengths` (R, 1 or 2); `next_sentence_labels` (R,) or None.
    `predictions` maps the features of masked tokens to int32 (R, P), padded with 0, of which the
    first `prediction_counts` (R,) of each row count; it is empty, and they are 0, in unmasked rows.
    """

    shard: str
    first: int
    input_ids: np.ndarray
    lengths: np.ndarray
    segment_lengths: np.ndarray
    next_sentence_labels: np.ndarray | None
    predictions: dict
    prediction_counts: np.ndarray


class Record(NamedTuple):
    """A record of a file as it is there: `damage` says in a phrase what is wrong, or is None."""

    content: bytes | None
    damage: str | None


def read_records(shard, compression):
    """Yields the `Record`s of a file, the damaged ones too.

    It ends after one behind which the next cannot be found: its length is wrong, or the file ends
    inside it, or is compressed and damaged there.
    """
    with tf.io.gfile.GFile(shard, "rb") as file, contextlib.ExitStack() as opened:
        largest = file.size()
        data = opened.enter_context(io.BufferedReader(_Raw(file), _BUFFER))
        if compression:
            largest *= _MOST_COMPRESSED
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
    """A file of TensorFlow's as what Python buffers."""

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
        return Record(None, "its bytes are not those that were written")
    if length > largest:
        return Record(None, f"its length is {length} bytes, more than the file has")
    content, footer = _read(data, length), data.read(_FOOTER.size)
    if len(footer) < _FOOTER.size:
        return Record(None, "the file ends inside it")
    if _FOOTER.unpack(footer)[0] != _masked_crc(content):
        return Record(content, "its bytes are not those that were written")
    return Record(content, None)


def _read(data, length):
    """So many bytes, or as many as there are: memory is not asked for before."""
    if length <= _BUFFER:
        return data.read(length)
    parts = []
    while length and (part := data.read(min(length, _BUFFER))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _masked_crc(data):
    """The check that TFRecord files have: a CRC-32C, rotated and moved."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_examples(folder, shard):
    """Yields the `ShardExamples` of a shard of a `DataFolder`, some at a time.

    Raises `InputError` with the number of the record where the file is damaged, or a record is not
    of the folder's spec, or holds ids, lengths or positions that the model has no place for.
    """
    read, records = 0, read_records(shard, folder.compression)
    while batch := list(itertools.islice(records, _AT_ONCE)):
        damaged = next((n for n, record in enumerate(batch) if record.damage is not None), None)
        whole = [record.content for record in batch[:damaged]]
        if whole:
            yield examples_of(folder, whole, shard=shard, first=read)
        if damaged is not None:
            raise _unreadable(shard, read + damaged, batch[damaged].damage)
        read += len(batch)


def examples_of(folder, records, *, shard, first):
    """The `ShardExamples` of some records, strings of bytes; raises as `read_examples`."""
    unpack = _of_padded if folder.spec.kind == "padded" else _of_compact
    try:
        parsed = folder.spec.parse(tf.constant(records))
    except _PARSING_ERRORS:
        for number, record in enumerate(records):
            try:
                folder.spec.parse(tf.constant([record]))
            except _PARSING_ERRORS:
                why = "it is not a row of the kind that the dataset card describes"
                raise _unreadable(shard, first + number, why) from None
        raise
    rows = unpack(shard, first, parsed, folder)
    _check_ranges(rows, folder.card)
    return rows


def _unreadable(shard, number, why):
    """The `InputError` of a record that cannot be read."""
    return InputError(
        f"{shard}, record {number} cannot be read: {why}; make the data again with keras-bert "
        "pretraining-data --force"
    )


def _check_ranges(rows, card):
    """Raises `InputError` for the first row with something that the model has no place for."""
    size, lengths, segments = card.vocabulary.size, rows.lengths, rows.segment_lengths
    ids, labels = rows.input_ids, rows.next_sentence_labels
    offences = [
        (lengths > card.max_length, "it is longer than the maximum length"),
        (lengths == 0, "it is empty"),
        ((ids < 0) | (ids >= size), "an id is none of the vocabulary's"),
        (segments.sum(axis=1) != lengths, "its segments do not sum to its length"),
        (segments <= card.template.belonging(segments.shape[1]), "a segment is empty"),
    ]
    if labels is not None:
        offences.append(((labels != 0) & (labels != 1), "its next-sentence label is not 0 or 1"))
    counts, ends = rows.prediction_counts, lengths[:, None]
    if rows.predictions:
        positions, originals = (
            rows.predictions[name] for name in ("masked_lm_positions", "masked_lm_ids")
        )
        held = np.arange(positions.shape[1]) < counts[:, None]
        unknown, outside = (
            (originals < 0) | (originals >= size),
            (positions < 0) | (positions >= ends),
        )
        offences += [
            (counts > card.max_predictions, "it has too many predictions"),
            (held & outside, "a masked position is outside it"),
            (held & unknown, "a masked id is none of the vocabulary's"),
        ]
    if "span_left" in rows.predictions:
        left, right = (rows.predictions[f"span_{side}"] for side in ("left", "right"))
        beside = (left >= positions) | (positions >= right)
        outside = (left < 0) | (right >= ends)
        offences += [
            (held & beside, "a token is outside of its span"),
            (held & outside, "a span ends outside it"),
        ]
    for bad, what in offences:
        reject_examples(rows, bad, what)


def reject_examples(rows, bad, what):
    """Raises `InputError` for the first of some rows where `bad` (R,) or (R, n) is true."""
    bad = bad.reshape(len(bad), -1).any(axis=1)
    if bad.any():
        raise InputError(f"{rows.shard}, record {rows.first + int(bad.argmax())}: {what}")


def _of_compact(shard, first, batch, folder):
    labels = batch.get("next_sentence_labels")
    names = [name for name in batch if name.startswith(("masked_lm_", "span_"))]
    lengths = batch["input_ids"].row_lengths().numpy()
    counts = batch[names[0]].row_lengths().numpy() if names else np.zeros(len(lengths), np.int64)
    for name in names:
        if (batch[name].row_lengths().numpy() != counts).any():
            row = int(np.flatnonzero(batch[name].row_lengths().numpy() != counts)[0])
            raise InputError(
                f"{shard}, record {first + row}: {name} and {names[0]} have not as many values"
            )
    return ShardExamples(
        shard=shard,
        first=first,
        input_ids=batch["input_ids"].to_tensor().numpy(),
        lengths=lengths,
        segment_lengths=batch["segment_lengths"].numpy(),
        next_sentence_labels=None if labels is None else labels.numpy()[:, 0],
        predictions={name: batch[name].to_tensor().numpy() for name in names},
        prediction_counts=counts,
    )


def _of_padded(shard, first, batch, folder):
    has_pairs = folder.card.has_pairs
    batch = {name: value.numpy() for name, value in batch.items()}
    lengths = batch["input_mask"].sum(axis=1)
    second = batch["segment_ids"].sum(axis=1)
    counts = (batch["masked_lm_weights"] > 0).sum(axis=1)
    position = np.arange(batch["input_mask"].shape[1])
    inside = position < lengths[:, None]
    slot = np.arange(batch["masked_lm_weights"].shape[1])
    for name, expected in (
        ("input_mask", inside),
        ("segment_ids", inside & (position >= (lengths - second)[:, None])),
        ("masked_lm_weights", slot < counts[:, None]),
    ):
        bad = (batch[name] != expected).any(axis=1)
        if bad.any():
            raise InputError(
                f"{shard}, record {first + int(bad.argmax())}: its {name} are not one run of 1 and "
                "otherwise 0"
            )
    names = [name for name in batch if name.startswith(("masked_lm_", "span_"))]
    names.remove("masked_lm_weights")
    return ShardExamples(
        shard=shard,
        first=first,
        input_ids=batch["input_ids"],
        lengths=lengths,
        segment_lengths=np.stack([lengths - second, second], axis=1)[:, : 1 + has_pairs],
        next_sentence_labels=batch["next_sentence_labels"][:, 0] if has_pairs else None,
        predictions={name: batch[name] for name in names},
        prediction_counts=counts,
    )
