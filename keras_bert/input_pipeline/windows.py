"""Sequences longer than a row, as rows that overlap.

Core TensorFlow operations only: what is made of labelled files and what an exported model makes of
strings are the same rows.
"""

from typing import NamedTuple

import tensorflow as tf


class Windows(NamedTuple):
    """R windows over sequences of any length. All are int32 (R,).

    Every place of a sequence is in the core of one window: the one in which it has most context.
    """

    sequence: tf.Tensor  # the number of the sequence; rising
    starts: tf.Tensor  # the first place in the window
    sizes: tf.Tensor
    core_starts: tf.Tensor  # the first place of the sequence that is answered here
    core_ends: tf.Tensor


def windows(lengths, size):
    """`Windows` of at most `size` places over sequences of these lengths, int32 (B,).

    Each begins half a window after the one before it; the last is as full as the others. An empty
    sequence has one empty window. Works eagerly and in a graph.
    """
    stride = max(1, size // 2)
    counts = tf.maximum(0, -(-(lengths - size) // stride)) + 1
    sequence = tf.repeat(tf.range(tf.size(lengths)), counts)
    number = tf.cast(tf.ragged.range(counts).flat_values, tf.int32)
    length = tf.gather(lengths, sequence)
    last_start = tf.maximum(0, length - size)
    starts = tf.minimum(number * stride, last_start)
    # Two windows part in the middle of what they share.
    before = tf.minimum((number - 1) * stride, last_start)
    edges = tf.where(number == 0, 0, (before + size + starts) // 2)
    is_last = number == tf.gather(counts, sequence) - 1
    next_edges = tf.concat([edges[1:], [0]], axis=0)
    return Windows(
        sequence, starts, tf.minimum(size, length), edges, tf.where(is_last, length, next_edges)
    )
