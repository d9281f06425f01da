"""The kinds of task, each in the folder of its family.

A kind is entered here and nowhere else: whoever trains, loads, exports or lists tasks asks this
table. Looking at it imports no task, so that the command line answers without Keras.
"""

from importlib import import_module
from typing import NamedTuple

from keras_bert.base.errors import InputError


class Kind(NamedTuple):
    """Where the class of a kind is, and its settings, each as "module:Class".

    A kind without settings is not trained on labelled files.
    """

    task: str
    settings: str | None = None


_FAMILIES = "keras_bert.tasks"

KINDS = {
    "pretrainer": Kind(f"{_FAMILIES}.pretraining.pretrainer:Pretrainer"),
    "sentence-order-pretrainer": Kind(
        f"{_FAMILIES}.pretraining.pretrainer:SentenceOrderPretrainer"
    ),
    "fill-mask": Kind(f"{_FAMILIES}.pretraining.fill_mask:FillMask"),
    "span-pretrainer": Kind(f"{_FAMILIES}.pretraining.pretrainer:SpanPretrainer"),
    "causal-lm": Kind(f"{_FAMILIES}.pretraining.causal_lm:CausalLM"),
    "masked-causal-lm": Kind(f"{_FAMILIES}.pretraining.causal_lm:MaskedCausalLM"),
    "classifier": Kind(
        f"{_FAMILIES}.classification.classifier:Classifier",
        settings=f"{_FAMILIES}.classification.settings:ClassifierSettings",
    ),
    "pair-classifier": Kind(
        f"{_FAMILIES}.classification.classifier:PairClassifier",
        settings=f"{_FAMILIES}.classification.settings:PairClassifierSettings",
    ),
    "regression": Kind(
        f"{_FAMILIES}.classification.regressor:Regressor",
        settings=f"{_FAMILIES}.classification.settings:RegressionSettings",
    ),
    "multiple-choice": Kind(
        f"{_FAMILIES}.multiple_choice.multiple_choice:MultipleChoice",
        settings=f"{_FAMILIES}.multiple_choice.settings:MultipleChoiceSettings",
    ),
    "tagger": Kind(
        f"{_FAMILIES}.tagging.tagger:Tagger",
        settings=f"{_FAMILIES}.tagging.settings:TaggerSettings",
    ),
    "question-answering": Kind(
        f"{_FAMILIES}.question_answering.question_answerer:QuestionAnswerer",
        settings=f"{_FAMILIES}.question_answering.settings:QuestionSettings",
    ),
    "span-classifier": Kind(
        f"{_FAMILIES}.span_classification.span_classifier:SpanClassifier",
        settings=f"{_FAMILIES}.span_classification.settings:SpanClassifierSettings",
    ),
    "relation-classifier": Kind(
        f"{_FAMILIES}.span_classification.relation_classifier:RelationClassifier",
        settings=f"{_FAMILIES}.span_classification.settings:RelationClassifierSettings",
    ),
}


def finetuned_kinds():
    """The names of the kinds that are trained on labelled files."""
    return tuple(name for name, kind in KINDS.items() if kind.settings is not None)


def task_class(name):
    """The class of a kind, imported now; `InputError` where there is no such kind."""
    if name not in KINDS:
        raise InputError(f"There is no kind of task {name!r}; known are {', '.join(KINDS)}.")
    return _imported(KINDS[name].task)


def settings_class(name):
    """The settings of a kind that is trained on labelled files; imports no Keras.

    Raises:
        InputError: there is no such kind, or it is not trained on labelled files.
    """
    if name not in finetuned_kinds():
        raise InputError(f"Invalid `task` {name!r}. Choose from: {', '.join(finetuned_kinds())}.")
    return _imported(KINDS[name].settings)


def _imported(home):
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
