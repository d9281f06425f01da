"""The features of a row, for the job that writes it and the pipeline that reads it.

Two kinds of row hold the same instance. A *compact* row has no padding; a *padded* one has the
fixed-length features of google-research/bert's `create_pretraining_data.py`, under its names, so
that its input function and the TF Model Garden's read them. `keras_bert.records.padding` is the one
way from the first to the second. Legend of shapes: B rows, S length of a row, P predictions.
"""

import dataclasses
from collections.abc import Mapping

from keras_bert.base.objectives import MASKINGS, OBJECTIVES, PAIRED
from keras_bert.records.encoding import encode_floats, encode_integers, frame

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
