"""Metrics of a model on labelled examples, or on the eval split of a data folder."""

import math
import os
from typing import Any

import numpy as np

from keras_bert.base.errors import InputError, warn_user
from keras_bert.base.formatting import listed
from keras_bert.base.settings import reader_settings, takes, takes_of_model
from keras_bert.inference.predict import (
    as_task,
    open_inference,
    open_task,
    rounded,
    with_positional,
)
from keras_bert.inference.settings import (
    EvaluateRecordsSettings,
    EvaluateSettings,
    evaluate_settings,
)
from keras_bert.inputs.batches import without_autograph
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.folders import class_files
from keras_bert.readers.glue import glue_metrics
from keras_bert.readers.labels import unknown_labels_note
from keras_bert.readers.retrieval_folder import is_retrieval_folder
from keras_bert.records import DataFolder
from keras_bert.records.file_formats import is_saved_dataset
from keras_bert.records.shard_reader import damage_is_named, reject_lost_records
from keras_bert.tasks import settings_class
from keras_bert.tasks.findings import counts_by_label
from keras_bert.tasks.outputs import check_finite
from keras_bert.tasks.pretraining.features import check_sequences_fit, evaluation_dataset
from keras_bert.tasks.pretraining.metrics import exact_losses
from keras_bert.tasks.pretraining.pretrainer import FillMask
from keras_bert.tasks.pretraining.records import labels_of
from keras_bert.text.vocabulary import note_on_unknown


@takes_of_model(EvaluateSettings, evaluate_settings(settings_class("classifier")))
def evaluate(model=None, data=None, *, report=None, **settings) -> dict[str, Any]:
    """Returns the official metrics of the task as a dictionary (see its `official_metrics`).

    With `show_errors` it has `errors`, that many wrong predictions, the worst first: dictionaries
    of `line`, the text, `expected`, `predicted` and `score`, for `pandas.DataFrame(…)`. If `data`
    is a DataFrame, they have `row`, the label of its index, in place of `line`. With `glue` it has
    `glue`, GLUE's own metrics of the task under GLUE's names.

    Args:
        **settings: the fields of `EvaluateSettings`, and those of the model's task.
        report: a function that is called with a line on how the file was read, and one per note.

    `model` may also be a task, and `data` a table in memory (a pandas DataFrame, a
    `datasets.Dataset`, a list of dictionaries), a `tf.data.Dataset`, or a sequence (for a
    classifier, of pairs of a text and its label). These are the arguments for a classifier; other
    tasks have their own on how a file is read (see
    `keras_bert.inference.evaluate_settings`).

    A pre-trained model is evaluated on a data folder: `data` is then the folder, and arguments and
    metrics are those of `keras_bert.inference.evaluate.evaluate_records`.

    Raises:
        InputError: on bad input, and if the model has none of the labels.
    """
    settings = with_positional(settings, model=model, data=data)
    if settings.get("glue") is None and is_data_folder(settings.get("data")):
        return evaluate_records(report=report, **settings)
    task, settings = open_task(EvaluateSettings, evaluate_settings, settings)
    source, examples, predictions = predicted_examples(task, settings, report)
    metrics = task.official_metrics(predictions, examples)
    if note := _note_on_absent_labels(metrics, source.name):
        report(f"Note: {note}") if report is not None else warn_user(note)
    if getattr(settings, "glue", None) is not None:
        metrics = {"glue": glue_metrics(settings.glue, metrics), **metrics}
    if settings.show_errors:
        worst = task.errors(predictions, examples)[: settings.show_errors]
        metrics["errors"] = list(map(rounded, worst))
        if hasattr(settings.data, "itertuples"):
            metrics["errors"] = [_with_row(error, source) for error in metrics["errors"]]
    return metrics


def _with_row(error, source):
    """An error with the `row` of a DataFrame, the label of its index, in place of the `line`."""
    return {"row": source.label(error.pop("line")), **error}


def predicted_examples(task, settings, report):
    """-> (the source of the labelled examples of a call, the examples, their predictions).

    Args:
        task: a `Task` or an `ExportedTask`.
        settings: of `evaluate` or `compare`.
        report: called with a line on how the file was read, and one per note; None warns.
    """
    source = task.read(
        settings.data,
        inferred_arguments=task.inferred_arguments,
        schema=task.columns,
        **settings.part(reader_settings(task.SETTINGS)),
    )
    source.keeps_rows = getattr(settings, "output", None) is not None and hasattr(source, "row_of")
    report_source(source, report)
    inference = open_inference(task, settings)
    examples, predictions = [], []
    for chunk, predicted in inference.predict_examples(source):
        examples += chunk
        predictions += predicted
    if not examples:
        raise InputError(f"{source.name} contains no examples.")
    other = task.unknown_labels(examples)
    other = unknown_labels_note(source.name, other) if other else None
    if report is not None:
        unknown = note_on_unknown(inference.unknown, inference.tokens)
        for note in filter(None, (*task.notes(examples), unknown, other)):
            report(f"Note: {note}")
    else:
        report_notes(source, report)
    return source, examples, predictions


def _note_on_absent_labels(metrics, name):
    """A sentence on labels that are predicted and that no example has, or None.

    They lower a macro F1, which another file of the same labels would not have.
    """
    labels, expected, predicted = counts_by_label(metrics)
    absent = [
        f'"{label}"'
        for label, count, wrong in zip(labels, expected, predicted, strict=True)
        if wrong and not count
    ]
    if "macro_f1" not in metrics or not absent:
        return None
    has_or_have, counts = ("has", "counts") if len(absent) == 1 else ("have", "count")
    return (
        f"{name}: {listed(absent)} {has_or_have} no example here, but {has_or_have} predictions, "
        f"and {counts} as an F1 of 0 in macro_f1."
    )


def is_data_folder(data):
    """Whether `data` is a folder, and not one of labelled examples."""
    is_path = isinstance(data, str | os.PathLike) and os.path.isdir(data)
    is_labelled = is_path and (class_files(data) or is_retrieval_folder(data))
    return is_path and not is_saved_dataset(data) and not is_labelled


@takes(EvaluateRecordsSettings)
@without_autograph
def evaluate_records(*, report=None, **settings):
    """Returns the metrics of a pre-trained model on the eval split of a data folder.

    Args:
        **settings: the fields of `EvaluateRecordsSettings`.
        report: a function that is called with a line on what of the model is not evaluated.

    `model` may also be a pre-training task. Examples that were stored without masks are masked as
    `pretrain` masks them for evaluation, so that the metrics are those of its `eval`.

    Returns:
        A dictionary. `objective`, `rows` (the examples) and `predictions` say what was evaluated.
        For masked tokens `masked_lm_loss` (nats per token), `masked_lm_perplexity`,
        `masked_lm_bits_per_character` and `masked_lm_accuracy`; loss and accuracy also for those
        that were hidden (`masked_lm_masked_…`), replaced or kept. For the other heads of the model,
        if the examples have their labels, `span_boundary_…` (the same metrics), and loss and
        accuracy of `next_sentence_…` or `sentence_order_…`. For a causal LM `causal_lm_…`, the same
        metrics over every token and the end of the sequence. `loss` is the weighted sum, as in
        training.

        Characters are counted in the predicted tokens as the vocabulary writes them: lower-cased if
        it is uncased, and without the spaces between words.

    Raises:
        InputError: the model has no masked-LM head, the examples are of another vocabulary or too
            long for it, or there are none in the eval split.
    """
    settings = EvaluateRecordsSettings.of(settings)
    folder = DataFolder.open(settings.data)
    task = as_task(settings.model)
    _check(task, folder, model=settings.model)
    task, full = _for_labels_of(folder, task), task
    left_out = [name for name in full.output if name not in task.output]
    if left_out and report is not None:
        report(
            f"Note: the examples were made for the objective {folder.card.objective}; the model's "
            f"{' and '.join(left_out).replace('_', '-')} is not evaluated."
        )
    task.compile_to_evaluate(again=True)
    dataset = evaluation_dataset(
        folder,
        vocabulary=task.tokenizer.vocabulary,
        batch_size=settings.batch_size,
        batches=settings.batches,
        task=task,
    )
    with damage_is_named(folder):
        logs = task.evaluate(dataset, return_dict=True, verbose=0)
        counts = _count_predictions(dataset, task)
    examples = folder.card.splits["eval"].instances
    if settings.batches is not None:
        examples = min(examples, settings.batches * settings.batch_size)
    metrics = exact_losses(logs, weights=task.default_loss_weights() or {}, penalties=0.0)
    metrics = _with_perplexity(metrics, counts)
    check_finite({name: np.array(value) for name, value in metrics.items()})
    return {
        "objective": folder.card.objective,
        "rows": examples,
        "predictions": next(iter(counts.values()))[0],
        **metrics,
    }


def _check(task, folder, *, model):
    if "data-folders" not in task.OFFERS:
        raise InputError(
            f"{model} contains a model of the task {task.TASK_TYPE}, but a data folder is for "
            "pre-trained models. Pass a file of labelled examples."
        )
    if task.tokenizer is None:
        raise InputError(
            f"{model} has no supported tokenizer, so it cannot be compared with the vocabulary of "
            f"{folder.path}."
        )
    folder.check_vocabulary(task.tokenizer.vocabulary)
    advice = "Make the data with the model's own vocabulary."
    if task.tokenizer.lowercase != folder.card.lowercase:
        raise InputError(
            f"The data in {folder.path} is {'un' if folder.card.lowercase else ''}cased, but the "
            f"model {model} is not. {advice}"
        )
    if task.tokenizer.template != folder.card.template:
        raise InputError(
            f"The examples of {folder.path} have the form {folder.card.template}, but the model "
            f"{model} expects {task.tokenizer.template}. {advice}"
        )
    check_sequences_fit(folder, task.config, type(task), source=model)
    reject_lost_records(folder)
    if not folder.card.splits["eval"].instances:
        raise InputError.naming(
            "{} has no examples in its eval split. Make it with {eval_fraction} above 0.",
            folder.path,
        )


def _for_labels_of(folder, task):
    """The task, or a `FillMask` of it if the examples have no labels for its other head."""
    if set(task.output) <= set(labels_of(folder)):
        return task
    reader = task.reader
    masked_lm = FillMask(task.encoder, task.tokenizer, layers=reader.layers, layer_mix=reader.mix)
    for name, head in masked_lm.heads.items():
        head.set_weights(task.heads[name].get_weights())
    return masked_lm


def _count_predictions(dataset, task):
    """For each output of tokens the number of predictions and of their characters."""
    vocabulary, template = task.tokenizer.vocabulary, task.tokenizer.template
    characters = np.array([len(vocabulary.token_text(id)) for id in range(len(vocabulary))])
    for token in template.special_tokens:  # which have no text
        characters[vocabulary.id(token)] = 0
    counts = {name: np.zeros(2, np.int64) for name in task.TOKEN_OUTPUTS}
    if not counts:  # nats of static vectors, whose tokens are weighted by their contexts
        totals = [sum(weights.values()) for _, _, weights in dataset.as_numpy_iterator()]
        return {name: (int(sum(map(np.sum, totals))), 0) for name in task.output}
    for _, labels, weights in dataset.as_numpy_iterator():
        for name, count in counts.items():
            ids = labels[name][weights[name] > 0]
            count += [len(ids), characters[ids].sum()]
    return {name: tuple(count.tolist()) for name, count in counts.items()}


def _with_perplexity(metrics, counts):
    """The metrics, with perplexity and bits per character after each loss of tokens."""
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
