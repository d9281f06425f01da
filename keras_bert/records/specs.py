"""The features of a row, for the job that writes it and the pipeline that reads it.

Two kinds of row hold the same instance. A *compact* row has no padding; a *padded* one has the
fixed-length features of google-research/bert's `create_pretraining_data.py`, under its names, so
that its input function and the TF Model Garden's read them. `keras_bert.records.padding` is the one
way from the first to the second. Legend of shapes: B rows, S length of a row, P predictions.

Batches are serialized straight from numpy arrays: building each row as a protocol buffer costs more
than making it. Here the numbers of a whole batch become bytes at once, and a row is put together
from slices of them. The wire format is that of
https://protobuf.dev/programming-guides/encoding; `tf.io.parse_example` is the judge in the tests.
"""

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from keras_bert.base.objectives import MASKINGS, OBJECTIVES, PAIRED

# Fields 1 to 3 of tf.train's feature.proto and example.proto, of the wire type "bytes follow".
_FIRST, _SECOND, _THIRD = b"\x0a", b"\x12", b"\x1a"


def encode_integers(name, values, sizes):
    """One feature of a batch as a list of B byte strings, one a row.

    `values` (N,) holds the rows one after another, `sizes` is the number of values a row: (B,), or
    one number for all rows. Values must not be negative.
    """
    data, value_bytes = _varints(values)
    if value_bytes is None:
        ends = _row_ends(values, sizes)
    else:
        ends = np.concatenate([[0], np.cumsum(value_bytes, dtype=np.int64)])[
            np.concatenate([[0], _row_ends(values, sizes)])
        ][1:]
    return _entries(name, _THIRD, data.tobytes(), ends)


def encode_floats(name, values, sizes):
    """As `encode_integers`, for float32 values."""
    data = np.ascontiguousarray(values, dtype="<f4")
    return _entries(name, _SECOND, data.tobytes(), _row_ends(data, sizes) * 4)


def frame(features):
    """Joins the features of each row into a serialized `tf.train.Example`.

    Takes a list of what `encode_…` returned, one for each feature; returns a list of B `bytes`.
    """
    rows = []
    for entries in zip(*features, strict=True):
        body = b"".join(entries)
        rows.append(_prefix(_FIRST, len(body)) + body)
    return rows


def _row_ends(values, sizes):
    """Where in `values` each row ends, (B,)."""
    if isinstance(sizes, int):
        return np.arange(sizes, len(values) + 1, sizes)
    ends = np.cumsum(sizes, dtype=np.int64)
    total = ends[-1] if len(ends) else 0
    if total != len(values):
        raise ValueError(f"The row lengths must sum to {len(values)}. Received: {total}")
    return ends


def _entries(name, list_field, data, ends):
    """Cuts packed `data` at `ends`, and puts before each piece what makes it a named feature."""
    prefixes = functools.partial(_entry_prefix, name, list_field)
    rows, start = [], 0
    for end in ends.tolist():
        rows.append(prefixes(end - start) + data[start:end])
        start = end
    return rows


def _varints(values):
    """Every value as a base-128 varint.

    Returns the bytes, and how many of them each value takes (None: one each).
    """
    if len(values) and values.min() < 0:
        raise ValueError(f"Values must not be negative. Received: {values.min()}")
    highest = int(values.max(initial=0))
    if highest < 1 << 7:
        return values.astype(np.uint8), None
    groups = -(-highest.bit_length() // 7)
    values = values.astype(np.uint32 if highest < 1 << 32 else np.uint64, copy=False)
    groups_of = np.ones(len(values), np.uint8)
    table = np.empty((len(values), groups), np.uint8)
    for group in range(groups):
        table[:, group] = (values >> (7 * group)) & 0x7F
        if group:
            more = values >= 1 << (7 * group)
            table[:, group - 1] |= more.view(np.uint8) << 7
            groups_of += more
    return table[np.arange(groups, dtype=np.uint8) < groups_of[:, None]], groups_of


@functools.cache
def _prefix(field, size):
    """The tag of a field and the size of what follows, of `size` bytes."""
    varint, _ = _varints(np.array([size]))
    return field + varint.tobytes()


@functools.cache
def _entry_prefix(name, list_field, size):
    """What stands before `size` bytes of packed values: map entry, key, feature, list, values.

    Depends on the name and the size alone, and rows have few different sizes.
    """
    key = _prefix(_FIRST, len(name)) + name.encode()
    values = _prefix(_FIRST, size) if size else b""
    feature = _prefix(list_field, len(values) + size) + values
    value = _prefix(_SECOND, len(feature) + size) + feature
    return _prefix(_FIRST, len(key) + len(value) + size) + key + value


SPAN_FEATURES = ("span_left", "span_right", "span_offset")

PREDICTION_FEATURES = ("masked_lm_positions", "masked_lm_ids")


@dataclasses.dataclass(frozen=True)
class FeatureSpec:
    """The features of a row by name: how many values each has, and of which kind.

    `kind` is "compact" or "padded". `lengths` maps a name to the number of its values in every
    row, or to None where it differs from row to row; `floats` names the features that hold float32
    (the rest hold int64 in the file and int32 in a batch).
    """

    kind: str
    lengths: Mapping[str, int | None]
    floats: frozenset[str] = frozenset()

    def encode(self, columns):
        """Serializes a batch of rows.

        `columns` maps each feature's name to a numpy array: (B, length) where the length is
        fixed, and a pair (values (N,), row lengths (B,)) where it is not. Returns a list of B
        serialized `tf.train.Example`, whose bytes depend on the values alone. Integers must not
        be negative.
        """
        if set(columns) != set(self.lengths):
            raise ValueError(
                f"A {self.kind} row has the features {sorted(self.lengths)}. "
                f"Received: {sorted(columns)}"
            )
        encoded = []
        for name, length in self.lengths.items():
            values, sizes = self._flat(name, length, columns[name])
            encode = encode_floats if name in self.floats else encode_integers
            encoded.append(encode(name, values, sizes))
        return frame(encoded)

    def parse(self, serialized):
        """Parses a vector of serialized rows, eagerly or in a graph.

        Shape: string (B,) -> for each feature (B, length) where its length is fixed and a
        `tf.RaggedTensor` (B, None) where it is not; int32, or float32 for `floats`. A row that
        lacks a feature of fixed length is an error of `tf.io.parse_example`.
        """
        import tensorflow as tf  # the jobs describe rows without it

        features = {}
        for name, length in self.lengths.items():
            dtype = tf.float32 if name in self.floats else tf.int64
            if length is None:
                features[name] = tf.io.RaggedFeature(dtype)
            else:
                features[name] = tf.io.FixedLenFeature([length], dtype)
        parsed = tf.io.parse_example(serialized, features)
        return {
            name: value if name in self.floats else tf.cast(value, tf.int32)
            for name, value in parsed.items()
        }

    def _flat(self, name, length, column):
        """A column as its values (N,) and the number of them in each row (B,)."""
        if length is None:
            return column
        if column.ndim != 2 or column.shape[1] != length:
            raise ValueError(
                f"`{name}` must have the shape (rows, {length}). Received: {column.shape}"
            )
        return column.reshape(-1), length


def compact(*, objective, masking):
    """The spec of rows without padding.

    - `input_ids`: the tokens, [CLS] and [SEP] among them.
    - `segment_lengths`: one number a segment (two for mlm-nsp and mlm-sop, else one): its tokens,
      with the special ones counted in, so that they sum to the length of the row.
    - `next_sentence_labels` (mlm-nsp): 0 where the second segment follows the first, 1 where it is
      a random one, as in BERT. For mlm-sop: 0 where the two stand as in the text, 1 where they were
      swapped; ALBERT's reader takes the order from this feature, too.
    - `masked_lm_positions`, `masked_lm_ids` (static masks): where `input_ids` was changed, in
      rising order, and what stood there.
    - `span_left`, `span_right`, `span_offset` (span, static masks): for each masked position the
      positions of the tokens just outside its span, and its place in the span, from 1.
    """
    _check(objective, masking)
    lengths = {"input_ids": None, "segment_lengths": 2 if objective in PAIRED else 1}
    if objective in PAIRED:
        lengths["next_sentence_labels"] = 1
    if masking == "static":
        lengths |= dict.fromkeys(PREDICTION_FEATURES)
        if objective == "span":
            lengths |= dict.fromkeys(SPAN_FEATURES)
    return FeatureSpec(kind="compact", lengths=lengths)


def padded(*, objective, max_length, max_predictions):
    """The spec of fixed-length rows with static masks: google-research/bert's seven features.

    `masked_lm_weights` is 1.0 for a prediction and 0.0 for padding. Objectives of one segment
    hold 0 in `next_sentence_labels`, as every reader of these rows wants the feature.
    Rows of the objective "span" have three more features of `max_predictions` values.
    """
    _check(objective, "static")
    lengths = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), max_length)
    lengths |= dict.fromkeys((*PREDICTION_FEATURES, "masked_lm_weights"), max_predictions)
    lengths["next_sentence_labels"] = 1
    if objective == "span":
        lengths |= dict.fromkeys(SPAN_FEATURES, max_predictions)
    return FeatureSpec(kind="padded", lengths=lengths, floats=frozenset({"masked_lm_weights"}))


def _check(objective, masking):
    if objective not in OBJECTIVES:
        raise ValueError(f"`objective` must be one of {OBJECTIVES}. Received: {objective!r}")
    if masking not in MASKINGS:
        raise ValueError(f"`masking` must be one of {MASKINGS}. Received: {masking!r}")


COMPACT = compact(objective="mlm-nsp", masking="static")
