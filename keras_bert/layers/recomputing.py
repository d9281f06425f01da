"""Activations that are computed again for the gradients: those of a layer, or of a part of a batch.

Both compute again with the same random numbers. `recomputed` stores the input of each layer in
place of all that is in it. `in_chunks` stores nothing of a pass but its outputs, so that a batch of
any size takes the memory of a chunk, where a loss needs the outputs of all of it (GradCache, Gao et
al. 2021).
"""

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.layers.kernels.program import compiled_by_xla

# The seeds of the chunks of a batch differ by multiples of this, so that chunks have different
# random numbers. The first has those of the whole batch.
_BETWEEN_SEEDS = 0x9E3779B1


def recomputed(layer, *shared):
    """A `TransformerBlock` in training, of whose activations only the input is stored (Chen 2016).

    The gradient calls the layer a second time, with the same values of all variables, and so with
    the same random numbers.

    Args:
        layer: the block, called with `layout`.
        *shared: layers without random numbers that it calls and that are not its own parts.
    """
    generators = _seed_generators(layer)

    def call(x, *, layout, **options):
        # One number of each generator: a dropout draws once in a forward pass.
        fixed = {id(g.state): (g.state, g.next()) for g in generators}
        variables = [v for part in (layer, *shared) for v in part.variables if id(v) not in fixed]
        trained = [v for v in variables if v.trainable]
        fixed = [*fixed.values(), *((v, v.value) for v in variables if not v.trainable)]

        def run(x, *trained_values):
            pairs = [*fixed, *zip(trained, trained_values, strict=True)]
            with keras.StatelessScope(state_mapping=pairs):
                # What layers share of a layout is computed anew: tensors do not leave the function.
                return layer(x, layout=layout.fresh(), **options)

        return keras.remat(run)(x, *(v.value for v in trained))

    return call


def in_chunks(model, call, inputs, *, size):
    """The outputs of a model in training for a few examples at a time, and the gradients likewise.

    The outputs of an example must not depend on others. The forward pass of a chunk stores no
    activations: the gradient computes them again, one chunk after another, with the same random
    numbers, and adds the chunks' gradients of the weights. The inputs have none.

    Args:
        model: a functional model, whose variables the pass reads.
        call: a function of inputs to outputs by name, which calls it for training.
        inputs: {name: tensor (B, …)}.
        size: the most examples of a chunk. On TensorFlow chunks are of about equal size.

    Returns:
        {name: tensor (B, …)} of all examples.
    """
    generators = _seed_generators(model)
    states = [generator.state for generator in generators]
    first, ids = [ops.copy(state.value) for state in states], {id(state) for state in states}
    variables = [v for v in model.variables if id(v) not in ids]
    trained = [v for v in variables if v.trainable]
    # Tensors: the value of a variable of TensorFlow may be the variable.
    fixed = [(v, ops.copy(v.value)) for v in variables if not v.trainable]
    values = [ops.copy(v.value) for v in trained]

    def run(part, number, values):
        """-> (outputs, how often each generator has drawn) of chunk `number`."""
        seeds = [_state_of_chunk(state, number) for state in first]
        pairs = [*fixed, *zip(trained, values, strict=True), *zip(states, seeds, strict=True)]
        with keras.StatelessScope(state_mapping=pairs) as scope:
            outputs = call(part)
            counts = [scope.get_current_value(state)[1] for state in states]
        return outputs, counts

    chunks = {"tensorflow": _on_tensorflow, "jax": _on_jax}[keras.backend.backend()]
    drawn = [state[1] for state in first]
    outputs, drawn = chunks(run, inputs, values, drawn, model.output, size)
    for state, before, count in zip(states, first, drawn, strict=True):
        state.assign(ops.stack([before[0], count]))  # as after a pass of the whole batch
    return outputs


def _state_of_chunk(state, number):
    """The state of a seed generator, (2,) its seed and how often it has drawn, for a chunk."""
    seed = state[0] + ops.cast(number, state.dtype) * ops.cast(_BETWEEN_SEEDS, state.dtype)
    if keras.backend.standardize_dtype(state.dtype) != "uint32":  # which wraps around
        seed = ops.mod(seed, 1 << 32)
    return ops.stack([seed, state[1]])


def _on_tensorflow(run, inputs, values, drawn, specs, size):
    """-> (outputs by name, counts of the generators) of `run` on all chunks, one after another.

    Args:
        run: of `in_chunks`.
        inputs: {name: tensor (B, …)}.
        values: of the variables that are trained.
        drawn: the counts of the generators before.
        specs: {name: an object with the dtype and shape of an output}.
        size: the most examples of a chunk.
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

    @tf.custom_gradient
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
    """As `_on_tensorflow`, for arrays of a fixed shape: whole chunks, and one of what is left."""
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
        counts = [of_chunk[0] for of_chunk in each]
    if rows > count * size or not count:
        rest = {name: x[count * size :] for name, x in inputs.items()}
        outputs, counts = again(rest, count, values)
        parts.append(outputs)
    return {name: ops.concatenate([part[name] for part in parts]) for name in specs}, counts


def _seed_generators(layer):
    """The seed generators of a layer and of all layers in it."""
    return [g for part in layer._flatten_layers() for g in part._seed_generators]
