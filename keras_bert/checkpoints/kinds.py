"""What a `config.json` says of its folder: the class of `transformers`, and our kind of task."""

import dataclasses

from keras_bert.errors import InputError
from keras_bert.tasks import task_class

# In our config.json, and in no other program's: our version, and what a task is made with that
# Hugging Face has no key for. A folder that has it is known for one of ours.
MARK = "keras_bert"


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A class of `transformers`.

    Attributes:
        heads: our heads that it has, attribute of the task -> key of `hugging_face.HEADS`.
        pooler: where it has the encoder's pooler: a key of `hugging_face.POOLERS`.
        kind: what a folder of it is that does not say its kind: one of another program's, or of an
            earlier version of ours. None is a bare encoder.
    """

    heads: dict[str, str] = dataclasses.field(default_factory=dict)
    pooler: str = "encoder"
    kind: str | None = None


_MASKED_LM = {"masked_lm_head": "masked_lm_head"}
_CLASSIFIER = {"classifier": "classifier"}
_QA = {"qa_outputs": "qa_outputs"}

ARCHITECTURES = {
    "BertModel": Architecture(),
    "BertForPreTraining": Architecture(
        {**_MASKED_LM, "next_sentence_head": "next_sentence_head"}, kind="pretrainer"
    ),
    "BertForMaskedLM": Architecture(_MASKED_LM, pooler="none", kind="fill-mask"),
    "BertForSequenceClassification": Architecture(_CLASSIFIER, kind="classifier"),
    "BertForTokenClassification": Architecture(_CLASSIFIER, pooler="none", kind="tagger"),
    "BertForQuestionAnswering": Architecture(_QA, pooler="none", kind="question-answering"),
    "RobertaModel": Architecture(),
    "RobertaForMaskedLM": Architecture(_MASKED_LM, pooler="none", kind="fill-mask"),
    "RobertaForSequenceClassification": Architecture(
        {"classifier": "out_proj"}, pooler="head", kind="classifier"
    ),
    "RobertaForTokenClassification": Architecture(_CLASSIFIER, pooler="none", kind="tagger"),
    "RobertaForQuestionAnswering": Architecture(_QA, pooler="none", kind="question-answering"),
}


def name_of(model):
    """The architecture of an encoder or a task."""
    name = getattr(model, "ARCHITECTURE", "BertModel")
    return name.replace("Bert", "Roberta", 1) if model.config.model_type == "roberta" else name


def stored(values, *, source):
    """What our own key in a `config.json` holds."""
    found = values.get(MARK, {})
    if not isinstance(found, dict):
        raise InputError(f"{source}: {MARK} should be an object.")
    return found


def architecture_of(values, *, model_type, source):
    """The `Architecture` that a `config.json` names; a bare one where it names none of those here.

    Raises:
        InputError: the architecture is one of another model type.
    """
    names = values.get("architectures") or []
    name = names[0] if isinstance(names, list) and names else None
    if not isinstance(name, str) or name not in ARCHITECTURES:
        return ARCHITECTURES["BertModel"]
    its_type = "roberta" if name.startswith("Roberta") else "bert"
    if its_type != model_type:
        raise InputError(
            f"{source} says that it holds a {name} of the model type {model_type!r}; a {name} has "
            f"the model type {its_type!r}."
        )
    return ARCHITECTURES[name]


def task_of(values, *, source):
    """The class of the task that a `config.json` describes.

    Our own key says which of several kinds that one class of `transformers` serves; what another
    program has made another class of since is what its class says.

    Raises:
        InputError: it names no class, or one that is no task here.
    """
    names = values.get("architectures") or []
    known = ", ".join(name for name, of in ARCHITECTURES.items() if of.kind)
    if not isinstance(names, list) or not names:
        raise InputError(
            f"{source} does not say what it is: `architectures` should be one of {known}."
        )
    name = str(names[0])
    kind = stored(values, source=source).get("task")
    if kind is not None:
        try:
            found = task_class(str(kind))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        if name in (found.ARCHITECTURE, found.ARCHITECTURE.replace("Bert", "Roberta", 1)):
            return found
    if name not in ARCHITECTURES or ARCHITECTURES[name].kind is None:
        raise InputError(f"{source} holds a {name}, which is no task here; known are {known}.")
    return task_class(ARCHITECTURES[name].kind)
