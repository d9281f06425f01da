"""How good a fine-tuned model is on labelled examples."""

from collections.abc import Callable
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.settings import reading, takes
from keras_bert.inference.answers import Inference, opened
from keras_bert.inference.evaluate_rows import evaluate_rows, is_data_folder
from keras_bert.inference.settings import EvaluateSettings, evaluate_settings
from keras_bert.readers.glue import glue_figures
from keras_bert.tasks import settings_class
from keras_bert.text.unknown import note_on_unknown


@takes(evaluate_settings(settings_class("classifier")))
def evaluate(*, report: Callable[[str], None] | None = None, **settings) -> dict[str, Any]:
    """Returns the official figures of the task as a dictionary (see its `measure`).

    With `errors`, `mistakes` is among them: descriptions of so many wrong answers, the worst first.
    With `glue`, `glue` is the first: GLUE's own figures of the task, by the names that GLUE has.

    Args:
        {settings}
        report: a function that is told in one line how the file was read.

    `model` may also be a task, and `data` a sequence in place of a file (for a classifier, of a
    text and its label each). These are the arguments for a classifier; how the file of another kind
    of task is read is told by its own (`keras_bert.inference.settings.evaluate_settings`).

    A pre-trained model is measured on a data folder: `data` is then the folder, and the arguments
    and figures are those of `keras_bert.inference.evaluate_rows.evaluate_rows`.

    Raises:
        InputError: on bad input, and on a label that the model does not have.
    """
    if settings.get("glue") is None and is_data_folder(settings.get("data")):
        return evaluate_rows(report=report, **settings)
    task, settings = opened(EvaluateSettings, evaluate_settings, settings)
    columns = settings.part(reading(task.SETTINGS))
    source = task.read(settings.data, made_with=task.made_with, **columns)
    if report is not None and source.description:
        report(source.description)
    inference = Inference(task, batch_size=settings.batch_size, max_length=settings.max_length)
    examples, answers = [], []
    for chunk, found in inference.of_examples(source):
        examples += chunk
        answers += found
    if not examples:
        raise InputError(f"{source.name} holds no examples.")
    unknown = note_on_unknown(inference.unknown, inference.tokens)
    for note in (*task.notes(examples), unknown) if report is not None else ():
        if note:
            report(f"Note: {note}")
    measures = task.measure(answers, examples)
    if getattr(settings, "glue", None) is not None:
        measures = {"glue": glue_figures(settings.glue, measures), **measures}
    if settings.errors:
        worst = sorted(task.mistakes(answers, examples), key=lambda found: -found[0])
        measures["mistakes"] = [text for _, text in worst[: settings.errors]]
    return measures
