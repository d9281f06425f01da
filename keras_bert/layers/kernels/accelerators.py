"""Products, lookups and gathers for a GPU or TPU: float32 sums, and gradients without a scatter.

XLA compiles a scatter of many updates into few rows to a loop in which they wait for each other:
of bfloat16 always, and in some versions of float32 too (openxla/xla #26371, #46225). The gradients
here are matrix products, or sums over sorted ids. They are the same whatever the device's order of
execution. Called inside a program of XLA only (see `program.is_for_accelerator`).

Shapes: R rows, K rows of a table, D their size, B batch, S sequence, P positions.
"""

import keras
from keras import ops

from keras_bert.layers.kernels.private import custom_gradient

# Up to so many rows, all of a table's are summed by a product with the ids as one-hot vectors.
_FEW_ROWS = 512


def on_jax():
    return keras.backend.backend() == "jax"


def product(x, y, *, adj_x=False, adj_y=False):
    """x y in float32, of matrices or of batches of them in any type, one or both transposed.

    `ops.matmul` would round the result to the type of the operands.
    """
    if not on_jax():
        import tensorflow as tf

        return tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=tf.float32, adj_x=adj_x, adj_y=adj_y)
    import jax

    last, batch = x.ndim - 1, tuple(range(x.ndim - 2))
    summed = (last - 1 if adj_x else last,), (last if adj_y else last - 1,)
    return jax.lax.dot_general(x, y, (summed, (batch, batch)), preferred_element_type="float32")


def projected(x, table):
    """x tableᵀ in float32, of which both gradients are products of operands in x's type.

    Shapes: x (R, D), float32 table (K, D) -> float32 (R, K).
    """

    @custom_gradient
    def with_gradient(x, table):
        short = ops.cast(table, x.dtype)

        def gradient(upstream):
            upstream = ops.cast(upstream, x.dtype)
            return ops.cast(product(upstream, short), x.dtype), product(upstream, x, adj_x=True)

        return product(x, short, adj_y=True), gradient

    return with_gradient(x, table)


def look_up(table, ids, *, dtype):
    """Rows of a float32 table in a dtype, with a float32 gradient: (K, D), int (…) -> (…, D)."""
    count, size = table.shape

    @custom_gradient
    def rows(table):
        def gradient(upstream):
            flat, index = ops.reshape(upstream, (-1, size)), ops.reshape(ids, (-1,))
            if count <= _FEW_ROWS:
                sums = product(ops.one_hot(index, count, dtype=flat.dtype), flat, adj_x=True)
            else:
                sums = sums_by_id(flat, index, count)
            return ops.cast(sums, table.dtype)

        return ops.cast(ops.take(table, ids, axis=0), dtype), gradient

    return rows(table)


def at_positions(hidden, positions):
    """Vectors at some positions of each sequence: (B, S, D), int (B, P) -> (B, P, D)."""
    length, size = hidden.shape[1:]

    @custom_gradient
    def vectors(hidden):
        def gradient(upstream):
            if positions.shape[1] is not None and positions.shape[1] <= length:
                is_at = ops.one_hot(positions, length, dtype=hidden.dtype)  # (B, P, S)
                return ops.cast(product(is_at, upstream, adj_x=True), hidden.dtype)
            batch = hidden.shape[0]
            first = length * ops.arange(batch, dtype="int32")[:, None]
            rows = ops.reshape(ops.cast(positions, "int32") + first, (-1,))
            sums = sums_by_id(ops.reshape(upstream, (-1, size)), rows, batch * length)
            return ops.cast(ops.reshape(sums, (batch, length, size)), hidden.dtype)

        return ops.take_along_axis(hidden, positions[..., None], axis=1), gradient

    return vectors(hidden)


def sums_by_id(x, ids, count):
    """Float32 sums of the rows of each id: (R, D), int (R,) -> (count, D).

    The rows are sorted by id and added up in a tree. If R is not known while the program is
    traced, as on TensorFlow with batches of several shapes, it is a scatter of float32.
    """
    if x.shape[0] is None:
        return ops.segment_sum(ops.cast(x, "float32"), ids, num_segments=count)
    order, numbers = ops.argsort(ids), ops.arange(count, dtype=ids.dtype)
    ids, x = ops.take(ids, order), ops.cast(ops.take(x, order, axis=0), "float32")
    begins = ops.concatenate([ops.ones((1,), "bool"), ids[1:] != ids[:-1]])
    sums, _ = _running_sums(x, begins[:, None])
    last = ops.maximum(ops.searchsorted(ids, numbers, side="right") - 1, 0)  # (count,)
    occurs = ops.take(ids, last) == numbers
    return ops.where(occurs[:, None], ops.take(sums, last, axis=0), 0.0)


def _running_sums(x, begins):
    """Each row's sum since the last beginning, and whether there was one: (R, D), bool (R, 1).

    A row with an odd number is added to the one before it, the sums of such pairs are computed in
    the same way, and the rows between follow from theirs.
    """
    if (count := x.shape[0]) == 1:
        return x, begins

    def added(left, right):
        x = ops.where(right[1], right[0], left[0] + right[0])
        return x, ops.logical_or(left[1], right[1])

    def interleaved(even, odd):
        odd = ops.pad(odd, [(0, even.shape[0] - odd.shape[0]), (0, 0)])
        return ops.reshape(ops.stack([even, odd], axis=1), (-1, even.shape[1]))[:count]

    even, odd = (x[0::2], begins[0::2]), (x[1::2], begins[1::2])
    odd = _running_sums(*added([a[: count // 2] for a in even], odd))
    rest = added([a[: (count - 1) // 2] for a in odd], [a[1:] for a in even])
    even = [ops.concatenate([a[:1], more]) for a, more in zip(even, rest, strict=True)]
    return tuple(interleaved(*pair) for pair in zip(even, odd, strict=True))
