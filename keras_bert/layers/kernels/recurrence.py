"""The recurrence of an LSTM, with its gradient written out.

A derived gradient adds up the gradient of every kernel step by step, in S products of B rows. Here
the loop over the steps, forward and backward, has only the products that depend on the step before;
the kernels' gradients are one product each of all S B rows. On two cores a training step of 256
units with projection takes a fifth of the derived gradient's time (benchmarks/lstm.py).
"""

import keras
from keras import ops

from keras_bert.layers.kernels.private import custom_gradient


def lstm(gates, recurrent_kernel, projection, state, *, cell_clip, projection_clip, training):
    """Steps through time from a state.

    With the parts i, f, g, o of `gates[t] + r[t-1] recurrent_kernel`, in this order,

        c[t] = σ(i) tanh(g) + σ(f) c[t-1]    clipped to [-cell_clip, cell_clip]
        h[t] = σ(o) tanh(c[t])
        r[t] = h[t] projection               clipped to [-projection_clip, projection_clip]

    or r[t] = h[t] without a projection. Clipped values have no gradient.

    Shapes: S steps, B batch, U units, R = U without a projection.

    Args:
        gates: (S, B, 4 U), what the inputs and the bias contribute.
        recurrent_kernel: (R, 4 U).
        projection: (U, R), or None.
        state: r (B, R) and c (B, U) before the first step.
        cell_clip, projection_clip: positive numbers, or None.
        training: whether to keep what the gradient needs.

    Returns:
        (r of every step (S, B, R), the state after the last step).
    """
    arguments = [gates, recurrent_kernel, *state]
    if projection is not None:
        arguments.append(projection)
    arguments = [_tensor(argument) for argument in arguments]
    clips = {"cell_clip": cell_clip, "projection_clip": projection_clip}

    if not training:
        outputs, cell = _forward(*arguments, **clips, keeps=False)
        return outputs, (outputs[-1], cell)

    @custom_gradient
    def run(*arguments):
        outputs, cells, sigmoids, g = _forward(*arguments, **clips, keeps=True)

        def gradient(*upstream):
            # Of JAX the gradients of all results are one tuple.
            d_outputs, d_cell = upstream[0] if len(upstream) == 1 else upstream
            saved = outputs, cells, sigmoids, g
            return _backward(arguments, *saved, d_outputs, d_cell, **clips)

        return (outputs, cells[-1]), gradient

    outputs, cell = run(*arguments)
    return outputs, (outputs[-1], cell)


def _forward(gates, kernel, r, c, projection=None, *, cell_clip, projection_clip, keeps):
    """-> (r of every step, the last c), or with `keeps` of every step r, c, σ(gates), tanh(g)."""
    units, size = c.shape[-1], r.shape[-1]

    def step(state, inputs):
        r, c = state
        x = inputs[0] + ops.matmul(r, kernel)  # (B, 4 U)
        g = ops.tanh(x[:, 2 * units : 3 * units])
        sigmoids = ops.sigmoid(x)  # of g for nothing, but in one operation
        i, f, _, o = ops.split(sigmoids, 4, axis=-1)  # (B, U) each
        c = _clipped(i * g + f * c, cell_clip)
        h = o * ops.tanh(c)
        r = h if projection is None else _clipped(ops.matmul(h, projection), projection_clip)
        return (r, c), (r, c, sigmoids, g) if keeps else (r,)

    sizes = (size, units, 4 * units, units) if keeps else (size,)
    (_, c), saved = _scan(step, (r, c), (gates,), sizes)
    return saved if keeps else (*saved, c)


def _backward(
    arguments,
    outputs,
    cells,
    sigmoids,
    g,
    d_outputs,
    d_cell,
    *,
    cell_clip,
    projection_clip,
):
    """The gradients of the arguments.

    What the gradients of a step are multiplied by is computed for all steps at once: small
    operations in a loop take longer than their arithmetic.
    """
    _, kernel, first_r, first_c, *projection = arguments
    i, f, _, o = ops.split(sigmoids, 4, axis=-1)  # (S, B, U) each
    tanh_c = ops.tanh(cells)
    # What a change of c[t], and for o of h[t], changes in each gate's argument.
    gate_factors = ops.concatenate(
        [
            g * i * (1 - i),
            _shifted(cells, first_c) * f * (1 - f),
            i * (1 - g * g),
            tanh_c * o * (1 - o),
        ],
        axis=-1,
    )  # (S, B, 4 U)
    cell_factor = o * (1 - tanh_c * tanh_c)  # how h[t] depends on c[t]
    state_factor = f  # how c[t] depends on c[t-1]
    if cell_clip is not None:
        passes = _unclipped(cells, cell_clip)
        cell_factor = cell_factor * passes
        state_factor = f * _shifted(passes, ops.ones_like(first_c))
        d_cell = d_cell * passes[-1]
    inputs = [d_outputs, gate_factors, cell_factor, state_factor]
    sizes = [4 * first_c.shape[-1]]
    kernel_transposed = ops.transpose(kernel)
    if projection:
        projection_transposed = ops.transpose(projection[0])
        sizes.append(first_r.shape[-1])
    if projection and projection_clip is not None:
        inputs.append(_unclipped(outputs, projection_clip))

    def step(state, inputs):
        d_r, d_c = state  # what the steps after this one contribute
        d_output, gate_factors, cell_factor, state_factor, *passes = inputs
        d_h = d_r = d_r + d_output
        if passes:
            d_r = d_r * passes[0]
        if projection:
            d_h = ops.matmul(d_r, projection_transposed)
        d_c = d_c + d_h * cell_factor
        d_gates = ops.concatenate([d_c, d_c, d_c, d_h], axis=-1) * gate_factors
        d_steps = (d_gates, d_r)[: len(sizes)]
        return (ops.matmul(d_gates, kernel_transposed), d_c * state_factor), d_steps

    begin = (ops.zeros_like(first_r), d_cell)
    (d_r, d_c), d_steps = _scan(step, begin, inputs, sizes, reverse=True)
    gradients = [d_steps[0], _product(_shifted(outputs, first_r), d_steps[0]), d_r, d_c]
    if projection:
        gradients.append(_product(o * tanh_c, d_steps[1]))
    return tuple(gradients)


def _tensor(x):
    """A tensor, since TensorFlow's gradients that are written out take no variables."""
    x = ops.convert_to_tensor(x)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.convert_to_tensor(x)
    return x


def _clipped(x, limit):
    return x if limit is None else ops.clip(x, -limit, limit)


def _unclipped(x, limit):
    """1 where a clipped value passes its gradient on, and 0 at the limit."""
    return ops.cast(ops.abs(x) < limit, x.dtype)


def _shifted(x, first):
    """Shifts a sequence by a step; `first` is the first element: (S, B, D), (B, D) -> (S, B, D)."""
    return ops.concatenate([first[None], x[:-1]], axis=0)


def _product(x, y):
    """The sum over steps and batch of outer products: (S, B, M), (S, B, N) -> (M, N)."""
    rows, columns = (ops.reshape(array, (-1, array.shape[-1])) for array in (x, y))
    return ops.matmul(ops.transpose(rows), columns)


def _scan(step, state, inputs, sizes, *, reverse=False):
    """`jax.lax.scan` of `step(state, inputs)` -> (state, outputs), over inputs (S, B, …).

    The outputs (B, size) have the sizes `sizes`. (That of Keras for TensorFlow has no outputs but
    of the state's shape.)
    """
    if keras.backend.backend() != "tensorflow":
        return ops.scan(step, state, inputs, reverse=reverse)
    if inputs[0].shape[0] == 1:  # one token at a time
        state, outputs = step(state, [x[0] for x in inputs])
        return state, tuple(y[None] for y in outputs)
    import tensorflow as tf

    steps, batch = tf.shape(inputs[0])[0], inputs[0].shape[1]
    arrays = tuple(
        tf.TensorArray(state[0].dtype, steps, element_shape=(batch, size)) for size in sizes
    )

    def body(number, state, arrays):
        t = steps - 1 - number if reverse else number
        state, outputs = step(state, [x[t] for x in inputs])
        written = (array.write(t, y) for array, y in zip(arrays, outputs, strict=True))
        return number + 1, state, tuple(written)

    _, state, arrays = tf.while_loop(
        lambda number, *_: number < steps,
        body,
        (0, state, arrays),
        shape_invariants=(
            tf.TensorShape([]),
            tuple(tf.TensorShape((batch, x.shape[-1])) for x in state),
            tuple(tf.TensorShape(None) for _ in arrays),
        ),
        maximum_iterations=steps,  # with which XLA knows the sizes
        parallel_iterations=1,
    )
    return state, tuple(array.stack() for array in arrays)


def reversed_sequences(x, lengths):
    """The first `lengths` steps of each sequence in reverse: (S, B, D), int (B,) -> (S, B, D).

    The steps after them stay where they are.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)
    step = ops.arange(x.shape[0], dtype="int32")[:, None]
    source = ops.where(step < lengths, lengths - 1 - step, step)  # (S, B)
    return ops.take_along_axis(x, source[..., None], axis=0)
