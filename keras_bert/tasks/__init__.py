"""The kinds of task. `KINDS` is their only registry; importing it loads neither tasks nor Keras."""

import difflib
from importlib import import_module
from typing import NamedTuple

from keras_bert.base.errors import InputError


class Kind(NamedTuple):
    """The class of a kind and of its settings, each as "module:Class".

    A kind without settings is not trained on labelled files.
    """

    task: str
    settings: str | None = None


def _kind(task, settings=None):
    """The `Kind` of a task, "module:Class" of this package, and of a class of `tasks.settings`."""
    return Kind(f"keras_bert.tasks.{task}", settings and f"keras_bert.tasks.settings:{settings}")


KINDS = {
    "pretrainer": _kind("pretraining.pretrainer:Pretrainer"),
    "sentence-order-pretrainer": _kind("pretraining.pretrainer:SentenceOrderPretrainer"),
    "fill-mask": _kind("pretraining.pretrainer:FillMask"),
    "span-pretrainer": _kind("pretraining.pretrainer:SpanPretrainer"),
    "causal-lm": _kind("pretraining.language_models:CausalLM"),
    "masked-causal-lm": _kind("pretraining.language_models:MaskedCausalLM"),
    "bidirectional-lm": _kind("pretraining.language_models:BidirectionalLM"),
    "skip-gram": _kind("pretraining.static_vectors:SkipGram"),
    "cbow": _kind("pretraining.static_vectors:Cbow"),
    "classifier": _kind("classification.classifier:Classifier", "ClassifierSettings"),
    "pair-classifier": _kind("classification.classifier:PairClassifier", "PairClassifierSettings"),
    "regression": _kind("classification.regressor:Regressor", "RegressionSettings"),
    "multiple-choice": _kind(
        "multiple_choice.multiple_choice:MultipleChoice", "MultipleChoiceSettings"
    ),
    "tagger": _kind("tagging.tagger:Tagger", "TaggerSettings"),
    "semantic-roles": _kind(
        "semantic_roles.semantic_role_tagger:SemanticRoleTagger", "SemanticRoleSettings"
    ),
    "question-answering": _kind(
        "question_answering.question_answerer:QuestionAnswerer", "QuestionSettings"
    ),
    "span-classifier": _kind(
        "span_classification.span_classifier:SpanClassifier", "SpanClassifierSettings"
    ),
    "relation-classifier": _kind(
        "span_classification.relation_classifier:RelationClassifier", "RelationClassifierSettings"
    ),
    "coreference": _kind(
        "coreference.coreference_resolver:CoreferenceResolver", "CoreferenceSettings"
    ),
}

# What people call a kind -> its name.
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


def kind_named(name):
    """The kind of task that somebody calls so, among those trained on labelled files.

    Raises:
        InputError: it is not among them; the nearest name is suggested.
    """
    known = finetuned_kinds()
    kind = _ALIASES.get(name, name)
    if kind not in known:
        close = difflib.get_close_matches(str(name), [*known, *_ALIASES], n=1)
        hint = f" Did you mean {_ALIASES.get(close[0], close[0])}?" if close else ""
        raise InputError(f"Invalid `task` {name!r}. Choose from: {', '.join(known)}.{hint}")
    return kind


def finetuned_kinds():
    """The names of the kinds that are trained on labelled files."""
    return tuple(name for name, kind in KINDS.items() if kind.settings is not None)


def task_class(name):
    """The class of a kind, or of what people call it, imported now.

    Raises InputError if there is no such kind.
    """
    name = _ALIASES.get(name, name)
    if name not in KINDS:
        raise InputError(f"Unknown task {name!r}. Choose from: {', '.join(KINDS)}.")
    return _imported(KINDS[name].task)


def settings_class(name):
    """The settings class of a kind, or of what people call it; imports no Keras.

    Raises InputError if there is no such kind or it is not trained on labelled files.
    """
    name = _ALIASES.get(name, name)
    if name not in finetuned_kinds():
        raise InputError(
            f"The task {name!r} cannot be trained on labelled files. Choose from: "
            f"{', '.join(finetuned_kinds())}."
        )
    return _imported(KINDS[name].settings)


def _imported(home):
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
