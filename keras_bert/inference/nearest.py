"""The words with the nearest vectors, and how well word vectors do, as one call."""

from typing import Any

from keras_bert.base.settings import takes
from keras_bert.inference.settings import NearestSettings
from keras_bert.inference.word_vectors import Neighbour, WordVectors


@takes(NearestSettings)
def nearest(**settings) -> list[Neighbour] | dict[str, Any]:
    """The neighbours of a word or of an analogy, or the metrics of a file.

    For several questions to one model, use `WordVectors`, which loads it once.

    Args:
        {settings}

    `model` may also be a task, or a `WordVectors`.

    Returns:
        For `word` and `analogy` a list of `Neighbour`, a word and the cosine of its vector, the
        most similar first. For `analogies` and `pairs` a dictionary: see
        `WordVectors.evaluate_analogies` and `WordVectors.evaluate_similarity`.

    Raises:
        InputError: the model cannot be loaded, the vocabulary does not have a word, or a file is
            invalid.
    """
    settings = NearestSettings.of(settings)
    model = settings.model
    vectors = model if isinstance(model, WordVectors) else WordVectors.of(model)
    if settings.word is not None:
        return vectors.nearest(settings.word, top_k=settings.top_k)
    if settings.analogy is not None:
        return vectors.analogy(*settings.analogy, top_k=settings.top_k)
    if settings.analogies is not None:
        return vectors.evaluate_analogies(settings.analogies)
    return vectors.evaluate_similarity(settings.pairs)
