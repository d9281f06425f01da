"""From rows to the columns that a spec encodes: masks on, padding where it is asked for.

Legend of shapes: R rows, S length of the longest row.
"""

import numpy as np
import tensorflow as tf

from keras_bert.records.masking import example_keys
from keras_bert.records.padding import pad


def columns(rows, segment_lengths, *, labels, masker, seed, copies):
    """The columns of compact rows, for `FeatureSpec.encode`.

    `rows` and `segment_lengths` are from `frame_rows`. `labels` (R,) tell what the second segment
    is to the first, or are None; `masker` is a `keras_bert.records.masking.Masker`, or None for
    rows without masks; `copies` (R,) tells for each row which copy of the text it belongs to.
    """
    lengths = rows.row_lengths().numpy()
    result = {"segment_lengths": segment_lengths.numpy()}
    if labels is not None:
        result["next_sentence_labels"] = labels[:, None]
    if masker is None:
        result["input_ids"] = (rows.values.numpy(), lengths)
        return result
    input_ids = rows.to_tensor().numpy()  # (R, S), padded with 0
    masked = masker.mask(
        input_ids, lengths, example_keys(input_ids, lengths, seed=seed, epoch=copies)
    )
    inside = np.arange(input_ids.shape[1]) < lengths[:, None]
    result["input_ids"] = (masked.input_ids[inside], lengths)
    result["masked_lm_positions"] = masked.positions
    result["masked_lm_ids"] = masked.ids
    if masked.span_left is not None:
        result["span_left"] = masked.span_left
        result["span_right"] = masked.span_right
        result["span_offset"] = masked.span_offset
    return result


def padded_columns(compact, *, max_length, max_predictions, template):
    """The columns of padded rows, made of those of compact ones by the reader's own `pad`."""
    batch = {
        # What is made here needs no validation, which takes a third of the time.
        name: tf.RaggedTensor.from_row_lengths(*map(_int32, column), validate=False)
        if isinstance(column, tuple)
        else _int32(column)
        for name, column in compact.items()
    }
    padded = pad(batch, max_length, max_predictions, template=template)
    return {name: value.numpy() for name, value in padded.items()}


def _int32(array):
    return tf.constant(array, tf.int32)
