"""What a fine-tuned model says about examples."""

from keras_bert.inference.answers import Inference, opened
from keras_bert.inference.settings import PredictSettings
from keras_bert.settings import takes


@takes(PredictSettings)
def predict(*, report=None, **settings):
    """Yields one dictionary an example, in order (see the task's `decode`).

    Where a file has labels, they come back as `expected`.

    Args:
        {settings}
        report: a function that is told in one line how the file was read.

    `model` may also be a task, and `data` a sequence in place of a file. How a file is read is told
    by further arguments, those settings of the kind of task.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """
    if isinstance(settings.get("text"), str):
        settings["text"] = [settings["text"]]
    task, columns, settings = opened(PredictSettings, settings)
    source = task.read(
        settings.text if settings.data is None else settings.data,
        made_with=task.made_with,
        labelled=False,
        **settings.part(columns),
    )
    if report is not None and source.description:
        report(source.description)
    inference = Inference(task, batch_size=settings.batch_size, max_length=settings.max_length)
    return (rounded(answer) for _, found in inference.of_examples(source) for answer in found)


def rounded(value):
    """JSON-like values with six decimals: float32 knows no more."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, 6) if isinstance(value, float) else value
