"""How deep below a task's outputs its variables lie, and which of them are trained."""

from keras_bert.errors import InputError
from keras_bert.wording import counted


def depths(task, variables):
    """The depth of each variable of a task: a list of ints.

    The head, the pooler and a mix of layers are at 0, the last of the L blocks at 1, the first at
    L, and the embeddings at L + 1.
    """
    base = task.encoder.base()
    layers = [*reversed(base.blocks), base.embeddings]
    found = {id(v): depth for depth, layer in enumerate(layers, 1) for v in layer.variables}
    return [found.get(id(variable), 0) for variable in variables]


def layers_to_train(encoder, *, last=None, epochs=None):
    """How many layers of the encoder are trained, from the last block down.

    All L blocks and the embeddings are L + 1 layers.

    Args:
        encoder: a `BertEncoder`, or a `MixedEncoder` of one.
        last: train the last so many blocks; None is all of the encoder.
        epochs: thaw one layer more at the end of each of so many epochs; None is all at once.

    Raises:
        InputError: there are fewer blocks.
    """
    blocks = len(encoder.base().blocks)
    if last is not None and last > blocks:
        raise InputError(
            f"`train_layers` is {last}, and the model has {counted(blocks, 'block')}; leave it out "
            "to train all of the model."
        )
    layers = blocks + 1 if last is None else last
    return layers if epochs is None else min(layers, epochs - 1)


def train_from_the_top(task, layers):
    """Takes what lies below the last `layers` layers of a task's encoder out of training."""
    base = task.encoder.base()
    for layer in [*reversed(base.blocks), base.embeddings][layers:]:
        layer.trainable = False
