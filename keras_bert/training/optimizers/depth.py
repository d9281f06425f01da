"""How deep below a task's outputs its variables are, and which of them are trained."""

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted


def depths(task, variables):
    """The depth of each variable of a task: a list of ints.

    The head is at 0, with all that belongs to it, such as the pooler or a mix of layers. The groups
    of the encoder's layers count from its output: 1, 2, … down to the embeddings.
    """
    groups = enumerate(reversed(task.encoder.layer_groups), 1)
    found = {id(v): depth for depth, group in groups for layer in group for v in layer.variables}
    return [found.get(id(variable), 0) for variable in variables]


def layers_to_train(encoder, *, last=None, epochs=None):
    """How many groups of the encoder's layers are trained, from its output down.

    Args:
        last: train the last so many layers; None is all of the encoder.
        epochs: unfreeze one layer more at the end of each of so many epochs; None is all at once.

    Raises:
        InputError: there are fewer layers above the embeddings.
    """
    groups = len(encoder.layer_groups)
    if last is not None and last > groups - 1:
        raise InputError(
            f"`train_layers` is {last}, but the model has {counted(groups - 1, 'layer')}. Leave it "
            "out to train all of the model."
        )
    layers = groups if last is None else last
    return layers if epochs is None else min(layers, epochs - 1)


def train_from_the_top(task, layers):
    """Takes what is below the last `layers` groups of a task's encoder out of training."""
    for group in task.encoder.layer_groups[::-1][layers:]:
        for layer in group:
            layer.trainable = False
