"""How good a fine-tuned model is on labelled examples."""

from keras_bert.errors import InputError
from keras_bert.inference.answers import Inference, opened
from keras_bert.inference.settings import EvaluateSettings
from keras_bert.settings import takes


@takes(EvaluateSettings)
def evaluate(*, report=None, **settings):
    """Returns the official figures of the task as a dictionary (see its `measure`).

    Args:
        {settings}
        report: a function that is told in one line how the file was read.

    `model` may also be a task, and `data` a sequence in place of a file (for a classifier, of a
    text and its label each). How a file is read (for a classifier `text_column`, `label_column` and
    `header`) is told by further arguments; they are those settings of the kind of task.

    Raises:
        InputError: on bad input, and on a label that the model does not have.
    """
    task, columns, settings = opened(EvaluateSettings, settings)
    source = task.read(settings.data, made_with=task.made_with, **settings.part(columns))
    if report is not None and source.description:
        report(source.description)
    inference = Inference(task, batch_size=settings.batch_size, max_length=settings.max_length)
    examples, answers = [], []
    for chunk, found in inference.of_examples(source):
        examples += chunk
        answers += found
    if not examples:
        raise InputError(f"{source.name} holds no examples.")
    for note in task.notes(examples) if report is not None else ():
        report(f"Note: {note}")
    return task.measure(answers, examples)
