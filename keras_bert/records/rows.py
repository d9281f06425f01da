"""Reads the rows of a data folder back as numpy arrays, for people and for checks."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.records.damage import damage_of

_AT_ONCE = 1024


class ShardRows(NamedTuple):
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


def read_rows(folder, shard):
    """Yields the `ShardRows` of a shard of a `DataFolder`, some at a time.

    Raises `InputError` with the number of the record where the file is damaged or a record is not
    of the folder's spec.
    """
    read, records = 0, tf.data.TFRecordDataset(shard, folder.compression)
    batches = iter(records.batch(_AT_ONCE))
    while True:
        try:
            serialized = next(batches, None)
            if serialized is None:
                return
            parsed = folder.spec.parse(serialized)
        except tf.errors.OpError as error:
            raise damage_of(folder, shard, first=read) or error from None
        unpack = _of_padded if folder.spec.kind == "padded" else _of_compact
        yield unpack(shard, read, parsed, folder)
        read += len(serialized)


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
    return ShardRows(
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
    place = np.arange(batch["input_mask"].shape[1])
    inside = place < lengths[:, None]
    slot = np.arange(batch["masked_lm_weights"].shape[1])
    for name, expected in (
        ("input_mask", inside),
        ("segment_ids", inside & (place >= (lengths - second)[:, None])),
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
    return ShardRows(
        shard=shard,
        first=first,
        input_ids=batch["input_ids"],
        lengths=lengths,
        segment_lengths=np.stack([lengths - second, second], axis=1)[:, : 1 + has_pairs],
        next_sentence_labels=batch["next_sentence_labels"][:, 0] if has_pairs else None,
        predictions={name: batch[name] for name in names},
        prediction_counts=counts,
    )
