"""Heads, and what they read of an encoder; here the layers that a vector is made of, by name.

They are those that the BERT paper compares, and one layer. Nothing here loads Keras: settings list
the names.
"""

import re

from keras_bert.base.errors import InputError

LAST = "last"
SUM, MEAN, CONCAT, MIX = "sum", "mean", "concat", "mix"
# Name -> (number of layers from the end, None being all; how they are combined). The six choices of
# the BERT paper's feature-based approach (Devlin et al. 2018, section 5.3 and table 7; there the
# two sums are weighted: see MIXES) and the mean of four layers.
LAYERS = {
    "last": (1, SUM),
    "second-to-last": (2, "lowest"),
    "sum-last-4": (4, SUM),
    "concat-last-4": (4, CONCAT),
    "sum-all": (None, SUM),
    "mean-last-4": (4, MEAN),
    "first": (0, "embeddings"),
}
# The choices with weights of their own, learned with the head: `keras_bert.heads.reader`. That
# of all layers includes the embeddings (Peters et al. 2018).
MIXES = {"mix-last-4": (4, MIX), "mix-all": (None, MIX)}
_ONE_LAYER = re.compile("layer-([1-9][0-9]{0,3})")


def check_layers(choice, *, learned=False):
    """Raises `InputError` unless `choice` is a name of LAYERS (`learned`: or MIXES), or layer-K."""
    names = {**LAYERS, **MIXES} if learned else LAYERS
    if choice not in names and _ONE_LAYER.fullmatch(choice) is None:
        raise InputError.naming(
            "{layers} is {!r}. It should be {}, or layer-K with the number of a layer, from "
            "layer-1.",
            choice,
            ", ".join(names),
        )


def layer_numbers(choice, *, layers):
    """-> (the numbers of the hidden states that a choice reads, how they are combined).

    Args:
        choice: a name of LAYERS or MIXES, or layer-K.
        layers: the number of the model's layers, which are numbered from 1; 0 are the embeddings.

    Raises:
        InputError: the model has too few layers.
    """
    if one := _ONE_LAYER.fullmatch(choice):
        needed, how = int(one[1]), SUM
        numbers = [needed]
    else:
        count, how = {**LAYERS, **MIXES}[choice]
        needed = int(how != MIX) if count is None else count
        first = layers - count + 1 if count else int(how != MIX)
        numbers = list(range(first, layers + 1))
    if needed > layers and choice != LAST:  # the last of static vectors is the only one
        raise InputError.naming(
            "{layers} is {}, which needs a model of at least {} layers. Received: a model with {}.",
            choice,
            needed,
            layers,
        )
    if how in ("lowest", "embeddings"):
        return ([0] if how == "embeddings" else numbers[:1]), SUM
    return (numbers[::-1] if how == CONCAT else numbers), how


# Name -> the parts that are concatenated.
POOLINGS = {
    "cls": ("cls",),
    "mean": ("mean",),
    "both": ("cls", "mean"),
    "last": ("last",),
    "max": ("max",),
    "last+max+mean": ("last", "max", "mean"),
}
# All parts of which a pooling may consist; those that no name above has are for text vectors.
PARTS = ("cls", "mean", "max", "last", "mean-sqrt-length", "weighted-mean")


def parts_of(pooling):
    """The parts of a pooling: one of POOLINGS, or some of PARTS with + between them."""
    return POOLINGS.get(pooling) or tuple(pooling.split("+"))
