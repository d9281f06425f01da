"""The optimizer that fine-tunes where none is given."""

from keras_bert.train.optimizer import make_optimizer

# The highest learning rate where none is given: of all weights, and of a head alone.
RATE, RATE_OF_A_HEAD = 5e-5, 1e-3
WARMUP, WEIGHT_DECAY = 0.1, 0.01


def finetuning_optimizer(task, *, steps, learning_rate=None):
    """`make_optimizer` with the settings that `keras_bert.finetune` has by itself.

    Args:
        task: a `Task`.
        steps: how many there will be. None keeps the rate at its highest.
        learning_rate: the highest; None is 5e-5, or 1e-3 where the encoder is not trainable.
    """
    if learning_rate is None:
        learning_rate = RATE if task.encoder.base().trainable_variables else RATE_OF_A_HEAD
    return make_optimizer(
        task,
        learning_rate=learning_rate,
        warmup=WARMUP,
        weight_decay=WEIGHT_DECAY,
        steps=steps,
    )
