"""What can be chosen: the layers that make a vector, and what has one."""

from keras_bert.base.errors import InputError

# Name -> (how many layers from the end, how they are joined). The six choices of the BERT paper's
# feature-based approach (Devlin et al. 2018, section 5.3 and table 7; there the two sums are
# weighted: `ScalarMix` learns such weights) and one that is much used since.
_LAYERS = {
    "last": (1, "sum"),
    "second-to-last": (2, "lowest"),
    "sum-last-4": (4, "sum"),
    "concat-last-4": (4, "concat"),
    "sum-all": (None, "sum"),
    "mean-last-4": (4, "mean"),
    "first": (0, "embeddings"),
}
LAYERS = tuple(_LAYERS)
# Tokens of a row where an encoder takes sequences of any length.
ANY_LENGTH = 512
TOKENS = ("words-mean", "words-first", "pieces", "none")


def check_layers(name, *, config):
    """Raises `InputError` where the model has too few layers for a choice."""
    needed, _ = _LAYERS[name]
    layers = config.num_hidden_states - 1
    if (needed or 0) > layers:
        raise InputError(
            f"{name} needs a model of at least {needed} layers, and this one has {layers}; give "
            "another choice of layers."
        )


def layers_model(encoder, name):
    """A `keras.Model` from an encoder's inputs to the vectors of a choice, float32 (B, S, D).

    In a graph the layers above those chosen are not computed.
    """
    import keras  # late: a command line is parsed with the names above, and is fast

    inputs = encoder.symbolic_inputs()
    states = encoder(inputs, outputs=("hidden_states",))["hidden_states"]
    return keras.Model(inputs, keras.ops.cast(choose_layers(states, name), "float32"))


def choose_layers(states, name):
    """The vectors of a choice, from an encoder's hidden states.

    * `last`, `second-to-last`: the output of that block;
    * `sum-last-4`, `mean-last-4`, `concat-last-4` (the last block's first): of four blocks;
    * `sum-all`: the sum of all blocks' outputs, without the embeddings (the paper's "all 12");
    * `first`: the embeddings, before any block (the paper's "Embeddings"): no context in them.

    Shapes: `states` are L + 1 tensors (B, S, D), the embeddings first -> (B, S, D), or (B, S, 4 D)
    for `concat-last-4`.
    """
    from keras import ops  # late: a command line is parsed with the names above, and is fast

    count, how = _LAYERS[name]
    if how == "embeddings":
        return states[0]
    blocks = states[1:] if count is None else states[-count:]
    if how == "lowest":
        return blocks[0]
    if how == "concat":
        return ops.concatenate(blocks[::-1], axis=-1)
    total = blocks[0]
    for block in blocks[1:]:
        total = total + block
    return total / len(blocks) if how == "mean" else total
