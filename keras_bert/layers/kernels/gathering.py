"""Rows of tables and batches gathered, with cheap gradients; padding left out of dense layers.

A dense layer treats each position separately, so that work on padding is wasted. If shapes may
vary (TensorFlow outside XLA, on a CPU) the tokens of a batch are gathered into rows without
padding, as in "Effective Transformer" (ByteDance 2020); attention alone uses the whole batch. A
batch that is half padding takes half to two thirds of the time of a full one.
"""

import keras
from keras import ops

from keras_bert.layers.kernels import accelerators
from keras_bert.layers.kernels.private import custom_gradient, stored
from keras_bert.layers.kernels.program import is_for_accelerator, on_cpu, shapes_may_vary


def look_up(table, ids):
    """Rows of a table: (N, D), int (…) -> (…, D).

    TensorFlow's gradient of a lookup is a list of rows, in which an id that occurs twice is twice.
    Keras's optimizers, and a norm of all gradients, square each of the two while Adam has the
    square of their sum. Here it is a table, (N, D), as on other backends. For a GPU or TPU it is
    summed in float32 without a scatter.
    """
    if is_for_accelerator() and table.dtype != "float64":
        dtype = keras.backend.standardize_dtype(ops.convert_to_tensor(table).dtype)
        return accelerators.look_up(stored(table), ids, dtype=dtype)
    if keras.backend.backend() != "tensorflow":
        return ops.take(table, ids, axis=0)
    import tensorflow as tf

    @custom_gradient
    def rows(table):
        def gradient(upstream):
            flat = ops.reshape(upstream, (-1, table.shape[1]))
            rows = ops.shape(table)[0]
            return ops.segment_sum(flat, ops.reshape(ids, (-1,)), num_segments=rows)

        return ops.take(table, ids, axis=0), gradient

    return rows(tf.convert_to_tensor(table))


def at_distinct(function, ids):
    """A function of ids (N,) -> (N, D) at ids (…) -> (…, D).

    If shapes may vary, each id of a batch is computed once, however often it occurs.
    """
    flat = ops.reshape(ids, (-1,))

    def compute_each():
        return function(flat)

    def compute_distinct():
        import tensorflow as tf

        distinct, index = tf.unique(flat)
        return look_up(function(distinct), index)

    rows = on_cpu(compute_distinct, compute_each) if shapes_may_vary() else compute_each()  # (N, D)
    return ops.reshape(rows, (*ops.shape(ids), rows.shape[-1]))


def sparse_rows(variable, ids):
    """Rows of a table that is a variable: (N, D), int (…) -> (…, D), for large tables.

    On TensorFlow the gradient is `tf.IndexedSlices`, the rows of the ids alone, for an optimizer
    that adds up an id's rows (see `keras_bert.optimizers.update_rules`); `look_up` is
    for all others.
    """
    if keras.backend.backend() != "tensorflow":
        return look_up(variable, ids)
    import tensorflow as tf

    # From the variable itself: to read it first would copy the table.
    return tf.gather(variable.value, ids)


def at_positions(hidden, positions):
    """The vectors at some positions of each sequence: (B, S, D), int (B, P) -> (B * P, D).

    One plain lookup in the flattened batch is faster than a gather along the second axis.
    """
    if is_for_accelerator() and None not in hidden.shape:
        return ops.reshape(accelerators.at_positions(hidden, positions), (-1, hidden.shape[-1]))
    batch, length, size = ops.shape(hidden)
    rows = ops.cast(positions, "int32") + length * ops.arange(batch, dtype="int32")[:, None]
    rows = ops.reshape(rows, (-1,))
    return ops.take(ops.reshape(hidden, (-1, size)), rows, axis=0)


# Gathering costs about as much as working on this fraction of padding.
_WORTHWHILE = 0.1


def unpadding_of(is_token, *, worthwhile):
    """The `Unpadding` of a batch, is_token bool (B, S), or `NoUnpadding`.

    `worthwhile` is whether the batch may have enough padding for it to pay off.
    """
    return Unpadding(is_token) if worthwhile and shapes_may_vary() else NoUnpadding(is_token)


class NoUnpadding:
    """Every position of a batch of rows of S tokens: R = B * S."""

    def __init__(self, is_token):
        self.length = ops.shape(is_token)[1]

    def unpad(self, x):
        """(B, S, D) -> (R, D)."""
        return ops.reshape(x, (-1, x.shape[-1]))

    def pad(self, x):
        """(R, D) -> (B, S, D)."""
        return ops.reshape(x, (-1, self.length, x.shape[-1]))


class Unpadding:
    """The R positions that hold tokens (is_token, bool (B, S)); all if little is padding."""

    def __init__(self, is_token):
        self.shape = ops.shape(is_token)
        flat = ops.reshape(is_token, (-1,))
        self.skipping, self.positions, self.rows = on_cpu(
            lambda: self._indices(flat),
            otherwise=lambda: (
                ops.zeros((), "bool"),
                ops.zeros((0,), "int32"),
                ops.zeros((0,), "int32"),
            ),
        )

    def _indices(self, flat):
        """Whether padding is left out, bool (); then two index arrays, int32 (R,) and (B * S,).

        The position in the flattened batch of each row, and the row of each position; R at padding,
        where a row of zeros is put.
        """
        tokens = ops.sum(ops.cast(flat, "int32"))
        total = self.shape[0] * self.shape[1]
        padding = 1 - ops.cast(tokens, "float32") / ops.cast(total, "float32")
        skipping = padding > _WORTHWHILE
        taken = ops.logical_or(flat, ops.logical_not(skipping))
        positions = ops.cast(ops.where(taken)[0], "int32")
        rows = ops.cumsum(ops.cast(taken, "int32")) - 1
        return skipping, positions, ops.where(taken, rows, ops.shape(positions)[0])

    def unpad(self, x):
        """(B, S, D) -> (R, D)."""
        flat = ops.reshape(x, (-1, x.shape[-1]))
        return self._exchanged(flat, self._gather, self._spread)

    def pad(self, x):
        """(R, D) -> (B, S, D), 0 at padding."""
        flat = self._exchanged(x, self._spread, self._gather)
        return ops.reshape(flat, (*self.shape, x.shape[-1]))

    def _exchanged(self, x, forward, backward):
        """Each is the other's gradient; a derived one would add up row by row."""

        @custom_gradient
        def exchanged(x):
            return self._where_skipping(forward, x), lambda g: self._where_skipping(backward, g)

        return exchanged(x)

    def _where_skipping(self, exchange, x):
        return ops.cond(self.skipping, lambda: exchange(x), lambda: x)

    def _gather(self, flat):
        return _rows_at(flat, self.positions)

    def _spread(self, rows):
        zeros = ops.zeros((1, rows.shape[-1]), rows.dtype)
        return _rows_at(ops.concatenate([rows, zeros], axis=0), self.rows)


def _rows_at(x, indices):
    """`ops.take`, which would look for negative indices first."""
    import tensorflow as tf

    return tf.gather(x, indices)
