"""A sweep as one call: every choice of rate, batch size and epochs, and the best of them on dev."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_bert.base.settings import takes, together
from keras_bert.tasks import settings_class
from keras_bert.training.finetuning import Finetuning
from keras_bert.training.monitoring.tensorboard import write_hparams
from keras_bert.training.run_folder import check_output
from keras_bert.training.series import run_series
from keras_bert.training.settings import SweepSettings, finetune_settings, sweep_settings
from keras_bert.training.strategies.devices import Devices
from keras_bert.training.strategies.strategy import scope_of

TRIED = ("learning_rate", "batch_size", "epochs")


@takes(together(settings_class("classifier"), SweepSettings))
@tf.autograph.experimental.do_not_convert  # it writes Python files outside the output
def sweep(*, report: Callable[[str], None] | None = None, **settings) -> dict[str, Any]:
    """Fine-tunes with every choice of rate, batch size and epochs, and keeps the best model.

    Best is the highest figure on the dev data. Calling it again with the same arguments goes on
    where it stopped: finished runs are not repeated, and the one that was stopped is resumed.

    Args:
        {settings}
        report: a function that is told, in lines, how the files are read and what is trained.

    These are the arguments for `task="classifier"`; for another, the settings of that kind of task
    stand in place of its own (`keras_bert.training.settings.sweep_settings(task)` has them).

    Returns:
        What metrics.json holds: the metrics of the best run as `keras_bert.finetune` gives them,
        its name as `kept["run"]`, and `runs`: for each by name the `learning_rate`, `batch_size`
        and `epochs`, the `figure` that they are compared by, `kept`, `dev`, `steps` and `seconds`.

    Raises:
        InputError: see `keras_bert.finetune`.
    """
    given = settings
    settings = sweep_settings(given.get("task", "classifier")).of(given)
    report = report or (lambda line: None)
    with scope_of(settings.strategy, report):
        return _sweep(settings, given, report)


def _sweep(settings, given, report):
    """`sweep` in the scope of its strategy."""
    if Devices().workers == 1:  # the chief of several tells the others when all have read
        check_output(settings.output, command="sweep", force=settings.force)
    of_run = finetune_settings(settings.task)
    first = next(iter(settings.runs().values()))
    finetuning = Finetuning(of_run.of(first), report, given=given)
    settings = finetuning.resolved(settings)
    runs = {name: of_run.of(values) for name, values in settings.runs().items()}

    def log(folder, found):
        write_hparams(folder, found, runs, names=TRIED)

    return run_series(
        finetuning, settings, runs, varied=TRIED, command="sweep", report=report, on_run=log
    )
