"""What a fine-tuned model says about texts."""

from keras_bert.errors import InputError
from keras_bert.input_pipeline.classification import open_examples
from keras_bert.input_pipeline.features import check_max_length
from keras_bert.train.inference import Inference, load_classifier


def predict(
    *,
    model,
    data=None,
    text=None,
    max_length=None,
    batch_size=32,
    text_column=None,
    header=None,
    report=None,
):
    """Yields one dictionary a text, in order: `text`, `label`, `score` and `probabilities`.

    Args:
        model: a `Classifier`, or the folder of one (or of the run that made it).
        data: a file of texts, labelled or not (TSV, JSON Lines, one text a line), or `-` for
            standard input. Where it has labels, they come back as `expected`.
        text: a text, or a list of texts, instead of a file.
        max_length: tokens that a text is cut to; None is the length of training.
        batch_size: texts at a time.
        text_column, header: see `LabelledTexts`.
        report: a function that is told in one line how the file was read.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """
    if (data is None) == (text is None):
        raise InputError("Give either a file of texts or a text, and not both.")
    task = load_classifier(model)
    max_length = check_max_length(max_length, task)
    if data is None:
        examples = open_examples([text] if isinstance(text, str) else list(text))
    else:
        examples = open_examples(
            data,
            text_column=text_column,
            header=header,
            labels=task.labels,
            need_labels=False,
        )
        if report is not None:
            report(examples.description)
    inference = Inference(task, max_length=max_length, batch_size=batch_size)
    return _answers(inference, examples)


def _answers(inference, examples):
    labels = inference.task.labels
    for chunk, probabilities in inference.of_examples(examples):
        for example, row in zip(chunk, probabilities, strict=True):
            best = int(row.argmax())
            answer = {"text": example.text, "label": labels[best], "score": _round(row[best])}
            if example.label is not None:
                answer["expected"] = example.label
            answer["probabilities"] = {
                label: _round(value) for label, value in zip(labels, row, strict=True)
            }
            yield answer


def _round(probability):
    return round(float(probability), 6)  # float32 knows no more of it
