"""How good a model is: on labelled examples, or on the held-out rows of a data folder."""

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.settings import reading, takes
from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.inference.answers import Inference, check_numbers, opened
from keras_bert.inference.settings import (
    EvaluateRecordsSettings,
    EvaluateSettings,
    evaluate_settings,
)
from keras_bert.readers.glue import glue_metrics
from keras_bert.records import DataFolder
from keras_bert.records.examples import damage_is_named, reject_lost_records
from keras_bert.tasks import settings_class
from keras_bert.tasks.pretraining.features import check_sequences_fit, evaluation_dataset, labels_of
from keras_bert.tasks.pretraining.fill_mask import FillMask
from keras_bert.tasks.pretraining.metrics import exact_losses
from keras_bert.tasks.pretraining.pretraining_task import PretrainingTask
from keras_bert.tasks.task import Task
from keras_bert.text.tokenizer import note_on_unknown


@takes(EvaluateRecordsSettings)
@tf.autograph.experimental.do_not_convert  # it writes Python files into the temporary folder
def evaluate_records(*, report=None, **settings):
    """Returns the figures of a pre-trained model on the eval split of a data folder.

    Args:
        {settings}
        report: a function that is told in a line what of the model is not measured.

    `model` may also be a pre-training task. Rows that were stored without masks are masked as
    `pretrain` masks them to evaluate, so that the figures are those of its `eval`.

    Returns:
        A dictionary. `objective`, `rows`, `predictions` say what was measured. Of masked tokens
        `masked_lm_loss` (nats a token), `masked_lm_perplexity`, `masked_lm_bits_per_character` and
        `masked_lm_accuracy`; loss and accuracy also of those that were hidden
        (`masked_lm_masked_…`), replaced or kept. Of the other heads of the model, as far as the
        rows have their labels, `span_boundary_…` (the same figures), and loss and accuracy of
        `next_sentence_…` or `sentence_order_…`. Of a causal LM `causal_lm_…` are the same figures
        as of masked tokens, over every token and the end of the row. `loss` is the weighted sum, as
        in training.

        Characters are those of the predicted pieces as the vocabulary writes them: after
        lower-casing, without the spaces between words, which no piece stands for.

    Raises:
        InputError: the model has no masked-LM head, the rows are of another vocabulary or too long
            for it, or there are no eval rows.
    """
    settings = EvaluateRecordsSettings.of(settings)
    folder = DataFolder.open(settings.data)
    task = _opened(settings.model)
    _check(task, folder, source=settings.model)
    measured = _for_records(task, folder)
    left_out = [name for name in task.output if name not in measured.output]
    if left_out and report is not None:
        report(
            f"Note: the rows were made for the objective {folder.card.objective}; of the model, "
            f"{' and '.join(left_out).replace('_', '-')} is not measured."
        )
    measured.compile_defaults("sgd")
    dataset = evaluation_dataset(
        folder,
        vocabulary=measured.tokenizer.vocabulary,
        batch_size=settings.batch_size,
        batches=settings.batches,
        task=measured,
    )
    with damage_is_named(folder):
        logs = measured.evaluate(dataset, return_dict=True, verbose=0)
        counts = _counted(dataset, measured)
    rows = folder.card.splits["eval"].instances
    if settings.batches is not None:
        rows = min(rows, settings.batches * settings.batch_size)
    metrics = exact_losses(logs, weights=measured.default_loss_weights() or {}, penalties=0.0)
    metrics = _with_perplexity(metrics, counts)
    check_numbers({name: np.array(value) for name, value in metrics.items()})
    return {
        "objective": folder.card.objective,
        "rows": rows,
        "predictions": counts[measured.TOKEN_OUTPUTS[0]][0],
        **metrics,
    }


def is_data_folder(data):
    """Whether what was given as data is a folder, and so no file of labelled examples."""
    return isinstance(data, str | os.PathLike) and os.path.isdir(data)


def _opened(model):
    task = model if isinstance(model, Task) else load_task(find_model_folder(model))
    if not isinstance(task, PretrainingTask):
        raise InputError(
            f"{model} holds a model of the task {task.KIND}, and a data folder measures what was "
            "pre-trained; give a file of labelled examples."
        )
    return task


def _check(task, folder, *, source):
    if task.tokenizer is None:
        raise InputError(f"{source} has no tokenizer of ours, so rows of ours are not for it.")
    folder.check_vocabulary(task.tokenizer.vocabulary)
    if task.tokenizer.lowercase != folder.card.lowercase:
        raise InputError(
            f"The rows of {folder.path} are {'un' if folder.card.lowercase else ''}cased, and the "
            f"model in {source} is not; make rows with the model's own vocabulary."
        )
    if task.tokenizer.template != folder.card.template:
        raise InputError(
            f"The rows of {folder.path} are framed as {folder.card.template}, and the model in "
            f"{source} reads {task.tokenizer.template}; make rows with the model's own vocabulary."
        )
    check_sequences_fit(folder, task.config, source=source)
    reject_lost_records(folder)
    if not folder.card.splits["eval"].instances:
        raise InputError(
            f"{folder.path} has no eval rows to measure on; make rows with `eval_fraction` above 0."
        )


def _for_records(task, folder):
    """The task, or a `FillMask` of it where the rows have no labels for its other head."""
    if set(task.output) <= set(labels_of(folder)):
        return task
    masked_lm = FillMask(task.encoder, task.tokenizer, layer_mix=task.layer_mix, bilstm=task.bilstm)
    for head in masked_lm.heads:
        getattr(masked_lm, head).set_weights(getattr(task, head).get_weights())
    return masked_lm


def _counted(dataset, task):
    """-> for each output of tokens, how many predictions count and their characters."""
    vocabulary, template = task.tokenizer.vocabulary, task.tokenizer.template
    characters = np.array([len(vocabulary.token_text(id)) for id in range(len(vocabulary))])
    for token in template.special_tokens:  # which stand for none
        characters[vocabulary.id(token)] = 0
    counts = {name: np.zeros(2, np.int64) for name in task.TOKEN_OUTPUTS}
    for _, labels, weights in dataset.as_numpy_iterator():
        for name, count in counts.items():
            ids = labels[name][weights[name] > 0]
            count += [len(ids), characters[ids].sum()]
    return {name: tuple(count.tolist()) for name, count in counts.items()}


def _with_perplexity(metrics, counts):
    """The figures, with perplexity and bits a character beside each loss of tokens."""
    result = {}
    for name, value in sorted(metrics.items()):
        result[name] = value
        output = name.removesuffix("_loss")
        predictions, characters = counts.get(output, (0, 0))
        if characters:
            bits = value / math.log(2) * predictions / characters
            result[f"{output}_perplexity"] = round(float(np.exp(value)), 6)
            result[f"{output}_bits_per_character"] = round(bits, 6)
    return result


@takes(evaluate_settings(settings_class("classifier")))
def evaluate(*, report: Callable[[str], None] | None = None, **settings) -> dict[str, Any]:
    """Returns the official figures of the task as a dictionary (see its `official_metrics`).

    With `show_errors`, `errors` is among them: descriptions of so many wrong answers, the
    worst first.
    With `glue`, `glue` is the first: GLUE's own figures of the task, by the names that GLUE has.

    Args:
        {settings}
        report: a function that is told in one line how the file was read.

    `model` may also be a task, and `data` a sequence in place of a file (for a classifier, of a
    text and its label each). These are the arguments for a classifier; how the file of another kind
    of task is read is told by its own (`keras_bert.inference.settings.evaluate_settings`).

    A pre-trained model is measured on a data folder: `data` is then the folder, and the arguments
    and figures are those of `keras_bert.inference.evaluate.evaluate_records`.

    Raises:
        InputError: on bad input, and on a label that the model does not have.
    """
    if settings.get("glue") is None and is_data_folder(settings.get("data")):
        return evaluate_records(report=report, **settings)
    task, settings = opened(EvaluateSettings, evaluate_settings, settings)
    columns = settings.part(reading(task.SETTINGS))
    source = task.read(settings.data, inferred_arguments=task.inferred_arguments, **columns)
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
    measures = task.official_metrics(answers, examples)
    if getattr(settings, "glue", None) is not None:
        measures = {"glue": glue_metrics(settings.glue, measures), **measures}
    if settings.show_errors:
        worst = sorted(task.errors(answers, examples), key=lambda found: -found[0])
        measures["errors"] = [text for _, text in worst[: settings.show_errors]]
    return measures
