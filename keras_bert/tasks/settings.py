"""Settings of the tasks that read labelled files, without Keras: the command line reads them."""

import typing
from collections.abc import Sequence

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import Settings, setting
from keras_bert.readers.settings import (
    RowSettings,
    TableSettings,
    TextFileSettings,
    column_setting,
    fields_setting,
    glue_setting,
    invalid_tags_setting,
    unknown_labels_setting,
)
from keras_bert.readers.squad import WRONG_OFFSETS

MAX_LENGTH = 128
# The defaults of fine-tuning: the learning rates of all weights and of a head alone, and others.
LEARNING_RATE, HEAD_LEARNING_RATE = 5e-5, 1e-3
WARMUP, WEIGHT_DECAY = 0.1, 0.01
# As `keras_bert.heads.pooling.POOLINGS`, whose import would load Keras.
POOLINGS = ("cls", "mean", "both", "last", "max", "last+max+mean")
# As `keras_bert.heads.spans.REPRESENTATIONS`.
REPRESENTATIONS = ("mean", "biaffine", "attention", "self-attention")
# The tokens of a word that are trained on its label, and those that it is predicted from.
FIRST, LAST, ALL, MEAN, PRODUCT = "first", "last", "all", "mean", "product"
# The metrics that may select the best epoch.
SINGLE_LABEL_METRICS = ("accuracy", "macro_f1", "micro_f1", "matthews", "f1", "accuracy_and_f1")
MULTI_LABEL_METRICS = ("micro_f1", "macro_f1", "subset_accuracy")
SCORE_METRICS = ("pearson", "spearman", "pearson_and_spearman")
NO_WEIGHTS, BALANCED = "none", "balanced"
MAX_SPAN_LENGTH = 10  # in words
MAX_ANTECEDENTS = 50


def _max_length_setting(default, *, at_least, help):
    return setting(
        None,
        help=f"maximum tokens per sequence{help}",
        unit="TOKENS",
        default_help=f"{default}, or the positions of the model if it has fewer",
        at_least=at_least,
        stored=True,
    )


def _dropout_setting(default_help):
    return setting(
        None,
        help="dropout rate of the head's input",
        unit="RATE",
        default_help=default_help,
        at_least=0,
        below=1,
    )


class TaskSettings(Settings):
    """Settings of a task type, in addition to those of the training run.

    A model folder stores the `stored` ones, which are attributes of the task by the same names;
    those with `reads` control how a file is read (with both, a model's own value counts).
    EXAMPLE_FIELDS names the parts of an example that is given instead of a file: `read` takes a
    sequence of texts or, with several names, of tuples. MAX_LENGTH is the default of `max_length`,
    at most the positions of the model.
    """

    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text",)
    MAX_LENGTH: typing.ClassVar[int] = MAX_LENGTH

    max_length: int | None = _max_length_setting(
        MAX_LENGTH, at_least=3, help=", including [CLS] and [SEP]"
    )
    dropout: float | None = _dropout_setting("from the model's config")
    bilstm: int | None = setting(
        None,
        help="units per direction of a two-layer bidirectional LSTM over the encoder",
        unit="UNITS",
        default_help="none",
        at_least=1,
        stored=True,
    )
    lm_loss_weight: float = setting(
        0.0,
        help="with a causal encoder, weight of an additional next-token loss on the same texts "
        "(0.5 in OpenAI GPT)",
        unit="WEIGHT",
        at_least=0,
    )


# Whole texts.


class PoolingSettings(TaskSettings):
    pooling: str | None = setting(
        None,
        help="what the head reads: [CLS] with the pooler, the mean of the tokens, both, the last "
        "token, the maximum over the tokens, or a concatenation of these",
        default_help="cls; mean for a model without a pooler, whose [CLS] was never trained; last "
        "for a causal model",
        choices=POOLINGS,
        stored=True,
    )


class LabelSettings(TableSettings, PoolingSettings):
    multi_label: bool = setting(
        False,
        help="a text may have any number of labels: a list, or in a table separated by |",
        reads=True,
        stored=True,
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
    threshold: float = setting(
        0.5,
        help="with --multi-label, predict the labels whose probability is higher",
        above=0,
        below=1,
        stored=True,
    )
    class_weights: str = setting(
        NO_WEIGHTS,
        help="weights of training examples: none (all equal), balanced (all labels have the same "
        "total), or LABEL=WEIGHT,… (1 for others); with several labels per text, weights of each "
        "label",
        unit="none|balanced|LABEL=WEIGHT,…",
    )
    hidden_layers: int = setting(
        0,
        help="hidden layers with ReLU between what the head reads and its linear layer, of the "
        "encoder's size",
        unit="LAYERS",
        at_least=0,
        stored=True,
    )
    metric: str | None = setting(
        None,
        help="the dev metric that selects the best epoch; f1 is that of the last of two labels",
        default_help="accuracy; micro_f1 with several labels per text",
        choices=tuple(dict.fromkeys((*SINGLE_LABEL_METRICS, *MULTI_LABEL_METRICS))),
    )

    def check(self):
        super().check()
        if self.threshold != type(self).threshold and not self.multi_label:
            raise InputError.naming(
                "{threshold} requires {multi_label}. With one label per text the most probable "
                "one is predicted."
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


def _both_orders_setting():
    return setting(
        False,
        help="read each pair in both orders and add their vectors, for relations that have no "
        "order, such as similarity",
        stored=True,
    )


class PairClassifierSettings(LabelSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text_a", "text_b")

    both_orders: bool = _both_orders_setting()
    fields: str | None = fields_setting("text_a=premise,text_b=hypothesis,label=label")
    glue: str | None = glue_setting()


class RegressionSettings(TableSettings, PoolingSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text_a", "text_b")

    one_text: bool = setting(
        False, help="score single texts instead of pairs", reads=True, stored=True
    )
    both_orders: bool = _both_orders_setting()
    metric: str = setting(
        "pearson",
        help="the dev metric that selects the best epoch",
        choices=SCORE_METRICS,
    )
    fields: str | None = fields_setting("text_a=sentence1,text_b=sentence2,label=score")
    glue: str | None = glue_setting()


class MultipleChoiceSettings(TableSettings, PoolingSettings):
    # Flags cannot express a context with any number of choices.
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()

    fields: str | None = fields_setting("context=question,choices=option_a|option_b,label=answer")


# Words.


def _crf_setting():
    return setting(
        False,
        help="add a conditional random field over the words, which learns the transitions between "
        "tags and allows only those of the scheme",
        stored=True,
    )


class TaggerSettings(RowSettings, TaskSettings):
    word_column: str | None = column_setting("word")
    tag_column: str | None = column_setting("tag")
    sentence_column: str | None = column_setting("number of its sentence, with one word per row")
    pretokenized: bool = setting(
        False,
        help="split plain lines and given texts into words at spaces only; otherwise the tokenizer "
        "splits them at spaces, punctuation and CJK characters",
        reads=True,
    )
    scheme: str | None = setting(
        None,
        help="train on tags of this scheme, whatever that of the file",
        choices=("bio", "bioes", "bilou", "bmes", "bmewo"),
        default_help="the file's; bio for IOB1",
        reads=True,
    )
    invalid_tags: str = invalid_tags_setting()
    unknown_labels: str = unknown_labels_setting()
    label_subwords: str | None = setting(
        None,
        help="which subword tokens of a word are trained on its tag",
        choices=(FIRST, LAST, ALL),
        default_help="first; last for a causal model, whose last token sees the whole word",
        stored=True,
    )
    aggregation: str | None = setting(
        None,
        help="what a word's tag is predicted from: its first or last token, or the mean or product "
        "of the distributions of all its tokens",
        choices=(FIRST, LAST, MEAN, PRODUCT),
        default_help="the token that is trained; if all are, first, or last for a causal model",
        stored=True,
    )
    document_context: bool = setting(
        False,
        help="fill each sequence with the sentences before and after it in the document; their "
        "tags do not count there",
        stored=True,
    )
    crf: bool = _crf_setting()

    def check(self):
        super().check()
        if self.crf:
            for name in ("label_subwords", "aggregation"):
                if getattr(self, name) not in (None, FIRST, LAST):
                    raise InputError.naming(
                        "{} must be {} or {} with {crf}, whose transitions are between single "
                        "tokens of words. Received: {}.",
                        argument(name),
                        FIRST,
                        LAST,
                        getattr(self, name),
                    )


class SemanticRoleSettings(RowSettings, TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()

    invalid_tags: str = invalid_tags_setting()
    unknown_labels: str = unknown_labels_setting()
    crf: bool = _crf_setting()


# Questions.


class QuestionSettings(RowSettings, TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("question", "context")
    MAX_LENGTH: typing.ClassVar[int] = 384

    max_length: int | None = _max_length_setting(
        MAX_LENGTH,
        at_least=5,
        help=": question, a window of the context, [CLS] and two [SEP]",
    )
    dropout: float | None = _dropout_setting("0, as in BERT's own program")
    stride: int | None = setting(
        None,
        help="tokens from the start of a window of a long context to the start of the next",
        unit="TOKENS",
        default_help="a third of `max_length`",
        at_least=1,
        stored=True,
    )
    max_question_length: int = setting(
        64,
        help="maximum tokens of a question; at least half of a sequence is left for the context",
        unit="TOKENS",
        at_least=1,
        stored=True,
    )
    max_answer_length: int = setting(
        30,
        help="maximum tokens of an answer",
        unit="TOKENS",
        at_least=1,
        stored=True,
    )
    n_best: int = setting(
        1, help="number of candidate spans per answer", unit="N", at_least=1, stored=True
    )
    null_threshold: float | None = setting(
        None,
        help="the null score above which a question has no answer",
        unit="SCORE",
        default_help="tuned on the dev data; if every question there has an answer, one is always "
        "predicted",
        stored=True,
    )
    fields: str | None = fields_setting("question=query,context=passage,answers=answers,id=id")
    wrong_offsets: str = setting(
        "move",
        help="what to do with an answer that is not at its offset: move it to the nearest "
        "occurrence, or drop it (not trained on)",
        choices=WRONG_OFFSETS,
        reads=True,
    )


# Spans.


def _max_span_length_setting(name):
    return setting(
        MAX_SPAN_LENGTH,
        help=f"maximum words of a {name}; longer ones are not found",
        unit="WORDS",
        at_least=1,
        stored=True,
    )


def _representation_setting():
    return setting(
        REPRESENTATIONS[0],
        help="the vector of a span: its ends and the mean of its words, its ends and a weighted "
        "mean (attention), or two networks for its ends and either their product (biaffine) "
        "or a self-attention over its words (self-attention)",
        choices=REPRESENTATIONS,
        stored=True,
    )


def _aggregation_setting():
    return setting(
        None,
        help="a word's vector: the mean of its subword tokens, or the last one",
        choices=(MEAN, LAST),
        default_help="mean; last for a causal model, whose last token sees the whole word",
        stored=True,
    )


class SpanClassifierSettings(RowSettings, TaskSettings):
    word_column: str | None = column_setting("word in CoNLL")
    tag_column: str | None = column_setting("tag in CoNLL")
    sentence_column: str | None = column_setting("number of its sentence, with one word per row")
    invalid_tags: str = invalid_tags_setting()
    unknown_labels: str = unknown_labels_setting()
    max_span_length: int = _max_span_length_setting("span")
    span_representation: str = _representation_setting()
    identify: bool = setting(False, help="find spans regardless of their labels", stored=True)
    threshold: float | None = setting(
        None,
        help="the lowest probability of a span's label at which the span is found",
        unit="P",
        default_help="tuned on the dev file",
        above=0,
        below=1,
        stored=True,
    )
    threshold_metric: str = setting(
        "f1",
        help="the metric that the threshold is tuned for: F1, or F0.5, which weighs precision "
        "twice",
        choices=("f1", "precision"),
        stored=True,
    )
    aggregation: str | None = _aggregation_setting()
    flat: bool = setting(
        False, help="of overlapping spans, find only the most probable one", stored=True
    )


class RelationClassifierSettings(RowSettings, TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()

    fields: str | None = fields_setting("words=tokens,head=subject,tail=object,label=relation")
    unknown_labels: str = unknown_labels_setting()
    span_representation: str = _representation_setting()
    aggregation: str | None = _aggregation_setting()
    null_label: str | None = setting(
        None,
        help="the label of pairs without a relation, which F1 leaves out",
        unit="LABEL",
        default_help="one called no_relation, NA, none or Other, if there is one",
        stored=True,
    )


class CoreferenceSettings(RowSettings, TaskSettings):
    max_span_length: int = _max_span_length_setting("mention")
    max_antecedents: int = setting(
        MAX_ANTECEDENTS,
        help="how many candidates before a mention may be its antecedent, the nearest ones",
        unit="N",
        at_least=1,
        stored=True,
    )
