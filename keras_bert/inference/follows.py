"""Whether a text follows another, by a next-sentence or sentence-order head."""

from typing import NamedTuple

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.inference.predict import as_task, check_finite
from keras_bert.inference.settings import FollowsSettings
from keras_bert.tasks.pretraining.pretrainer import Pretrainer
from keras_bert.tasks.pretraining.signatures import follows_probability

_USUAL_LENGTH = 512  # the longest sequence of a model without a limit
_PAIRS_TOGETHER = 256


class FollowingText(NamedTuple):
    """Two texts, and the probability that the second follows the first."""

    text_a: str
    text_b: str
    probability: float


@takes(FollowsSettings)
def follows(**settings) -> list[FollowingText]:
    """Returns the probabilities that texts follow others, by the second head of pre-training.

    A model that was pre-trained on next sentences was shown second texts of other documents (Devlin
    et al. 2018, section 3.1); one that was pre-trained on the order of sentences, the same two
    texts swapped (Lan et al. 2020), so that its probability is that of their order. The loss of a
    pair that is in order is the negative logarithm of its probability.

    Args:
        {settings}

    `model` may also be a `Pretrainer`. Of a pair that is too long for the model, the longer text is
    cut at its end, as in pre-training.

    Returns:
        One `FollowingText` per pair, in order.

    Raises:
        InputError: the model has neither head, or there are not as many second texts as first ones.
    """
    settings = FollowsSettings.of(settings)
    task = sentence_task(settings.model)
    max_length = task.encoder.default_max_length(_USUAL_LENGTH)
    probabilities = []
    for start in range(0, len(settings.text_a), _PAIRS_TOGETHER):
        texts = [x[start : start + _PAIRS_TOGETHER] for x in (settings.text_a, settings.text_b)]
        probabilities += follows_probability(task, texts, max_length=max_length).numpy().tolist()
    check_finite({task.SENTENCES: np.array(probabilities)})
    texts = zip(settings.text_a, settings.text_b, strict=True)
    return [
        FollowingText(*pair, probability)
        for pair, probability in zip(texts, probabilities, strict=True)
    ]


def sentence_task(model):
    """The `Pretrainer` of a folder, or the given one, which has a tokenizer.

    Raises InputError if it is another task.
    """
    task = as_task(model)
    if not isinstance(task, Pretrainer):
        raise InputError(
            f"{model} contains a model of the task {task.KIND}, which has no next-sentence or "
            "sentence-order head. Use a model that was pre-trained with the objective mlm-nsp or "
            "mlm-sop."
        )
    if task.tokenizer is None:
        raise InputError(f"{model} has no supported tokenizer, so it cannot read text.")
    return task
