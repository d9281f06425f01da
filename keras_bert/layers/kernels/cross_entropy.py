"""A language model's logits, and their cross-entropy with its gradient by blocks.

The plain form, of vectors x (R, E), a table (V, E) and a bias (V,), with labels (R,):

    logits = x tableᵀ + bias                                     (R, V)
    nats = log Σ exp(logits) - logits[label]                     (R,)

On a GPU the float32 logits of a step are written and read several times, with their gradient, and
their products take operands of float32 (R predictions, E embedding size, V vocabulary).
"""

from keras import ops

from keras_bert.layers.kernels import accelerators
from keras_bert.layers.kernels.accelerators import on_jax, product
from keras_bert.layers.kernels.private import custom_gradient
from keras_bert.layers.kernels.program import is_for_accelerator

# Predictions of a block: larger ones are not multiplied faster, and take more memory.
_BLOCK = 1024
_MULTIPLE = 64


def loss_is_by_blocks(dtype, *tensors):
    """Whether the loss of logits of a dtype is best computed without them: on a GPU or TPU.

    The shapes of the `tensors`, the inputs of the step, must be known while it is traced.
    """
    has_shapes = all(None not in tensor.shape for tensor in tensors)
    return is_for_accelerator() and dtype == "float32" and has_shapes


def projected(x, table, *, dtype):
    """x tableᵀ in a dtype, float32 at least: (R, E), (V, E) of that dtype -> (R, V).

    For a GPU or TPU the operands of a product with float32 results have x's own type.
    """
    if loss_is_by_blocks(dtype):
        return accelerators.projected(x, table)
    return ops.matmul(ops.cast(x, dtype), ops.transpose(table))


def cross_entropies(x, table, bias, labels, *, block=_BLOCK):
    """The nats of labels and whether they are most probable: no more than a block has logits.

    Products have operands in x's type and float32 results. The gradient computes the logits again.
    Called inside a program of XLA only.

    Shapes: x (R, E), float32 table (V, E), float32 bias (V,) or None, int labels (R,)
    -> float32 (R,), and float32 (R,) of 1 and 0.
    """
    count, dtype = x.shape[0], x.dtype
    has_bias = bias is not None
    blocks = max(1, -(-count // block))
    rows = -(-count // blocks)
    rows = min(block, -(-rows // _MULTIPLE) * _MULTIPLE) if blocks > 1 else rows

    # Block n has the rows n, n + blocks, …, so that devices that share the rows share each block.
    def blocked(a):
        a = ops.pad(a, [(0, blocks * rows - count), *[(0, 0)] * (len(a.shape) - 1)])
        return ops.swapaxes(ops.reshape(a, (rows, blocks, *a.shape[1:])), 0, 1)

    def joined(a):
        return ops.reshape(ops.swapaxes(a, 0, 1), (blocks * rows, *a.shape[2:]))[:count]

    labels = blocked(ops.cast(labels, "int32"))
    vocabulary = table.shape[0]
    ids = ops.arange(vocabulary, dtype="int32")

    @custom_gradient
    def with_gradient(x, table, *bias):
        x, short = blocked(x), ops.cast(table, dtype)

        def logits_of(x):
            logits = product(x, short, adj_y=True)  # (rows, V)
            return logits + bias[0] if has_bias else logits

        def forward(x_and_labels):
            x, labels = x_and_labels
            logits = logits_of(x)
            highest = ops.max(logits, axis=-1)
            total = highest + ops.log(ops.sum(ops.exp(logits - highest[:, None]), axis=-1))
            at_label = ops.sum(ops.where(ids == labels[:, None], logits, 0.0), axis=-1)
            first = ops.min(ops.where(logits == highest[:, None], ids, vocabulary), axis=-1)
            return total, total - at_label, ops.cast(first == labels, "float32")

        totals, nats, is_correct = ops.map(forward, (x, labels))  # (blocks, rows) each

        def gradient(*upstream):
            upstream = blocked(upstream[0][0] if on_jax() else upstream[0])  # that of the nats

            def backward(number, sums):
                d_x, d_table, *d_bias = sums
                is_label = ops.cast(ids == labels[number][:, None], "float32")
                logits = logits_of(x[number])
                d_logits = ops.exp(logits - totals[number][:, None]) - is_label
                d_logits = d_logits * upstream[number][:, None]
                d_bias = [ops.sum(d_logits, axis=0) + total for total in d_bias]
                d_logits = ops.cast(d_logits, dtype)
                d_table = d_table + product(d_logits, x[number], adj_x=True)
                rows = ops.cast(product(d_logits, short), dtype)
                return ops.slice_update(d_x, (number, 0, 0), rows[None]), d_table, *d_bias

            zeros = (ops.zeros_like(x), ops.zeros_like(table), *map(ops.zeros_like, bias))
            d_x, *d_others = ops.fori_loop(0, blocks, backward, zeros)
            return joined(d_x), *d_others

        return (joined(nats), joined(is_correct)), gradient

    return with_gradient(x, table, *([bias] if has_bias else []))
