"""Which layers of a task are trained, and how deep each is below the head."""

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted


def depths(task, variables):
    """The depth of each variable of a task, a list of ints.

    The head is at 0, with all that belongs to it, such as the pooler or a layer mix. The groups of
    the encoder's layers count from the highest that the head reads: 1, 2, … down to the embeddings.
    """
    groups = enumerate(reversed(task.read_groups), 1)
    depth_of = {id(v): depth for depth, group in groups for layer in group for v in layer.variables}
    return [depth_of.get(id(variable), 0) for variable in variables]


def layers_to_train(groups, *, last=None, epochs=None):
    """The number of groups of an encoder's layers that are trained, from the highest down.

    Args:
        groups: those that the head reads.
        last: train only so many layers; None is all of the encoder.
        epochs: unfreeze one more layer after each of so many epochs; None is all at once.

    Raises:
        InputError: there are fewer layers above the embeddings.
    """
    groups = len(groups)
    if last is not None and last > groups - 1:
        raise InputError.naming(
            "{train_layers} is {}, but the head reads {}. Leave it out to train all of them.",
            last,
            counted(groups - 1, "layer"),
        )
    layers = groups if last is None else last
    return layers if epochs is None else min(layers, epochs - 1)


def train_last_layers(task, layers):
    """Freezes everything below the last `layers` groups of a task's encoder."""
    for group in task.read_groups[::-1][layers:]:
        for layer in group:
            layer.trainable = False
