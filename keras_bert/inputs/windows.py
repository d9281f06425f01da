"""Sequences longer than a row, as rows that overlap: the one implementation, for all tasks.

Core TensorFlow operations only: what is made of labelled files and what an exported model makes of
strings are the same rows.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf


class Windows(NamedTuple):
    """R windows over sequences of any length, (R,) each, integers.

    Every position of a sequence is in the core of one window: the one in which it has most context.
    """

    sequence: tf.Tensor  # the number of the sequence; rising
    starts: tf.Tensor  # the first position in the window
    sizes: tf.Tensor
    core_starts: tf.Tensor  # the first position of the sequence that is answered here
    core_ends: tf.Tensor

    def numpy(self):
        """The same as numpy arrays; outside of graphs."""
        return Windows(*(np.asarray(part) for part in self))

    def rows(self, sequences):
        """The values of each window: ragged (B, None) -> ragged (R, None)."""
        first = tf.gather(tf.cast(sequences.row_starts(), self.starts.dtype), self.sequence)
        first += self.starts
        return tf.gather(sequences.values, tf.ragged.range(first, first + self.sizes))

    def core_of(self, width, *, offset):
        """Which columns of the windows' rows are core: bool (R, `width`).

        Args:
            offset: the column of a window's first position.
        """
        position = tf.cast(tf.range(width), self.starts.dtype) - offset + self.starts[:, None]
        return (position >= self.core_starts[:, None]) & (position < self.core_ends[:, None])


def windows(lengths, room, *, stride, last="full", cores="middle"):
    """`Windows` over sequences of these lengths, in the order of sequences and front to back.

    A sequence that fits has one window, also an empty one. Works eagerly and in a graph.

    Shapes: lengths (B,), int32 or int64.

    Args:
        room: how many positions a window has at most; one number, or (B,) of the same type.
        stride: how far after a window the next one begins; at least 1, and at most the room, so
            that no position is left out.
        last: what becomes of the last window where the length is not a multiple: "full" begins it
            earlier, so that it is as full as the others; "short" leaves it shorter; "even" begins
            all windows earlier, so that all share about as much with the next.
        cores: where the cores of two neighbours meet. "middle" is the middle of what they share.
            "bert" is as google-research/bert chooses for SQuAD: the context of a token is the
            lesser of what is left and right of it, and a hundredth of the window's size, and of two
            windows with the same the first one has it.
    """
    room = room + tf.zeros_like(lengths)  # (B,)
    stride = tf.minimum(tf.cast(stride, lengths.dtype), room)
    beyond = tf.maximum(lengths - room, 0)
    counts = -(-beyond // stride) + 1  # (B,)
    sequence = tf.repeat(tf.range(tf.size(lengths)), counts)  # (R,)
    number = tf.cast(tf.ragged.range(counts).flat_values, lengths.dtype)
    length, room, stride, beyond, count = (
        tf.gather(each, sequence) for each in (lengths, room, stride, beyond, counts)
    )
    if last == "even":
        wide = [tf.cast(each, tf.int64) for each in (number, beyond, tf.maximum(count - 1, 1))]
        starts = tf.cast(wide[0] * wide[1] // wide[2], lengths.dtype)
    else:
        starts = number * stride
        if last == "full":
            starts = tf.minimum(starts, beyond)
    sizes = tf.minimum(room, length - starts)
    # Where a window and the one before it meet.
    before_end = tf.concat([tf.zeros_like(starts[:1]), starts[:-1]], axis=0) + room
    if cores == "middle":
        edges = (starts + before_end) // 2
    else:
        # The first position p for which (before_end - 1 - p) + room / 100 is less than
        # (p - start) + size / 100, in hundredths; where the last window is so much smaller that
        # even its later half has less context, the end of the one before.
        less = room - sizes
        edges = tf.minimum((100 * (before_end + starts - 1) + less) // 200 + 1, before_end)
        edges = tf.where(100 * (starts + sizes - before_end) <= less, before_end, edges)
    edges = tf.where(number == 0, tf.zeros_like(edges), edges)
    next_edges = tf.concat([edges[1:], tf.zeros_like(edges[:1])], axis=0)
    core_ends = tf.where(number == count - 1, length, next_edges)
    return Windows(sequence, starts, sizes, edges, core_ends)
