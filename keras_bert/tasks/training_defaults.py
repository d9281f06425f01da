"""The learning rate and the number of epochs of fine-tuning where none are given."""

import math
from typing import NamedTuple

EPOCHS = 3  # of Devlin et al. 2018, where these are enough steps
LEAST_STEPS = 100
# (the largest hidden size, the learning rate of trained weights, that of random ones)
_LEARNING_RATES = (
    (192, 1e-3, 1e-3),
    (320, 3e-4, 5e-4),
    (512, 1e-4, 3e-4),
    (896, 5e-5, 1e-4),
    (math.inf, 3e-5, 5e-5),
)
# The learning rate of a head over a frozen encoder.
HEAD_LEARNING_RATE = 1e-3


class TrainingDefaults(NamedTuple):
    """What `training_defaults` gives: the highest learning rate, and the least number of steps."""

    learning_rate: float
    least_steps: int

    def epochs(self, *, examples: int, batch_size: int) -> int:
        """Passes over so many examples: 3, or as many as make the least number of steps."""
        return max(EPOCHS, math.ceil(self.least_steps / math.ceil(examples / batch_size)))


def training_defaults(*, hidden_size: int, is_pretrained: bool) -> TrainingDefaults:
    """The learning rate, and the least number of steps, of an encoder that is fine-tuned whole.

    Args:
        hidden_size: the encoder's.
        is_pretrained: whether its weights are trained, and not random.
    """
    rates = next(rates for largest, *rates in _LEARNING_RATES if hidden_size <= largest)
    return TrainingDefaults(rates[0 if is_pretrained else 1], LEAST_STEPS)
