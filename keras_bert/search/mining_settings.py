"""Settings of `keras_bert.mine_negatives`, without Keras."""

from dataclasses import InitVar

from keras_bert.base.errors import InputError, arguments
from keras_bert.base.settings import (
    PathText,
    Report,
    checkpoint_setting,
    data_setting,
    model_setting,
    optimisation_setting,
    required,
    setting,
)
from keras_bert.readers import TableSettings, fields_setting

TOP, RANDOM = CHOICES = ("top", "random")
COLUMNS, LIST, LABELS = FORMATS = ("columns", "list", "labels")
# The settings that reject a candidate by its score.
LIMITS = ("margin", "relative_margin", "max_score", "min_score")


class MineSettings(TableSettings):
    """Settings of `keras_bert.mine_negatives`."""

    report: InitVar[Report] = None
    progress: InitVar[bool] = False

    data: object = required(
        help="the pairs of an anchor and its positive, such as a question and its answer: CSV, "
        "TSV, JSON Lines or Parquet; - is standard input",
        unit="FILE",
    )
    index: object = data_setting(
        None,
        help="the index whose texts are the candidates, with the positives that it lacks",
        unit="INDEX",
        default_help="pass `model`",
        common=True,
    )
    model: object = model_setting(
        None,
        help="without `index`, the model that finds the candidates; with it, the model of the "
        "index, if its folder was moved",
        unit="FOLDER",
        default_help="that of the index",
        common=True,
    )
    corpus: object = data_setting(
        None,
        help="with `model` alone, a file of texts that are candidates, too",
        unit="FILE",
        default_help="the candidates are the positives",
        common=True,
    )
    output: PathText | None = setting(
        None,
        help="the table to write: NAME.csv, NAME.parquet or NAME.jsonl",
        unit="FILE",
        default_help="not written",
        recorded=False,
        common=True,
    )
    format: str = setting(
        COLUMNS,
        help="the columns of the table: columns (anchor, positive, negative_1 …), list (anchor, "
        "positive, and negatives as a list) or labels (query, passage, and label, 1 for positives "
        "and 0 for negatives), which a cross-encoder is trained on",
        choices=FORMATS,
        common=True,
    )
    num_negatives: int = setting(
        3, help="negatives for each anchor", unit="N", at_least=1, common=True
    )
    choose: str = setting(
        TOP,
        help="which of the candidates that are left become negatives: those with the highest "
        "scores, or random ones",
        choices=CHOICES,
        common=True,
    )
    range_min: int = setting(
        0,
        help="leave out this many of the candidates that pass, those with the highest scores",
        unit="RANK",
        at_least=0,
        common=True,
    )
    range_max: int | None = setting(
        None,
        help="the last rank of a candidate",
        unit="RANK",
        default_help="`range_min` plus the negatives, ten times as many with a margin or a "
        "`max_score`, plus the most positives of an anchor",
        at_least=1,
        common=True,
    )
    margin: float | None = setting(
        None,
        help="reject candidates with a score above the anchor's lowest positive minus this",
        unit="SCORE",
        default_help="no limit",
        at_least=0,
        common=True,
    )
    relative_margin: float | None = setting(
        None,
        help="likewise, minus this fraction of its score: 0.05 leaves scores up to 95 percent",
        unit="FRACTION",
        default_help="no limit",
        at_least=0,
        common=True,
    )
    max_score: float | None = setting(
        None,
        help="reject candidates with a higher score",
        unit="SCORE",
        default_help="no limit",
        common=True,
    )
    min_score: float | None = setting(
        None,
        help="reject candidates with a lower score",
        unit="SCORE",
        default_help="no limit",
        common=True,
    )
    filter_by: object = model_setting(
        None,
        help="a cross-encoder (a regression over pairs) whose scores take the place of the "
        "similarities in margins, limits and ranks",
        unit="FOLDER",
        default_help="the similarities",
        common=True,
    )
    fields: str | None = fields_setting("anchor=question,positive=answer,negatives=no1|no2")
    batch_size: int = optimisation_setting(
        32, help="texts per batch of a model", unit="TEXTS", at_least=1
    )
    seed: int = optimisation_setting(
        0, help="seed of the random choice, which depends on the anchor's text, too", at_least=0
    )
    force: bool = checkpoint_setting(
        False, help="replace an output that this command wrote before", recorded=False
    )

    def check(self):
        super().check()
        if self.index is None and self.model is None:
            raise InputError.naming(
                "Give {index}, or {model} to find candidates among the positives."
            )
        if self.index is not None and self.corpus is not None:
            raise InputError.naming("{corpus} is for {model} alone. Leave {index} or it out.")
        room = None if self.range_max is None else self.range_max - self.range_min
        if room is not None and room < self.num_negatives:
            raise InputError.naming(
                "{range_min} and {range_max} leave {} ranks, and {num_negatives} is {}.",
                max(room, 0),
                self.num_negatives,
            )
        low, high = self.min_score, self.max_score
        if low is not None and high is not None and low > high:
            raise InputError.naming("{min_score} is above {max_score}: {:g} and {:g}.", low, high)
        if self.filter_by is not None and not self.limits:
            raise InputError.naming(
                "{filter_by} gives the scores of margins and limits. Give one of {}.",
                arguments(LIMITS),
            )
        if self.format == LIST and str(self.output).lower().endswith(".csv"):
            raise InputError.naming(
                "A CSV has no lists. Give {output} another ending, or {format} columns."
            )
        if self.force and self.output is None:
            raise InputError.naming("{force} is for {output}. Leave it out.")

    @property
    def limits(self):
        """The names of the `LIMITS` that are given."""
        return [name for name in LIMITS if getattr(self, name) is not None]

    def highest_scores(self, lowest: float) -> dict[str, float]:
        """{a limit: the highest score that it leaves}, for the lowest score of the positives."""
        scores = {"max_score": self.max_score}
        if self.margin is not None:
            scores["margin"] = lowest - self.margin
        if self.relative_margin is not None:
            scores["relative_margin"] = lowest - abs(lowest) * self.relative_margin
        return {name: scores[name] for name in LIMITS if scores.get(name) is not None}

    def last_rank(self, most_positives: int) -> int:
        """`range_max`, or its default for anchors with so many positives."""
        if self.range_max is not None:
            return self.range_max
        factor = 10 if {*self.limits} - {"min_score"} else 1
        return self.range_min + factor * self.num_negatives + most_positives
