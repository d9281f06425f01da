"""Activations that are computed again for the gradients: those of a layer, or of a part of a batch.

Both compute again with the same random numbers. `recomputed` stores the input of each layer in
place of all that is in it. `in_chunks` stores nothing of a pass but its outputs, so that a batch of
any size takes the memory of a chunk, even if a loss needs the outputs of all of it (GradCache, Gao
et al. 2021).
"""

import keras
from keras import ops

from keras_bert.layers.kernels.chunks import computed_in_chunks

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

    drawn = [state[1] for state in first]
    outputs, drawn = computed_in_chunks(run, inputs, values, drawn, specs=model.output, size=size)
    for state, before, count in zip(states, first, drawn, strict=True):
        state.assign(ops.stack([before[0], count]))  # as after a pass of the whole batch
    return outputs


def _state_of_chunk(state, number):
    """The state of a seed generator, (2,) its seed and how often it has drawn, for a chunk."""
    seed = state[0] + ops.cast(number, state.dtype) * ops.cast(_BETWEEN_SEEDS, state.dtype)
    if keras.backend.standardize_dtype(state.dtype) != "uint32":  # which wraps around
        seed = ops.mod(seed, 1 << 32)
    return ops.stack([seed, state[1]])


def _seed_generators(layer):
    """The seed generators of a layer and of all layers in it."""
    return [g for part in layer._flatten_layers() for g in part._seed_generators]
