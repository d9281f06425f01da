"""How good a fine-tuned model is on labelled texts."""

import numpy as np

from keras_bert.errors import InputError
from keras_bert.input_pipeline.classification import label_numbers, open_examples
from keras_bert.input_pipeline.features import check_max_length
from keras_bert.train.classification_metrics import classification_metrics
from keras_bert.train.inference import Inference, load_classifier


def evaluate(
    *,
    model,
    data,
    max_length=None,
    batch_size=32,
    text_column=None,
    label_column=None,
    header=None,
    report=None,
):
    """Returns the official measures as a dictionary (see `classification_metrics`).

    Args:
        model: a `Classifier`, or the folder of one (or of the run that made it).
        data: a labelled file (TSV or JSON Lines), `-` for standard input, or pairs of a text and
            its label.
        max_length: tokens that a text is cut to; None is the length of training.
        batch_size: texts at a time.
        text_column, label_column, header: see `LabelledTexts`.
        report: a function that is told in one line how the file was read.

    Raises:
        InputError: on bad input, and on a label that the model does not have.
    """
    task = load_classifier(model)
    max_length = check_max_length(max_length, task)
    examples = open_examples(
        data,
        text_column=text_column,
        label_column=label_column,
        header=header,
        labels=task.labels,
    )
    if report is not None and examples.kind != "given":
        report(examples.description)
    expected, probabilities = [], []
    inference = Inference(task, max_length=max_length, batch_size=batch_size)
    for chunk, rows in inference.of_examples(examples):
        expected.append(label_numbers(chunk, task.labels, source=examples))
        probabilities.append(rows)
    if not expected:
        raise InputError(f"{examples.name} holds no examples.")
    return classification_metrics(
        np.concatenate(expected), np.concatenate(probabilities), labels=task.labels
    )
