"""What a `config.json` says of its folder: the class of `transformers`, and our kind of task."""

import dataclasses

from keras_bert.checkpoints import labels as labels_format
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
_SEQUENCE = {**_CLASSIFIER, "scorer": "scorer"}
_CHOICE = {"classifier": "choice_classifier"}
_QA = {"qa_outputs": "qa_outputs"}

ARCHITECTURES = {
    "BertModel": Architecture(),
    "BertForPreTraining": Architecture(
        {**_MASKED_LM, "next_sentence_head": "next_sentence_head"}, kind="pretrainer"
    ),
    "BertForMaskedLM": Architecture(_MASKED_LM, pooler="none", kind="fill-mask"),
    "BertLMHeadModel": Architecture(_MASKED_LM, pooler="none", kind="causal-lm"),
    "BertForSequenceClassification": Architecture(_SEQUENCE, kind="classifier"),
    "BertForMultipleChoice": Architecture(_CHOICE, kind="multiple-choice"),
    "BertForTokenClassification": Architecture(_CLASSIFIER, pooler="none", kind="tagger"),
    "BertForQuestionAnswering": Architecture(_QA, pooler="none", kind="question-answering"),
    "RobertaModel": Architecture(),
    "RobertaForMaskedLM": Architecture(_MASKED_LM, pooler="none", kind="fill-mask"),
    "RobertaForSequenceClassification": Architecture(
        {"classifier": "out_proj", "scorer": "scorer_out_proj"}, pooler="head", kind="classifier"
    ),
    "RobertaForMultipleChoice": Architecture(_CHOICE, kind="multiple-choice"),
    "RobertaForTokenClassification": Architecture(_CLASSIFIER, pooler="none", kind="tagger"),
    "RobertaForQuestionAnswering": Architecture(_QA, pooler="none", kind="question-answering"),
}


def name_of(model):
    """The architecture of an encoder or a task."""
    name = getattr(model, "ARCHITECTURE", "BertModel")
    return name.replace("Bert", "Roberta", 1) if model.config.model_type == "roberta" else name


def class_of(values):
    """The class that a `config.json` names first, whatever it is; None where it names none."""
    names = values.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else None


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
    name = class_of(values)
    if name not in ARCHITECTURES:
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
    name = class_of(values)
    known = ", ".join(name for name, of in ARCHITECTURES.items() if of.kind)
    if name is None:
        raise InputError(
            f"{source} does not say what it is: `architectures` should be a list with one of "
            f"{known}."
        )
    kind = stored(values, source=source).get("task")
    if kind is not None:
        try:
            found = task_class(str(kind))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        held = stored(values, source=source)
        settings = {name: held[name] for name in found.stored_settings() if name in held}
        its_own = found.architecture(**settings)
        if name in (its_own, its_own.replace("Bert", "Roberta", 1)):
            return found
    if name not in ARCHITECTURES:
        raise InputError(f"{source} holds a {name}, which is no task here; known are {known}.")
    if ARCHITECTURES[name].kind is None:
        raise InputError(
            f"{source} holds a {name}, which is no task here but an encoder alone; fine-tune it "
            "first."
        )
    kind = ARCHITECTURES[name].kind
    if name.endswith("ForSequenceClassification") and _scores(values, source=source):
        kind = "regression"
    return task_class(kind)


def _scores(values, *, source):
    """Whether a class of sequence classification gives a score, as `transformers` tells it.

    Raises:
        InputError: it gives several.
    """
    count = len(labels_format.from_config(values, source=source))
    if count > 1 and values.get("problem_type") == "regression":
        raise InputError(
            f"{source} holds a regression to {count} numbers; one is what is read here."
        )
    return count == 1
