"""Token ids -> model inputs: overlapping windows, truncation, the tokenizer's template and padding.

The one implementation for all tasks. Training, evaluation and prediction use it in `dataset.map`,
and exports contain it: core TensorFlow operations only.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.records.padding import frame_sequences, pad_sequences, with_special_tokens


def frame(segments, *, tokenizer, names, max_length, multiple_of=1):
    """The model inputs of one or two segments that a `Tokenizer` tokenized.

    Shapes: each segment is a ragged int32 (B, None) without special tokens -> a dictionary of
    `names`, those of `input_ids`, `input_mask`, `segment_ids` that the encoder takes (see
    `Encoder.input_names`), each int32 (B, S). S is the longest sequence of the batch, rounded up to
    a multiple of `multiple_of`, and at most `max_length`, including special tokens. A single text
    is cut at its end; of two, the longer one is cut until both fit (as in google-research/bert's
    run_classifier.py).

    Raises ValueError if `max_length` leaves no token for every segment.
    """
    count, template = len(segments), tokenizer.template
    if count not in (1, 2) or template.room(max_length, texts=count) < count:
        raise ValueError(
            "`segments` must be one or two, and `max_length` must leave a token for each. "
            f"Received: {count} segments, max_length={max_length}."
        )
    tokens = tf.concat([segment.values for segment in segments], axis=0)
    sequences, lengths = frame_sequences(
        with_special_tokens(tokens, tokenizer.vocabulary, template),
        _truncated(segments, template.room(max_length, texts=count)),
        template,
    )
    batch = pad_sequences(
        sequences,
        lengths,
        template=template,
        max_length=max_length,
        multiple_of=multiple_of,
        pad_id=tokenizer.vocabulary.pad_id,
    )
    return {name: batch[name] for name in names}


def _truncated(segments, room):
    """(starts, kept lengths) of each ragged segment in the values of all, int64 (B,) each."""
    first = segments[0].row_lengths()
    if len(segments) == 1:
        return [(segments[0].row_starts(), tf.minimum(first, room))]
    second = segments[1].row_lengths()
    # The result of removing one token after another from the longer one (ties keep the first's).
    keep_first = tf.minimum(first, tf.maximum(room - second, (room + 1) // 2))
    keep_second = tf.minimum(second, room - keep_first)
    second_starts = segments[1].row_starts() + tf.size(segments[0].values, tf.int64)
    return [(segments[0].row_starts(), keep_first), (second_starts, keep_second)]


class Windows(NamedTuple):
    """R windows over sequences of any length, integers (R,) each.

    Every position of a sequence is in the core of one window, the one where it has most context.
    """

    sequence: tf.Tensor  # the number of the sequence; in order
    starts: tf.Tensor  # the first position in the window
    sizes: tf.Tensor
    core_starts: tf.Tensor  # in the sequence, like `core_ends`
    core_ends: tf.Tensor

    def numpy(self):
        """The same as numpy arrays (not in graphs)."""
        return Windows(*(np.asarray(part) for part in self))

    def rows(self, sequences):
        """The values of each window: ragged (B, None) -> ragged (R, None)."""
        first = tf.gather(tf.cast(sequences.row_starts(), self.starts.dtype), self.sequence)
        first += self.starts
        return tf.gather(sequences.values, tf.ragged.range(first, first + self.sizes))

    def core_of(self, width, *, offset):
        """Which of a window's columns are core: bool (R, `width`); `offset` columns precede it."""
        position = tf.cast(tf.range(width), self.starts.dtype) - offset + self.starts[:, None]
        return (position >= self.core_starts[:, None]) & (position < self.core_ends[:, None])


def windows(lengths, room, *, stride, last="full", cores="middle"):
    """`Windows` over sequences of these lengths, in order.

    A sequence that fits has one window, as has an empty one.

    Shapes: lengths (B,), int32 or int64.

    Args:
        room: the maximum size of a window; one number, or (B,) of the same type.
        stride: from a window's start to the next one's; at least 1. It is limited to the room, so
            that no position is left out.
        last: where the last windows are if the length is not a multiple: "full" moves the last one
            back to be as long as the others; "short" leaves it shorter; "even" moves all back, so
            that their overlaps are about equal.
        cores: where the cores of two neighbours meet: "middle" of their overlap, or "bert" as in
            google-research/bert for SQuAD: the context of a token is the smaller of its left and
            right context, plus a hundredth of the window's size, and of equal windows the first
            counts; or "first": a position is in the core of the first window that has it, where it
            has most context on its left.
    """
    room = room + tf.zeros_like(lengths)  # (B,)
    stride = tf.minimum(tf.cast(stride, lengths.dtype), room)
    beyond = tf.maximum(lengths - room, 0)
    counts = -(-beyond // stride) + 1  # (B,)
    sequence = tf.repeat(tf.range(tf.size(lengths)), counts)  # (R,)
    number = tf.cast(tf.ragged.range(counts).flat_values, lengths.dtype)
    length, room, stride, beyond, count = (
        tf.gather(column, sequence) for column in (lengths, room, stride, beyond, counts)
    )
    if last == "even":
        factors = (number, beyond, tf.maximum(count - 1, 1))  # their product may exceed int32
        number_64, beyond_64, gaps = (tf.cast(factor, tf.int64) for factor in factors)
        starts = tf.cast(number_64 * beyond_64 // gaps, lengths.dtype)
    else:
        starts = number * stride
        if last == "full":
            starts = tf.minimum(starts, beyond)
    sizes = tf.minimum(room, length - starts)
    # Where a window and the one before it meet.
    before_end = tf.concat([tf.zeros_like(starts[:1]), starts[:-1]], axis=0) + room
    if cores == "middle":
        edges = (starts + before_end) // 2
    elif cores == "first":
        edges = before_end
    else:
        # The first position p for which (before_end - 1 - p) + room / 100 is less than
        # (p - start) + size / 100, in hundredths; or the end of the window before, if the last
        # window is so much smaller that even its second half has less context.
        less = room - sizes
        edges = tf.minimum((100 * (before_end + starts - 1) + less) // 200 + 1, before_end)
        edges = tf.where(100 * (starts + sizes - before_end) <= less, before_end, edges)
    edges = tf.where(number == 0, tf.zeros_like(edges), edges)
    next_edges = tf.concat([edges[1:], tf.zeros_like(edges[:1])], axis=0)
    core_ends = tf.where(number == count - 1, length, next_edges)
    return Windows(sequence, starts, sizes, edges, core_ends)
