"""Early stopping: a run ends when further epochs bring nothing on the dev data.

What it remembers is in the records of the run, which every checkpoint has, so that a resumed run
ends where the uninterrupted one does.
"""

import math

from keras_bert.base.formatting import counted
from keras_bert.base.settings import Settings, optimisation_setting
from keras_bert.training.parts import Part
from keras_bert.training.selection import evaluated, quality

PREDICTED_LABELS = "predicted_labels"  # of an evaluation: how many labels are predicted at all
# Measured by benchmarks/early_stopping.py.
_LEAST = 3  # epochs
_FRACTION = 0.18  # of the planned epochs
_LESS = 0.01  # how much lower a dev loss must be, as a fraction of the first one


class PatienceSettings(Settings):
    """The setting `patience`."""

    patience: int | None = optimisation_setting(
        None,
        help="early stopping: the epochs in a row without a better metric or a clearly lower loss "
        "on the dev data that end the run; 0 trains all epochs",
        unit="EPOCHS",
        default_help=f"{_LEAST}, or {_FRACTION:.0%} of the epochs; 0 with --keep last, "
        "--gradual-unfreezing or --contrastive",
        at_least=0,
    )


class EarlyStopping(Part):
    """Ends a run before its last epoch.

    Args:
        metric: the metric on the dev data by which the best epoch is chosen; higher is better.
        patience: the run ends after so many evaluations in a row that bring nothing; 0 is never.
    """

    chief_only = False

    def __init__(self, metric, patience):
        self.metric = metric
        self.patience = patience

    @classmethod
    def of(cls, run):
        return cls(run.task.METRIC, patience_of(run.settings))

    @property
    def may_end(self):
        return self.patience > 0

    def is_over(self, records):
        return 0 < self.patience <= evaluations_without_gain(records, self.metric)

    def select(self, run, records):
        if records[-1]["step"] < run.plan.steps and self.is_over(records):
            run.report(self.line())

    def line(self):
        """A line for the user on a run that is over."""
        epochs = counted(self.patience, "epoch")
        return (
            f"Stopped early: {epochs} with neither a better {self.metric} nor a clearly lower loss "
            "on the dev data. All epochs are trained with `patience=0` (--patience 0)."
        )


def patience_of(settings):
    """The patience of the settings of a run, whose number of epochs is resolved.

    By default a run ends by itself if it keeps the best epoch, unless its epochs unfreeze layers.
    """
    if settings.patience is not None:
        return settings.patience
    if settings.keep == "last" or settings.gradual_unfreezing or settings.contrastive:
        return 0
    return max(_LEAST, math.ceil(_FRACTION * settings.epochs))


def evaluations_without_gain(records, metric):
    """The number of evaluations since the last one that brought something; 0 before any.

    The first one brings something, and so does one with a better metric than all before, with a
    loss clearly below those of all that brought something, or with a metric or loss that is
    the first one that is not NaN. A model that predicts one label for everything, or nothing that
    is right, has not begun to learn: after such an evaluation the count starts again.
    """
    count, first, best, lowest = 0, None, -math.inf, math.inf
    for record in evaluated(records):
        value, negative_loss = quality(record["eval"], metric)
        loss = -negative_loss
        if first is None and math.isfinite(loss):
            first, is_lower = loss, True
        else:
            is_lower = first is not None and loss < lowest - _LESS * abs(first)
        has_begun = max(best, value) > 0 and record["eval"].get(PREDICTED_LABELS, 2) > 1
        if value > best or is_lower or not has_begun:
            count, lowest = 0, min(lowest, loss)
        else:
            count += 1
        best = max(best, value)
    return count
