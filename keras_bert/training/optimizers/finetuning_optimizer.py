"""The optimizer that fine-tunes where none is given."""

from keras_bert.training.optimizers.optimizer import make_optimizer
from keras_bert.training.settings import FinetuneSettings

# The highest learning rate where none is given: of all weights, and of a head alone.
RATE, RATE_OF_A_HEAD = 5e-5, 1e-3


def finetuning_optimizer(task, *, steps, learning_rate=None):
    """`make_optimizer` with the settings that `keras_bert.finetune` has by itself.

    Args:
        task: a `Task`.
        steps: how many there will be. None keeps the rate at its highest.
        learning_rate: the highest; None is 5e-5, or 1e-3 where the encoder is not trainable.
    """
    if learning_rate is None:
        layers = (layer for group in task.encoder.layer_groups for layer in group)
        is_trained = any(layer.trainable_variables for layer in layers)
        learning_rate = RATE if is_trained else RATE_OF_A_HEAD
    defaults = FinetuneSettings.defaults()
    return make_optimizer(
        task,
        learning_rate=learning_rate,
        warmup=defaults["warmup"],
        weight_decay=defaults["weight_decay"],
        steps=steps,
    )
