"""Labels or a score for a text or a pair of texts; the settings of these tasks."""

import typing
from collections.abc import Sequence

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import model_setting, setting
from keras_bert.readers import (
    TableSettings,
    TextFileSettings,
    column_setting,
    fields_setting,
    glue_setting,
    unknown_labels_setting,
)
from keras_bert.tasks import TaskSettings

# As `keras_bert.heads.pooling.POOLINGS`, whose import would load Keras.
POOLINGS = ("cls", "mean", "both", "last", "max", "last+max+mean")
# The metrics that may select the best epoch.
SINGLE_LABEL_METRICS = ("accuracy", "macro_f1", "micro_f1", "matthews", "f1", "accuracy_and_f1")
MULTI_LABEL_METRICS = ("micro_f1", "macro_f1", "subset_accuracy")
SCORE_METRICS = ("pearson", "spearman", "pearson_and_spearman")
LIST_METRICS = ("ndcg@10", "mrr@10", "map@100", "accuracy@1")
SQUARED_ERROR, BINARY_CROSSENTROPY, LISTWISE, MARGIN_MSE = LOSSES = (
    *("squared-error", "binary-crossentropy", "listwise", "margin-mse"),
)
LOSSES_OF_LISTS = (LISTWISE, MARGIN_MSE)  # the losses of lists of passages alone
LISTNET, RANKNET = LIST_LOSSES = ("listnet", "ranknet")
NO_WEIGHTS, BALANCED = "none", "balanced"
TRUNCATE, WINDOWS = "truncate", "windows"


class PoolingSettings(TaskSettings):
    pooling: str | None = setting(
        None,
        help="what the head reads: [CLS] with the pooler, the mean of the tokens, both, the last "
        "token, the maximum over the tokens, or a concatenation of these",
        default_help="what the model's 1_Pooling/config.json says; else cls, mean for a model "
        "without a pooler, whose [CLS] was never trained, or last for a causal model",
        choices=POOLINGS,
        stored=True,
        common=True,
    )


class LongTextSettings(PoolingSettings):
    long_texts: str | None = setting(
        None,
        help="what is read of a text with more than max_length tokens: its beginning (truncate), "
        "or all of it in windows that overlap by half",
        default_help=TRUNCATE,
        choices=(TRUNCATE, WINDOWS),
        stored=True,
        common=True,
    )
    window_pooling: str | None = setting(
        None,
        help="with windows, what is taken of their logits or scores: the mean or the maximum",
        default_help="mean",
        choices=("mean", "max"),
        stored=True,
    )

    def check(self):
        super().check()
        if self.window_pooling is not None and self.long_texts != WINDOWS:
            raise InputError.naming("{window_pooling} requires {long_texts=windows}.")


class LabelSettings(TableSettings, LongTextSettings):
    multi_label: bool = setting(
        False,
        help="a text may have any number of labels: a list, or in a table separated by |",
        reads=True,
        stored=True,
        common=True,
    )
    label_columns: str | Sequence[str] | None = setting(
        None,
        help="with --multi-label, the columns that have a 0 or 1 for one label each",
        unit="NAME,NAME,…",
        default_help="the label column",
        several=True,
        reads=True,
    )
    labels: str | Sequence[str] | None = setting(
        None,
        help="with --multi-label, the labels of lists of 0 and 1, in their order",
        unit="NAME,NAME,…",
        default_help="lists have the labels themselves",
        several=True,
        reads=True,
    )
    label_separator: str | None = setting(
        None,
        help="with --multi-label, what is between the labels of a cell",
        unit="CHARACTERS",
        default_help="|",
        reads=True,
    )
    unknown_labels: str = unknown_labels_setting()
    threshold: float | Sequence[float] = setting(
        0.5,
        help="with --multi-label, predict the labels whose probability is higher; several are "
        "those of the labels in their order",
        unit="P",
        above=0,
        below=1,
        several=True,
        stored=True,
    )
    tune_thresholds: bool = setting(
        False,
        help="with --multi-label, give each label the threshold with the highest F1 on the dev "
        "data",
        stored=True,
    )
    temperature: float | None = setting(
        None,
        help="divide the logits by this before they become probabilities",
        unit="T",
        default_help="1, or with calibrate what is fitted",
        above=0,
        stored=True,
    )
    calibrate: bool = setting(
        False,
        help="fit the temperature on the dev data, so that of predictions with a probability of "
        "0.8 about 8 in 10 are right",
        stored=True,
    )
    class_weights: str = model_setting(
        NO_WEIGHTS,
        help="weights of training examples: none (all equal), balanced (all labels have the same "
        "total), or LABEL=WEIGHT,… (1 for others); with several labels per text, weights of each "
        "label",
        unit="none|balanced|LABEL=WEIGHT,…",
        common=True,
    )
    hidden_layers: int = setting(
        0,
        help="hidden layers with ReLU between what the head reads and its linear layer, of the "
        "encoder's size",
        unit="LAYERS",
        at_least=0,
        stored=True,
    )
    metric: str | None = model_setting(
        None,
        help="the dev metric that selects the best epoch; f1 is that of the last of two labels",
        default_help="accuracy; micro_f1 with several labels per text",
        choices=tuple(dict.fromkeys((*SINGLE_LABEL_METRICS, *MULTI_LABEL_METRICS))),
        common=True,
    )

    def check(self):
        super().check()
        for name in ("threshold", "tune_thresholds"):
            if getattr(self, name) != getattr(type(self), name) and not self.multi_label:
                raise InputError.naming(
                    "{} requires {multi_label}. With one label per text the most probable one is "
                    "predicted.",
                    argument(name),
                )
        for name in ("label_columns", "labels", "label_separator"):
            if getattr(self, name) is not None and not self.multi_label:
                raise InputError.naming("{} requires {multi_label}.", argument(name))
        metrics = MULTI_LABEL_METRICS if self.multi_label else SINGLE_LABEL_METRICS
        if self.metric is not None and self.metric not in metrics:
            labels = "several labels" if self.multi_label else "one label"
            raise InputError.naming(
                "{metric} must be one of {} with {} per text. Received: {}.",
                ", ".join(metrics),
                labels,
                self.metric,
            )


class ClassifierSettings(TextFileSettings, LabelSettings):
    label_column: str | None = column_setting("label")
    fields: str | None = fields_setting("text=sentence,label=label")
    glue: str | None = glue_setting()


def both_orders_setting():
    """The setting for reading pairs in both orders."""
    return setting(
        False,
        help="read each pair in both orders and add their vectors, for relations that have no "
        "order, such as similarity",
        stored=True,
    )


class PairClassifierSettings(LabelSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text_a", "text_b")

    both_orders: bool = both_orders_setting()
    fields: str | None = fields_setting("text_a=premise,text_b=hypothesis,label=label")
    glue: str | None = glue_setting()


class RegressionSettings(TableSettings, LongTextSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text_a", "text_b")

    one_text: bool = setting(
        False, help="score single texts instead of pairs", reads=True, stored=True
    )
    both_orders: bool = both_orders_setting()
    loss: str | None = model_setting(
        None,
        help="the training loss: squared-error or binary-crossentropy of pairs and of lists of "
        "passages, listwise or margin-mse (with a teacher's scores) of lists",
        default_help="listwise for lists, binary-crossentropy if the score is a probability, else "
        "squared-error",
        choices=LOSSES,
        common=True,
    )
    list_loss: str = model_setting(
        LISTNET,
        help="with loss listwise: listnet compares the softmax of the scores with that of the "
        "grades, ranknet each two passages with different grades",
        choices=LIST_LOSSES,
    )
    score_range: Sequence[float] | None = model_setting(
        None,
        help="with loss binary-crossentropy, the lowest and the highest score there can be, which "
        "become 0 and 1",
        unit="NUMBER",
        default_help="scores are from 0 to 1",
    )
    group_by_query: bool = setting(
        False,
        help="rows of pairs with the same first text are one list of passages; with a loss of "
        "lists they always are",
        reads=True,
        common=True,
    )
    metric: str | None = model_setting(
        None,
        help="the dev metric that selects the best epoch",
        default_help="pearson, or ndcg@10 of lists of passages",
        choices=(*SCORE_METRICS, *LIST_METRICS),
        common=True,
    )
    fields: str | None = fields_setting("text_a=sentence1,text_b=sentence2,label=score")
    glue: str | None = glue_setting()

    def __post_init__(self, *given):
        if self.loss in LOSSES_OF_LISTS:
            object.__setattr__(self, "group_by_query", True)
        super().__post_init__(*given)

    def check(self):
        super().check()
        if self.list_loss != LISTNET and self.loss not in (None, LISTWISE):
            raise InputError.naming("{list_loss} is for {loss=listwise}. Leave it out.")
        if self.score_range is not None:
            if self.loss not in (None, BINARY_CROSSENTROPY):
                raise InputError.naming(
                    "{score_range} is for {loss=binary-crossentropy}. Leave it out."
                )
            if len(self.score_range) != 2 or self.score_range[0] >= self.score_range[1]:
                raise InputError.naming(
                    "{score_range} must be two numbers, the lower one first. Received: {}.",
                    ", ".join(f"{number:g}" for number in self.score_range),
                )
        if self.group_by_query:
            self.check_for_lists()

    def check_for_lists(self):
        """Raises InputError for settings that lists of passages have not."""
        for name in ("one_text", "both_orders"):
            if getattr(self, name):
                raise InputError.naming(
                    "Lists of passages are read as pairs in their order. Leave {} out.",
                    argument(name),
                )
