"""A label for spans of words, or for pairs of them; the settings of these tasks."""

import typing

from keras_bert.base.settings import setting
from keras_bert.readers import (
    RowSettings,
    column_setting,
    fields_setting,
    invalid_tags_setting,
    unknown_labels_setting,
)
from keras_bert.tasks import TaskSettings
from keras_bert.tasks.tagging import LAST, MEAN

# As `keras_bert.heads.spans.REPRESENTATIONS`, whose import would load Keras.
REPRESENTATIONS = ("mean", "biaffine", "attention", "self-attention")
MAX_SPAN_LENGTH = 10  # in words


def max_span_length_setting(name):
    """The setting for the largest number of words of a span, which is a `name`."""
    return setting(
        MAX_SPAN_LENGTH,
        help=f"maximum words of a {name}; longer ones are not found",
        unit="WORDS",
        at_least=1,
        stored=True,
    )


def representation_setting():
    """The setting for the vector of a span."""
    return setting(
        REPRESENTATIONS[0],
        help="the vector of a span: its ends and the mean of its words, its ends and a weighted "
        "mean (attention), or two networks for its ends and either their product (biaffine) "
        "or a self-attention over its words (self-attention)",
        choices=REPRESENTATIONS,
        stored=True,
    )


def aggregation_setting():
    """The setting for the vector of a word."""
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
    sentence_column: str | None = column_setting(
        "number of its sentence, with one word per row", common=False
    )
    invalid_tags: str = invalid_tags_setting()
    unknown_labels: str = unknown_labels_setting()
    max_span_length: int = max_span_length_setting("span")
    span_representation: str = representation_setting()
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
    aggregation: str | None = aggregation_setting()
    flat: bool = setting(
        False, help="of overlapping spans, find only the most probable one", stored=True
    )


class RelationClassifierSettings(RowSettings, TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()

    fields: str | None = fields_setting("words=tokens,head=subject,tail=object,label=relation")
    unknown_labels: str = unknown_labels_setting()
    span_representation: str = representation_setting()
    aggregation: str | None = aggregation_setting()
    null_label: str | None = setting(
        None,
        help="the label of pairs without a relation, which F1 leaves out",
        unit="LABEL",
        default_help="one called no_relation, NA, none or Other, if there is one",
        stored=True,
    )
