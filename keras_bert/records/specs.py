"""The features of a serialized example, for the job that writes it and the pipeline that reads it.

A *compact* example has no padding. A *padded* one has the fixed-length features of
google-research/bert's `create_pretraining_data.py`, under its names, so that its input function and
the TF Model Garden's read them. `keras_bert.records.padding` makes the second from the first.
Legend of shapes: B examples, S length of an example, P predictions.

Batches are serialized straight from numpy arrays, since a protocol buffer per example takes longer
than everything else. The wire format is https://protobuf.dev/programming-guides/encoding; the tests
compare it with `tf.io.parse_example`.
"""

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from keras_bert.records import MASKINGS, OBJECTIVES, PAIRED

SPAN_FEATURES = ("span_left", "span_right", "span_offset")
PREDICTION_FEATURES = ("masked_lm_positions", "masked_lm_ids")


@dataclasses.dataclass(frozen=True)
class FeatureSpec:
    """The features of an example by name: how many values each has, and of which type.

    `kind` is "compact" or "padded". `lengths` maps a name to its number of values, or to None if
    that varies. `floats` names the float32 features; the others are int64 in the file and int32 in
    a batch.
    """

    kind: str
    lengths: Mapping[str, int | None]
    floats: frozenset[str] = frozenset()

    def encode(self, columns):
        """Serializes a batch of examples.

        `columns` maps each feature's name to a numpy array: (B, length) if the length is
        fixed, else a pair (values (N,), number of values per example (B,)). Returns a list of B
        serialized `tf.train.Example`, whose bytes depend on the values alone. Integers must not
        be negative.
        """
        if set(columns) != set(self.lengths):
            raise ValueError(
                f"A {self.kind} example has the features {sorted(self.lengths)}. "
                f"Received: {sorted(columns)}."
            )
        features = []
        for name, length in self.lengths.items():
            items, sizes = self._flat(name, length, columns[name])
            encode = _encode_floats if name in self.floats else _encode_integers
            features.append(encode(name, items, sizes))
        examples = []
        for parts in zip(*features, strict=True):
            body = b"".join(parts)
            examples.append(_prefix(_FIRST, len(body)) + body)
        return examples

    def parse(self, serialized):
        """Parses a vector of serialized examples, eagerly or in a graph.

        Shape: string (B,) -> for each feature (B, length) if its length is fixed, else a
        `tf.RaggedTensor` (B, None); int32, or float32 for `floats`. `tf.io.parse_example` raises
        its error if a feature of fixed length is missing.
        """
        import tensorflow as tf  # the jobs describe examples without it

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
        """A column as its values (N,) and the number of them per example, (B,) or an int."""
        if length is None:
            return column
        if column.ndim != 2 or column.shape[1] != length:
            raise ValueError(
                f"`{name}` must have the shape (examples, {length}). Received: {column.shape}."
            )
        return column.reshape(-1), length


def compact(*, objective, masking):
    """The spec of examples without padding.

    - `input_ids`: the tokens, special tokens included.
    - `segment_lengths`: the number of tokens per segment (two segments for mlm-nsp and mlm-sop,
      else one), special tokens included.
    - `next_sentence_labels`: for mlm-nsp 1 if the second segment is a random one, else 0, as in
      BERT; for mlm-sop 1 if the segments were swapped, else 0. ALBERT's reader takes the order
      from this feature, too.
    - `masked_lm_positions`, `masked_lm_ids` (static masks): the positions chosen for prediction in
      ascending order, and the original tokens there.
    - `span_left`, `span_right`, `span_offset` (span, static masks): for each masked position the
      positions of the tokens just outside its span, and its offset in the span, from 1.
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
    """The spec of fixed-length examples with static masks: google-research/bert's seven features.

    `masked_lm_weights` is 1.0 for a prediction and 0.0 for padding. Objectives of one segment
    have 0 in `next_sentence_labels`, since every reader of this format expects the feature.
    Examples of the objective "span" have three more features of `max_predictions` values.
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
        raise ValueError(f"`objective` must be one of {OBJECTIVES}. Received: {objective!r}.")
    if masking not in MASKINGS:
        raise ValueError(f"`masking` must be one of {MASKINGS}. Received: {masking!r}.")


COMPACT = compact(objective="mlm-nsp", masking="static")

# Fields 1 to 3 of tf.train's feature.proto and example.proto, all length-delimited.
_FIRST, _SECOND, _THIRD = b"\x0a", b"\x12", b"\x1a"


def _encode_integers(name, numbers, sizes):
    """One feature of a batch as a list of B byte strings; `sizes` is (B,) or an int for all."""
    data, value_bytes = _varints(numbers)
    ends = _ends(numbers, sizes)
    if value_bytes is not None:
        ends = np.concatenate([[0], np.cumsum(value_bytes, dtype=np.int64)])[ends]
    return _cut(name, _THIRD, data.tobytes(), ends)


def _encode_floats(name, numbers, sizes):
    data = np.ascontiguousarray(numbers, dtype="<f4")
    return _cut(name, _SECOND, data.tobytes(), _ends(data, sizes) * 4)


def _ends(numbers, sizes):
    """Returns the end of each example in `numbers`, (B,)."""
    if isinstance(sizes, int):
        return np.arange(sizes, len(numbers) + 1, sizes)
    ends = np.cumsum(sizes, dtype=np.int64)
    total = ends[-1] if len(ends) else 0
    if total != len(numbers):
        raise ValueError(f"The lengths must sum to {len(numbers)}. Received: {total}.")
    return ends


def _cut(name, list_field, data, ends):
    """Cuts packed `data` at `ends` and makes each part a named feature."""
    features, start = [], 0
    for end in ends.tolist():
        features.append(_feature_prefix(name, list_field, end - start) + data[start:end])
        start = end
    return features


def _varints(numbers):
    """Every value as a base-128 varint: the bytes, and bytes per value (None: one each)."""
    if len(numbers) and numbers.min() < 0:
        raise ValueError(f"Values must not be negative. Received: {numbers.min()}.")
    highest = int(numbers.max(initial=0))
    if highest < 1 << 7:
        return numbers.astype(np.uint8), None
    groups = -(-highest.bit_length() // 7)
    numbers = numbers.astype(np.uint32 if highest < 1 << 32 else np.uint64, copy=False)
    groups_of = np.ones(len(numbers), np.uint8)
    table = np.empty((len(numbers), groups), np.uint8)
    for group in range(groups):
        table[:, group] = (numbers >> (7 * group)) & 0x7F
        if group:
            more = numbers >= 1 << (7 * group)
            table[:, group - 1] |= more.view(np.uint8) << 7
            groups_of += more
    return table[np.arange(groups, dtype=np.uint8) < groups_of[:, None]], groups_of


@functools.cache
def _prefix(field, size):
    """The tag of a field and the size of its content, `size` bytes."""
    varint, _ = _varints(np.array([size]))
    return field + varint.tobytes()


@functools.cache
def _feature_prefix(name, list_field, size):
    """Returns the bytes before `size` packed bytes: map entry, key, feature, list, values.

    Cached: it depends on name and size alone, and examples have few different sizes.
    """
    key = _prefix(_FIRST, len(name)) + name.encode()
    count_field = _prefix(_FIRST, size) if size else b""
    feature = _prefix(list_field, len(count_field) + size) + count_field
    value = _prefix(_SECOND, len(feature) + size) + feature
    return _prefix(_FIRST, len(key) + len(value) + size) + key + value
