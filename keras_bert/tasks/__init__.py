"""The task types. `TASKS` is their only registry; importing it loads neither tasks nor Keras."""

import difflib
from importlib import import_module
from typing import NamedTuple

from keras_bert.base.errors import InputError


class TaskType(NamedTuple):
    """The class of a task type and of its settings, each as "module:Class".

    A task type without settings is not trained on labelled files.
    """

    task: str
    settings: str | None = None


def _task_type(task, settings=None):
    """The `TaskType` of "family.module:Class" and of a settings class in the family's package."""
    family = f"{__name__}.{task.partition('.')[0]}"
    return TaskType(f"{__name__}.{task}", settings and f"{family}:{settings}")


TASKS = {
    "pretrainer": _task_type("pretraining.pretrainer:Pretrainer"),
    "sentence-order-pretrainer": _task_type("pretraining.pretrainer:SentenceOrderPretrainer"),
    "fill-mask": _task_type("pretraining.pretrainer:FillMask"),
    "span-pretrainer": _task_type("pretraining.pretrainer:SpanPretrainer"),
    "causal-lm": _task_type("pretraining.language_models:CausalLM"),
    "masked-causal-lm": _task_type("pretraining.language_models:MaskedCausalLM"),
    "bidirectional-lm": _task_type("pretraining.language_models:BidirectionalLM"),
    "skip-gram": _task_type("pretraining.static_vectors:SkipGram"),
    "cbow": _task_type("pretraining.static_vectors:Cbow"),
    "classifier": _task_type("classification.classifier:Classifier", "ClassifierSettings"),
    "pair-classifier": _task_type(
        "classification.classifier:PairClassifier", "PairClassifierSettings"
    ),
    "regression": _task_type("classification.regressor:Regressor", "RegressionSettings"),
    "multiple-choice": _task_type(
        "multiple_choice.multiple_choice:MultipleChoice", "MultipleChoiceSettings"
    ),
    "tagger": _task_type("tagging.tagger:Tagger", "TaggerSettings"),
    "semantic-roles": _task_type(
        "tagging.semantic_role_tagger:SemanticRoleTagger", "SemanticRoleSettings"
    ),
    "question-answering": _task_type(
        "question_answering.question_answerer:QuestionAnswerer", "QuestionSettings"
    ),
    "span-classifier": _task_type(
        "span_classification.span_classifier:SpanClassifier", "SpanClassifierSettings"
    ),
    "relation-classifier": _task_type(
        "span_classification.relation_classifier:RelationClassifier", "RelationClassifierSettings"
    ),
    "coreference": _task_type(
        "coreference.coreference_resolver:CoreferenceResolver", "CoreferenceSettings"
    ),
}

# Other names of task types -> the name.
_ALIASES = {
    "classification": "classifier",
    "text-classification": "classifier",
    "pair": "pair-classifier",
    "regressor": "regression",
    "choice": "multiple-choice",
    "ner": "tagger",
    "pos": "tagger",
    "tagging": "tagger",
    "token-classification": "tagger",
    "srl": "semantic-roles",
    "semantic-role-labeling": "semantic-roles",
    "qa": "question-answering",
    "squad": "question-answering",
    "span": "span-classifier",
    "spans": "span-classifier",
    "coref": "coreference",
    "relation": "relation-classifier",
    "relations": "relation-classifier",
}


def task_type_named(name):
    """The task type that somebody calls so, among those trained on labelled files.

    Raises:
        InputError: it is not among them; the nearest name is suggested.
    """
    names = finetuned_task_types()
    task_type = _ALIASES.get(name, name)
    if task_type not in names:
        close = difflib.get_close_matches(str(name), [*names, *_ALIASES], n=1)
        hint = f" Did you mean {_ALIASES.get(close[0], close[0])}?" if close else ""
        raise InputError.naming(
            "Invalid {task} {!r}. Choose from: {}.{}", name, ", ".join(names), hint
        )
    return task_type


def finetuned_task_types():
    """The names of the task types that are trained on labelled files."""
    return tuple(name for name, task_type in TASKS.items() if task_type.settings is not None)


def task_class(name):
    """The class of a task type, or of what people call it, imported now.

    Raises InputError if there is no such task type.
    """
    name = _ALIASES.get(name, name)
    if name not in TASKS:
        raise InputError(f"Unknown task {name!r}. Choose from: {', '.join(TASKS)}.")
    return imported(TASKS[name].task)


def settings_class(name):
    """The settings class of a task type, or of what people call it; imports no Keras.

    Raises InputError if there is no such task type or it is not trained on labelled files.
    """
    name = _ALIASES.get(name, name)
    if name not in finetuned_task_types():
        raise InputError(
            f"The task {name!r} cannot be trained on labelled files. Choose from: "
            f"{', '.join(finetuned_task_types())}."
        )
    return imported(TASKS[name].settings)


def imported(home):
    """Imports and returns the object that "module:name" names."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
