"""Which class of ours a folder's `architectures` entry means, and what it is built from."""

import dataclasses
import importlib

from keras_bert.errors import InputError


@dataclasses.dataclass(frozen=True)
class Architecture:
    """One entry of `architectures` in a `config.json`.

    Attributes:
        task: the class of ours, or None for a bare encoder.
        heads: the task's heads (keys of `hugging_face.HEADS`).
        pooler: where the class in `transformers` has the encoder's pooler: a key of
            `hugging_face.POOLERS`.
        labelled: the task is made with the labels of `id2label`.
        settings: other arguments of the task, kept under `keras_bert` in its `config.json`. They
            are attributes of the task by the same names.
    """

    task: str | None
    heads: tuple[str, ...] = ()
    pooler: str = "encoder"
    labelled: bool = False
    settings: tuple[str, ...] = ()


ARCHITECTURES = {
    "BertModel": Architecture(None),
    "BertForPreTraining": Architecture("Pretrainer", ("masked_lm_head", "next_sentence_head")),
    "BertForMaskedLM": Architecture("FillMask", ("masked_lm_head",), pooler="none"),
    "BertForSequenceClassification": Architecture(
        "Classifier", ("classifier",), labelled=True, settings=("max_length",)
    ),
    "BertForTokenClassification": Architecture(
        "Tagger", ("classifier",), pooler="none", labelled=True
    ),
    "BertForQuestionAnswering": Architecture("QuestionAnswerer", ("qa_outputs",), pooler="none"),
    "RobertaModel": Architecture(None),
    "RobertaForMaskedLM": Architecture("FillMask", ("masked_lm_head",), pooler="none"),
    "RobertaForSequenceClassification": Architecture(
        "Classifier",
        ("out_proj",),
        pooler="head",
        labelled=True,
        settings=("max_length",),
    ),
    "RobertaForTokenClassification": Architecture(
        "Tagger", ("classifier",), pooler="none", labelled=True
    ),
    "RobertaForQuestionAnswering": Architecture("QuestionAnswerer", ("qa_outputs",), pooler="none"),
}

_HOMES = {
    "Pretrainer": "keras_bert.tasks.pretrainer",
    "FillMask": "keras_bert.tasks.fill_mask",
    "Classifier": "keras_bert.tasks.classifier",
    "Tagger": "keras_bert.tasks.tagger",
    "QuestionAnswerer": "keras_bert.tasks.question_answerer",
}


def task_class(name):
    """The class of that name, imported now."""
    return getattr(importlib.import_module(_HOMES[name]), name)


def name_of(model):
    """The entry for an encoder or a task."""
    name = getattr(model, "ARCHITECTURE", "BertModel")
    return name.replace("Bert", "Roberta", 1) if model.config.model_type == "roberta" else name


def pooler_of(values, *, model_type, source):
    """Where a folder has its pooler, going by its `architectures` (see `Architecture.pooler`).

    Raises:
        InputError: the architecture is one of another model type.
    """
    names = values.get("architectures") or []
    name = names[0] if isinstance(names, list) and names else None
    if not isinstance(name, str) or name not in ARCHITECTURES:
        return "encoder"
    its_type = "roberta" if name.startswith("Roberta") else "bert"
    if its_type != model_type:
        raise InputError(
            f"{source} says that it holds a {name} of the model type {model_type!r}; a {name} has "
            f"the model type {its_type!r}."
        )
    return ARCHITECTURES[name].pooler


def find(values, *, source):
    """-> (name, `Architecture`) that a `config.json` names.

    Args:
        values: the dictionary of the `config.json`.
        source: its path, for messages.

    Raises:
        InputError: it names none, or one that has no task here.
    """
    names = values.get("architectures") or []
    known = ", ".join(name for name, kind in ARCHITECTURES.items() if kind.task)
    if not isinstance(names, list) or not names:
        raise InputError(
            f"{source} does not say what it is: `architectures` should be one of {known}."
        )
    name = str(names[0])
    if name not in ARCHITECTURES or ARCHITECTURES[name].task is None:
        raise InputError(f"{source} holds a {name}, which is no task here; known are {known}.")
    return name, ARCHITECTURES[name]
