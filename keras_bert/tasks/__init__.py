"""The task types, and the settings that all of them share, without Keras.

`TASKS` is their only registry. The settings of a task type are in the package of its family.
"""

import dataclasses
import difflib
import inspect
import typing
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import (
    Settings,
    about,
    advanced_setting,
    described,
    optimisation_setting,
    setting,
)


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
    "replaced-token-pretrainer": _task_type("pretraining.replaced_tokens:ReplacedTokenPretrainer"),
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
    "text-embedding": _task_type(
        "text_embedding.text_embedder:TextEmbedder", "TextEmbeddingSettings"
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
    "embedding": "text-embedding",
    "sentence-similarity": "text-embedding",
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


MAX_LENGTH = 128
# Defaults of fine-tuning; `keras_bert.tasks.training_defaults` has those of the learning rate.
WARMUP, WEIGHT_DECAY = 0.1, 0.01


def max_length_setting(default, *, at_least, help):
    """The setting for the length of a sequence; `help` says what it contains."""
    return setting(
        None,
        help=f"maximum tokens per sequence{help}",
        unit="TOKENS",
        default_help=f"{default}, or the positions of the model if it has fewer",
        at_least=at_least,
        stored=True,
        common=True,
    )


def dropout_setting(default_help):
    """The setting for the dropout rate of the head's input."""
    return optimisation_setting(
        None,
        help="dropout rate of the head's input",
        unit="RATE",
        default_help=default_help,
        at_least=0,
        below=1,
        common=True,
    )


class TaskSettings(Settings):
    """Settings of a task type, in addition to those of the training run.

    A model folder stores the `stored` ones; those with `reads` control how a file is read (with
    both, a model's own value counts). A task is made with all but those that are `reads` alone (see
    `argument_fields`), and holds an instance in which these have their defaults.
    EXAMPLE_FIELDS names the parts of an example that is given instead of a file: `read` takes a
    sequence of texts or, with several names, of tuples. MAX_LENGTH is the default of `max_length`,
    at most the positions of the model.
    """

    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text",)
    MAX_LENGTH: typing.ClassVar[int] = MAX_LENGTH

    max_length: int | None = max_length_setting(
        MAX_LENGTH, at_least=3, help=", including [CLS] and [SEP]"
    )
    dropout: float | None = dropout_setting("from the model's config")
    bilstm: int | None = advanced_setting(
        None,
        help="units per direction of a two-layer bidirectional LSTM over the encoder",
        unit="UNITS",
        default_help="none",
        at_least=1,
        stored=True,
        common=True,
    )
    lm_loss_weight: float = advanced_setting(
        0.0,
        help="with a causal encoder, weight of an additional next-token loss on the same texts "
        "(0.5 in OpenAI GPT)",
        unit="WEIGHT",
        at_least=0,
    )


def argument_fields(settings):
    """The fields of a settings class that a task is made with, by name: not those of a reader."""
    return {
        field.name: field
        for field in dataclasses.fields(settings)
        if about(field).stored or not about(field).reads
    }


def made_with(settings, arguments):
    """The settings of a class from a task's arguments by name; InputError for unknown ones."""
    names = argument_fields(settings)
    for name in arguments:
        if name in settings.names() and name not in names:
            raise InputError.naming(
                "{} says how a file is read. Pass it with the file, as to `task.dataset`.",
                argument(name),
            )
    return settings.of(arguments)


def show_arguments(cls):
    """Gives a class of task the signature of its constructor and its settings in `help`.

    They are the parameters of its constructor and of those of its bases, and the `argument_fields`
    of its SETTINGS.
    """
    parameters, later = {}, {}
    for base in reversed(cls.__mro__):
        if "__init__" in vars(base) and base.__module__.split(".")[0] not in ("keras", "builtins"):
            arguments = inspect.signature(base.__init__).parameters
            parameters = {**parameters, **arguments} if "settings" in arguments else dict(arguments)
    for name in ("self", "settings", *(() if cls.MIN_LABELS else ("labels",))):
        parameters.pop(name, None)
    for name in ("layers", "layer_mix", "static_vectors", "name"):
        if name in parameters:
            later[name] = parameters.pop(name)
    if cls.MIN_LABELS:
        parameters["labels"] = parameters["labels"].replace(
            default=inspect.Parameter.empty, annotation=Sequence[str]
        )
    fields = argument_fields(cls.SETTINGS)
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING
        parameters[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else field.default,
            annotation=field.type,
        )
    cls.__signature__ = inspect.Signature([*parameters.values(), *later.values()])
    if cls.__doc__ is not None and fields:  # python -OO leaves docstrings out
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\nSettings:\n{described(fields.values())}"
