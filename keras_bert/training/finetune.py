"""Fine-tuning as one call: from labelled examples to a model folder, over `model.fit`."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_bert.base.settings import takes, together
from keras_bert.tasks import settings_class
from keras_bert.training.finetuning import Finetuning
from keras_bert.training.run_folder import check_output
from keras_bert.training.series import mean_and_deviation, run_series
from keras_bert.training.settings import FinetuneSettings, finetune_settings
from keras_bert.training.strategies.devices import Devices
from keras_bert.training.strategies.strategy import scope_of


@takes(together(settings_class("classifier"), FinetuneSettings))
@tf.autograph.experimental.do_not_convert  # it writes Python files outside the output
def finetune(*, report: Callable[[str], None] | None = None, **settings) -> dict[str, Any]:
    """Fine-tunes an encoder on labelled examples, or goes on where a run stopped.

    Calling it again with the same arguments resumes a run that was killed, exactly: with
    `deterministic` the weights are those of a run that was not, bit for bit. A finished run is not
    repeated.

    Args:
        {settings}
        report: a function that is told, in lines, how the files are read and what is trained.

    These are the arguments for `task="classifier"`; for another, the settings of that kind of task
    stand in place of its own (`keras_bert.training.settings.finetune_settings(task)` has them).

    Returns:
        What metrics.json holds: `kept` (which model, with its `step` and `epoch`), `best_metric`
        (the name of the figure that makes one better), `dev` (its official figures), what the task
        is made with (such as `labels`), `steps`, `parameters`, `trainable_parameters`, `seconds`
        and `history` (see `keras_bert.training.monitoring.history.History`); and where there is a
        mix, `scalar_mix`: the `layer_weights` in it, the embeddings first, and `gamma`. With
        several seeds it is that of the best one on the dev data, and over all of them `mean` and
        `std` of its official figures, and `runs` (see `keras_bert.training.series.run_series`).

    Raises:
        InputError: an argument or a file is wrong, the dev examples do not go with the training
            ones, or the output folder holds something else.
    """
    given = settings
    settings = finetune_settings(given.get("task", "classifier")).of(given)
    report = report or (lambda line: None)
    with scope_of(settings.strategy, report):
        return _finetune(settings, given, report)


def _finetune(settings, given, report):
    """`finetune` in the scope of its strategy."""
    if Devices().workers == 1:  # the chief of several tells the others when all have read
        check_output(settings.output, command="finetune", force=settings.force)
    finetuning = Finetuning(settings, report, given=given)
    settings = finetuning.resolved(settings)
    if settings.num_seeds == 1:
        return finetuning.run(settings, report)
    seeds = range(settings.seed, settings.seed + settings.num_seeds)
    runs = {f"seed-{seed}": dataclasses.replace(settings, seed=seed, num_seeds=1) for seed in seeds}
    return run_series(
        finetuning,
        settings,
        runs,
        varied=("seed",),
        command="finetune",
        report=report,
        summary=_over_seeds,
    )


def _over_seeds(runs):
    """What metrics.json says of all seeds together."""
    mean, deviation = mean_and_deviation([metrics["dev"] for metrics in runs.values()])
    seconds = sum(metrics["seconds"] for metrics in runs.values())
    return {"mean": mean, "std": deviation, "seconds": round(seconds, 3)}
