"""A function of a batch for a few of its examples at a time, and its gradients likewise."""

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.layers.kernels.private import custom_gradient
from keras_bert.layers.kernels.program import compiled_by_xla


def computed_in_chunks(run, inputs, values, drawn, *, specs, size):
    """The outputs of a function of all chunks of a batch, one after another.

    What the forward pass computes is not stored: the gradient of `values` computes it again.

    Args:
        run: a pure function of the inputs of a chunk by name, its number, and `values` -> (outputs
            by name, a list of counts), the same counts for each chunk.
        inputs: {name: tensor (B, …)}.
        values: a list of tensors with gradients.
        drawn: the counts before.
        specs: {name: an object with the dtype and the shape of an output}.
        size: the most examples of a chunk.

    Returns:
        (outputs by name, of all examples, the counts).
    """
    backends = {"tensorflow": _on_tensorflow, "jax": _on_jax}
    return backends[keras.backend.backend()](run, inputs, values, drawn, specs, size)


def _on_tensorflow(run, inputs, values, drawn, specs, size):
    """Chunks of about equal size, whose gradient is a loop of its own.

    TensorFlow's gradient of a loop would store what lies between.
    """
    import tensorflow as tf

    if compiled_by_xla():
        raise InputError.naming(
            "{chunk_size} is for steps that XLA does not compile. Use {jit_compile=False}."
        )
    rows = tf.shape(next(iter(inputs.values())))[0]
    count = tf.maximum(-(-rows // size), 1)
    counts_after = []

    def bounds(number):
        return rows * number // count, rows * (number + 1) // count

    def computed(number, values):
        begin, end = bounds(number)
        outputs, counts = run({name: x[begin:end] for name, x in inputs.items()}, number, values)
        return [outputs[name] for name in specs], counts

    def loop(body, *start):
        # One at a time: two would take twice the memory.
        return tf.while_loop(
            lambda number, *_: number < count, body, (0, *start), parallel_iterations=1
        )[1:]

    @custom_gradient
    def whole(*values):
        def forward(number, arrays, _):
            outputs, counts = computed(number, values)
            arrays = [a.write(number, x) for a, x in zip(arrays, outputs, strict=True)]
            return number + 1, arrays, counts

        def gradient(*upstream):
            def backward(number, sums):
                begin, end = bounds(number)
                with tf.GradientTape() as tape:
                    tape.watch(values)
                    outputs, _ = computed(number, values)
                gradients = tape.gradient(
                    outputs,
                    values,
                    output_gradients=[x[begin:end] for x in upstream],
                    unconnected_gradients=tf.UnconnectedGradients.ZERO,
                )
                gradients = map(tf.convert_to_tensor, gradients)  # of rows of a table, too
                return number + 1, [x + y for x, y in zip(sums, gradients, strict=True)]

            (sums,) = loop(backward, [tf.zeros_like(value) for value in values])
            return sums

        arrays = [
            tf.TensorArray(x.dtype, count, infer_shape=False, element_shape=x.shape)
            for x in specs.values()
        ]
        arrays, counts = loop(forward, arrays, drawn)
        counts_after.extend(counts)
        return [array.concat() for array in arrays], gradient

    return dict(zip(specs, whole(*values), strict=True)), counts_after


def _on_jax(run, inputs, values, drawn, specs, size):
    """Whole chunks, and one of what is left: arrays have a fixed shape."""
    import jax

    rows = next(iter(inputs.values())).shape[0]
    count = rows // size
    again = jax.checkpoint(run)
    parts, counts = [], drawn
    if count:
        stacked = {
            name: x[: count * size].reshape(count, size, *x.shape[1:]) for name, x in inputs.items()
        }
        numbers = jax.numpy.arange(count)
        _, (outputs, each) = jax.lax.scan(
            lambda carry, chunk: (carry, again(*chunk, values)), None, (stacked, numbers)
        )
        parts.append({name: x.reshape(-1, *x.shape[2:]) for name, x in outputs.items()})
        counts = [counts_of_chunk[0] for counts_of_chunk in each]
    if rows > count * size or not count:
        rest = {name: x[count * size :] for name, x in inputs.items()}
        outputs, counts = again(rest, count, values)
        parts.append(outputs)
    return {name: ops.concatenate([part[name] for part in parts]) for name in specs}, counts
