"""Activations that the backward pass computes again instead of storing (Chen et al. 2016)."""

import keras


def recomputed(layer, *shared):
    """A `TransformerBlock` in training, of whose activations only the input is stored.

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

        def run(x, *values):
            pairs = [*fixed, *zip(trained, values, strict=True)]
            with keras.StatelessScope(state_mapping=pairs):
                # What layers share of a layout is computed anew: tensors do not leave the function.
                return layer(x, layout=layout.fresh(), **options)

        return keras.remat(run)(x, *(v.value for v in trained))

    return call


def _seed_generators(layer):
    """The seed generators of a layer and of all layers in it."""
    return [g for part in layer._flatten_layers() for g in part._seed_generators]
