"""What the tasks over whole texts are made with, and how their files are read."""

import dataclasses
import typing

from keras_bert.base.errors import InputError
from keras_bert.base.settings import setting
from keras_bert.readers.settings import (
    TextFileSettings,
    column_setting,
    fields_setting,
    glue_setting,
    header_setting,
)
from keras_bert.tasks.settings import TaskSettings

# As `keras_bert.heads.pooling.POOLINGS`, which is Keras's to load.
POOLINGS = ("cls", "mean", "both", "last", "max", "last+max+mean")
# The figures that a run may keep the best epoch by.
SINGLE_LABEL_METRICS = ("accuracy", "macro_f1", "micro_f1", "matthews", "f1", "accuracy_and_f1")
MULTI_LABEL_METRICS = ("micro_f1", "macro_f1", "subset_accuracy")
SCORE_METRICS = ("pearson", "spearman", "pearson_and_spearman")
NO_WEIGHTS, BALANCED = "none", "balanced"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoolingSettings(TaskSettings):
    """What a head over a whole text reads."""

    pooling: str | None = setting(
        None,
        help="what the head reads: [CLS] with the pooler, the mean of the tokens, both of these, "
        "the last token, the maximum over the tokens, or three of these side by side",
        default_help="cls; mean for a model without a pooler, whose [CLS] was never trained; last "
        "for a causal model",
        choices=POOLINGS,
        stored=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelSettings(PoolingSettings):
    """What the tasks with labels have in common."""

    multi_label: bool = setting(
        False,
        help="a text may have any number of labels: parted by | in a table, a list in JSON",
        reads=True,
        stored=True,
    )
    threshold: float = setting(
        0.5,
        help="of several labels, those are given whose probability is higher",
        above=0,
        below=1,
        stored=True,
    )
    class_weights: str = setting(
        NO_WEIGHTS,
        help="what a training text weighs: none (all the same), balanced (all labels the same in "
        "sum), or LABEL=WEIGHT,… (others weigh 1); of several labels a text, what each weighs "
        "that it has",
        unit="none|balanced|LABEL=WEIGHT,…",
    )
    metric: str | None = setting(
        None,
        help="the figure on the dev data that the best epoch is kept by; f1 is that of the last of "
        "two labels",
        default_help="accuracy, or micro_f1 of several labels a text",
        choices=tuple(dict.fromkeys((*SINGLE_LABEL_METRICS, *MULTI_LABEL_METRICS))),
    )

    def check(self):
        super().check()
        several = self.multi_label
        if self.threshold != type(self).threshold and not several:
            raise InputError(
                "`threshold` is for several labels per text; give `multi_label`, too, or leave it "
                "out. Of one label per text, the most probable one is given."
            )
        metrics = MULTI_LABEL_METRICS if several else SINGLE_LABEL_METRICS
        if self.metric is not None and self.metric not in metrics:
            raise InputError(
                f"`metric` is {self.metric}; with {'several labels' if several else 'one label'} a "
                f"text it should be one of {', '.join(metrics)}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassifierSettings(TextFileSettings, LabelSettings):
    label_column: str | None = column_setting("label")
    fields: str | None = fields_setting("text=sentence,label=label")
    glue: str | None = glue_setting()


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairClassifierSettings(LabelSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text_a", "text_b")

    header: bool | None = header_setting()
    fields: str | None = fields_setting("text_a=premise,text_b=hypothesis,label=label")
    glue: str | None = glue_setting()


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionSettings(PoolingSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ("text_a", "text_b")

    one_text: bool = setting(
        False, help="score a text instead of a pair of texts", reads=True, stored=True
    )
    metric: str = setting(
        "pearson",
        help="the figure on the dev data that the best epoch is kept by",
        choices=SCORE_METRICS,
    )
    header: bool | None = header_setting()
    fields: str | None = fields_setting("text_a=sentence1,text_b=sentence2,label=score")
    glue: str | None = glue_setting()
