"""A sweep as TensorBoard's HParams plugin shows it."""

import contextlib
import shutil
from pathlib import Path

import tensorflow as tf
from tensorboard.plugins.hparams import api

from keras_bert.training.best_model import value_of
from keras_bert.training.series import kept_figure


def write_hparams(folder, runs, settings, *, names):
    """Writes the runs of a sweep under `folder`, in place of what lay there.

    The experiment (which settings are tried, and what they are compared by) stands in the folder
    itself, and each run in a folder of its name: its settings, `dev/FIGURE` after every evaluation,
    and `kept/FIGURE`, that of the model it keeps. FIGURE is what a model is kept by.

    Args:
        folder: OUTPUT/logs of the sweep.
        runs: the metrics of each finished run by its name.
        settings: the settings of each run, finished or not, by its name.
        names: the settings that are tried.
    """
    folder = Path(folder)
    (figure,) = {metrics["kept_by"] for metrics in runs.values()}
    if folder.exists():
        shutil.rmtree(folder)
    tried = {
        name: sorted({getattr(of_run, name) for of_run in settings.values()}) for name in names
    }
    with _writing(folder):
        api.hparams_config(
            hparams=[api.HParam(name, api.Discrete(values)) for name, values in tried.items()],
            metrics=[
                api.Metric(f"kept/{figure}", display_name=f"{figure} of the model that is kept"),
                api.Metric(f"dev/{figure}", display_name=f"{figure} on the dev data"),
            ],
        )
    for run, metrics in runs.items():
        with _writing(folder / run):
            api.hparams({name: getattr(settings[run], name) for name in names}, trial_id=run)
            values = [
                (f"dev/{figure}", value_of(entry, figure), entry["step"])
                for entry in metrics["curve"]
                if "eval" in entry
            ]
            values.append((f"kept/{figure}", kept_figure(metrics), metrics["kept"]["step"]))
            for tag, value, step in values:
                if value is not None:
                    tf.summary.scalar(tag, value, step=step)


@contextlib.contextmanager
def _writing(folder):
    """What is summarised within it goes into a file in the folder."""
    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default(step=0):
        yield
    writer.close()
