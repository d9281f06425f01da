"""The learning rate and the number of epochs of fine-tuning if none are given."""

import math
from typing import NamedTuple

EPOCHS = 3  # of Devlin et al. 2018, if these are enough steps
# (the largest hidden size, the learning rate of trained weights, that of random ones, the least
# number of steps)
_DEFAULTS = (
    (192, 1e-3, 1e-3, 600),
    (320, 3e-4, 5e-4, 300),
    (400, 3e-4, 3e-4, 200),
    (512, 1e-4, 3e-4, 200),
    (896, 5e-5, 1e-4, 100),
    (math.inf, 3e-5, 5e-5, 100),
)
# The learning rate of a head over a frozen encoder.
HEAD_LEARNING_RATE = 1e-3
# Of a classifier whose vectors are trained by their labels: the factor of the rate, and the least
# number of steps.
_CONTRASTIVE_RATE, _CONTRASTIVE_STEPS = 1 / 15, 100
# A sweep tries these multiples of the learning rate, and, for each number of epochs if these are
# enough steps, this multiple of the least number of steps. For BERT base they are the search of
# Devlin et al. 2018 (appendix A.3).
_RATES_TO_TRY = (1.0, 0.6, 0.4)
_EPOCHS_TO_TRY = {2: 1.0, EPOCHS: 1.5, 4: 2.0}


class TrainingDefaults(NamedTuple):
    """The result of `training_defaults`: the highest learning rate, the least number of steps."""

    learning_rate: float
    least_steps: int

    def epochs(self, *, examples: int, batch_size: int) -> int:
        """Passes over so many examples: 3, or as many as make the least number of steps."""
        return self._epochs(EPOCHS, 1.0, examples=examples, batch_size=batch_size)

    def _epochs(self, epochs, multiple, *, examples, batch_size):
        steps = math.ceil(examples / batch_size)
        return max(epochs, math.ceil(multiple * self.least_steps / steps))

    @property
    def learning_rates_to_try(self) -> list[float]:
        """The learning rates of a sweep: this one and smaller ones."""
        return [float(f"{multiple * self.learning_rate:.1e}") for multiple in _RATES_TO_TRY]

    def epochs_to_try(self, *, examples: int, batch_size: int) -> list[int]:
        """The numbers of epochs of a sweep: 2, 3, 4, or more for the least number of steps."""
        return [
            self._epochs(epochs, multiple, examples=examples, batch_size=batch_size)
            for epochs, multiple in _EPOCHS_TO_TRY.items()
        ]


def lora_learning_rate(learning_rate: float) -> float:
    """The learning rate of LoRA, if that of the whole encoder is `learning_rate`.

    Ten times as much, up to that of a head: 5e-4 for a base and 3e-4 for a large encoder, as in
    Hu et al. 2021 (table 9). MiniLM, for which it is 1e-3, was measured (docs/training.md): 3e-4 is
    too little, and 3e-3 gives the same.
    """
    return min(10 * learning_rate, HEAD_LEARNING_RATE)


def training_defaults(
    *,
    hidden_size: int,
    is_pretrained: bool,
    is_frozen: bool = False,
    has_lora: bool = False,
    is_contrastive: bool = False,
    rate_factor: float = 1.0,
) -> TrainingDefaults:
    """The learning rate, and the least number of steps, of fine-tuning an encoder.

    Measured on whole encoders with batches of 32, seed 0, in percent (docs/training.md has all
    cells): macro F1 on 436 tickets of four classes, and in 450 sentences F1 of the entities of
    WNUT-17, macro F1 of SST-2 (with [CLS] but for the last column) and accuracy of part-of-speech
    tags.

        | weights      | data     | 5e-5, 3 epochs     | 100 steps            | least steps    |
        | 384, trained | tickets  | 44.5, 2 of 4 never | 1e-4 and 3e-4: 100   | 3e-4: 100      |
        | 384, trained | entities | not measured       | 1e-4: 35.3, 4 never  | 3e-4: 46.2     |
        | 384, trained | SST-2    | 34.8               | 1e-4: 81.9           | 3e-4: 78.9     |
        | 384, trained | tags     | not measured       | not measured         | 3e-4: 93.7     |
        | 128, trained | tickets  | 17.2, 3 of 4 never | 1e-3: 100            | 1e-3: 100      |
        | 128, trained | tags     | 20.1               | 1e-3: 77.4           | 1e-3: 78.8     |
        | 128, trained | entities | 0.1                | 1e-3: 0.0, 6 never   | 1e-3: 6.6      |
        | 256, random  | tickets  | 17.2, 3 of 4 never | 5e-4: 100; 3e-4 82.1 | 210 steps: 100 |

    "Never" counts the classes, or types of entities, of ten or more training examples that the
    model never predicts. With 300 steps the tagger of entities of size 128 has 7.3, 2 never, and it
    is no better at 2e-3 and 3e-3.

    The rates of sizes above 512 are in the range of Devlin et al. 2018; those of random weights of
    384 and more were not measured. The number of examples decides only how many epochs make the
    steps: `TrainingDefaults.epochs`.

    Args:
        hidden_size: the encoder's.
        is_pretrained: whether its weights are trained, and not random.
        is_frozen: whether the head alone is trained.
        has_lora: see `lora_learning_rate`.
        is_contrastive: whether the vectors of texts are trained by their labels (`contrastive`).
        rate_factor: the task's RATE_FACTOR, by which the rate of an encoder is multiplied.
    """
    row = next(row for largest, *row in _DEFAULTS if hidden_size <= largest)
    *rates, least_steps = row
    if is_contrastive:
        rate_factor, least_steps = rate_factor * _CONTRASTIVE_RATE, _CONTRASTIVE_STEPS
    learning_rate = float(f"{rate_factor * rates[0 if is_pretrained else 1]:.1e}")
    if is_frozen:
        learning_rate = HEAD_LEARNING_RATE
    elif has_lora:
        learning_rate = lora_learning_rate(learning_rate)
    return TrainingDefaults(learning_rate, least_steps)
