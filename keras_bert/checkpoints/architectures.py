"""Which class of ours a folder's `architectures` entry means, and what it is built from."""

import dataclasses
import importlib

from keras_bert.errors import InputError


@dataclasses.dataclass(frozen=True)
class Architecture:
    """One entry of `architectures` in a `config.json`.

    Attributes:
        task: the class of ours, or None for a bare encoder.
        heads: the attributes under which the task has its heads (keys of `hugging_face.HEADS`).
        pooler: whether the class in `transformers` has a pooler.
        labelled: the task is made with the labels of `id2label`.
        settings: other arguments of the task, kept under `keras_bert` in its `config.json`. They
            are attributes of the task by the same names.
    """

    task: str | None
    heads: tuple[str, ...] = ()
    pooler: bool = True
    labelled: bool = False
    settings: tuple[str, ...] = ()


ARCHITECTURES = {
    "BertModel": Architecture(None),
    "BertForPreTraining": Architecture("Pretrainer", ("masked_lm_head", "next_sentence_head")),
    "BertForMaskedLM": Architecture("FillMask", ("masked_lm_head",), pooler=False),
    "BertForSequenceClassification": Architecture(
        "Classifier", ("classifier",), labelled=True, settings=("max_length",)
    ),
    "RobertaModel": Architecture(None),
    "RobertaForMaskedLM": Architecture("FillMask", ("masked_lm_head",), pooler=False),
}

_HOMES = {
    "Pretrainer": "keras_bert.tasks.pretrainer",
    "FillMask": "keras_bert.tasks.fill_mask",
    "Classifier": "keras_bert.tasks.classifier",
}


def task_class(name):
    """The class of that name, imported now."""
    return getattr(importlib.import_module(_HOMES[name]), name)


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
