"""Token ids -> model inputs: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, cut and padded.

The one body of it: training, evaluation and prediction call it in `dataset.map`, and an exported
model carries it. Core TensorFlow operations only, so that any server can run it.
"""

import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.records.padding import pad_rows


def frame(segments, *, vocabulary, max_length, multiple_of=1):
    """Makes the model's inputs of one or two tokenized segments.

    Shapes: each segment is a ragged int32 (B, None) without special tokens -> a dictionary of
    `input_ids`, `input_mask`, `segment_ids`, each int32 (B, S). S is the longest row of the batch,
    rounded up to a multiple of `multiple_of`, and at most `max_length`, special tokens counted in.
    A single text that is too long loses its end; of two, the longer one loses its end until both
    fit (as in google-research/bert's run_classifier.py).

    Raises ValueError where `max_length` leaves no token for every segment.
    """
    least = 1 + 2 * len(segments)
    if len(segments) not in (1, 2) or max_length < least:
        raise ValueError(
            "`segments` must be one or two, and `max_length` must leave a token for each. "
            f"Received: {len(segments)} segments, max_length={max_length}"
        )
    segments = _trim(segments, max_length - 1 - len(segments))
    batch = segments[0].nrows(out_type=tf.int32)
    parts = [_column(batch, vocabulary.cls_id)]
    for segment in segments:
        parts += [tf.cast(segment, tf.int32), _column(batch, vocabulary.sep_id)]
    rows = tf.concat(parts, axis=1)  # ragged (B, None)
    return pad_rows(
        rows,
        2 + segments[0].row_lengths(),  # [CLS], the first segment and its [SEP] are segment 0
        max_length=max_length,
        multiple_of=multiple_of,
        pad_id=vocabulary.pad_id,
    )


def check_max_length(max_length, config):
    """Raises InputError where a model has no positions for rows of so many tokens.

    It also does where they leave no room for text.
    """
    if max_length > config.max_length:
        raise InputError(
            f"`max_length` is {max_length}, over the {config.max_length} positions that the model "
            f"has; give {config.max_length} or less."
        )
    if max_length < 3:
        raise InputError(
            f"`max_length` is {max_length}, which leaves no room for text between [CLS] and [SEP]; "
            "give 3 or more."
        )


def _trim(segments, budget):
    """Cuts the ends of ragged segments so that each row has at most `budget` tokens in all."""
    if len(segments) == 1:
        return [segments[0][:, :budget]]
    first, second = (segment.row_lengths() for segment in segments)
    # Taking a token off the longer one, again and again, ends here (the first keeps the odd one).
    keep_first = tf.minimum(first, tf.maximum(budget - second, (budget + 1) // 2))
    keep_second = tf.minimum(second, budget - keep_first)
    return [_heads(segments[0], keep_first), _heads(segments[1], keep_second)]


def _heads(rows, lengths):
    """The first `lengths[i]` values of each ragged row i."""
    position = tf.ragged.range(rows.row_lengths())
    inside = position.flat_values < tf.repeat(lengths, rows.row_lengths())
    return tf.ragged.boolean_mask(rows, rows.with_flat_values(inside))


def _column(batch, value):
    return tf.RaggedTensor.from_tensor(tf.fill([batch, 1], tf.constant(value, tf.int32)))
