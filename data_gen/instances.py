"""Makes rows of segments: special tokens in, masks on, into the columns that a spec encodes.

Legend of shapes: T tokens, R rows, S length of a row, P predictions.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.masking import row_keys
from keras_bert.records.padding import pad


class UnmaskedRows(NamedTuple):
    """`input_ids` int32 (R, S), padded with 0; `lengths` (R,); `segment_lengths` (R, 1 or 2)."""

    input_ids: np.ndarray
    lengths: np.ndarray
    segment_lengths: np.ndarray


def assemble(tokens, segments, *, cls_id, sep_id, max_length):
    """Rows [CLS] first segment [SEP] second segment [SEP].

    `tokens` (T,); `segments` is a list of one or two arrays (R, 2) of ranges of them, which with
    the special tokens fit into `max_length`.
    """
    count = len(segments[0])
    input_ids = np.zeros((count, max_length), np.int32)
    input_ids[:, 0] = cls_id
    rows, columns = np.arange(count), np.arange(max_length)
    begin = np.ones(count, np.int64)
    segment_lengths = []
    for number, ranges in enumerate(segments):
        sizes = ranges[:, 1] - ranges[:, 0]
        end = begin + sizes
        inside = (columns >= begin[:, None]) & (columns < end[:, None])
        input_ids[inside] = tokens[_concatenated(ranges[:, 0], sizes)]
        input_ids[rows, end] = sep_id
        segment_lengths.append(sizes + (2 if number == 0 else 1))
        begin = end + 1
    return UnmaskedRows(input_ids, begin, np.stack(segment_lengths, axis=1))


def columns(rows, *, random, masker, seed, copies):
    """The columns of compact rows, for `FeatureSpec.encode`.

    `random` (R,) are next-sentence labels, or None; `masker` a `keras_bert.masking.Masker`, or None
    for rows without masks; `copies` (R,) tells for each row which copy of the text it belongs to.
    """
    result = {"segment_lengths": rows.segment_lengths}
    if random is not None:
        result["next_sentence_labels"] = random[:, None]
    input_ids = rows.input_ids
    if masker is not None:
        keys = row_keys(input_ids, rows.lengths, seed=seed, epoch=copies)
        masked = masker.mask(input_ids, rows.lengths, keys)
        input_ids = masked.input_ids
        result["masked_lm_positions"] = masked.positions
        result["masked_lm_ids"] = masked.ids
        if masked.span_left is not None:
            result["span_left"] = masked.span_left
            result["span_right"] = masked.span_right
            result["span_offset"] = masked.span_offset
    inside = np.arange(input_ids.shape[1]) < rows.lengths[:, None]
    result["input_ids"] = (input_ids[inside], rows.lengths)
    return result


def padded_columns(compact, *, max_length, max_predictions):
    """The columns of padded rows, made of those of compact ones by the reader's own `pad`."""
    batch = {
        # What is made here needs no validation, which takes a third of the time.
        name: tf.RaggedTensor.from_row_lengths(*map(_int32, column), validate=False)
        if isinstance(column, tuple)
        else _int32(column)
        for name, column in compact.items()
    }
    return {name: value.numpy() for name, value in pad(batch, max_length, max_predictions).items()}


def _int32(array):
    return tf.constant(array, tf.int32)


def _concatenated(starts, sizes):
    """The numbers start, start + 1, … of all ranges, one range after another."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(sizes.sum())
