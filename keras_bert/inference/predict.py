"""What a fine-tuned model says about examples."""

from collections.abc import Callable, Iterator
from typing import Any

from keras_bert.base.settings import reading, takes
from keras_bert.inference.answers import Inference, opened
from keras_bert.inference.settings import PredictSettings, predict_settings
from keras_bert.tasks import settings_class
from keras_bert.text.tokenizer import note_on_unknown


@takes(predict_settings(settings_class("classifier")))
def predict(*, report: Callable[[str], None] | None = None, **settings) -> Iterator[dict[str, Any]]:
    """Yields one dictionary an example, in order (see the task's `decode`).

    Where a file has labels, they come back as `expected`.

    Args:
        {settings}
        report: a function that is told in one line how the file was read, and in another at the
            end where the vocabulary does not fit the text.

    `model` may also be a task, and `data` a sequence in place of a file. These are the arguments
    for a classifier; for another kind of task, its own stand in place of `text` and of those that
    tell how a file is read (`keras_bert.inference.settings.predict_settings` has them).

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """
    task, settings = opened(PredictSettings, predict_settings, settings)
    source = task.read(
        _given(settings, task.SETTINGS.EXAMPLE_FIELDS) if settings.data is None else settings.data,
        inferred_arguments=task.inferred_arguments,
        labelled=False,
        **settings.part(reading(task.SETTINGS)),
    )
    if report is not None and source.description:
        report(source.description)
    inference = Inference(task, batch_size=settings.batch_size, max_length=settings.max_length)
    return _answers(inference, source, report)


def _answers(inference, source, report):
    for _, found in inference.of_examples(source):
        yield from map(rounded, found)
    note = note_on_unknown(inference.unknown, inference.tokens)
    if note and report is not None:
        report(f"Note: {note}")


def _given(settings, names):
    """The examples that stand in the settings: texts, or tuples of texts."""
    texts = [getattr(settings, name) for name in names]
    return texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))


def rounded(value):
    """JSON-like values with six decimals: float32 knows no more."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, 6) if isinstance(value, float) else value
