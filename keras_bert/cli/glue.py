"""`finetune --glue NAME --glue-dir FOLDER`: the task, its files and its figure by one name."""

import argparse

from keras_bert.base.errors import InputError
from keras_bert.cli.kinds import value_of
from keras_bert.readers.glue import glue_settings, glue_task


def kind_of_glue(argv):
    """The kind of task that `--glue NAME` is of; None where a command line does not say it."""
    name = value_of(argv, "--glue")
    if name is None or value_of(argv, "--task") is not None:
        return None
    try:
        return glue_task(name).kind
    except InputError:
        return None  # it is told when the command runs


def add_glue_data(parser):
    """Adds the flag for GLUE's folder."""
    parser.add_argument(
        "--glue-dir",
        metavar="FOLDER",
        default=argparse.SUPPRESS,
        help="GLUE's folder: with --glue, in place of --task, --train, --dev and --metric",
    )


def settle_glue(arguments):
    """Puts what `--glue` and `--glue-dir` stand for among the parsed arguments; other flags win.

    Without `--glue-dir` that is the kind of task and the figure; the files are given.

    Raises InputError where one is without the other, or GLUE has no such task or file.
    """
    folder = vars(arguments).pop("glue_dir", None)
    name = getattr(arguments, "glue", None)
    if name is None:
        if folder is None:
            return
        raise InputError(
            "--glue-dir is GLUE's folder and goes with --glue; give --train and --dev."
        )
    task = glue_task(name)
    known = {"task": task.kind, "metric": task.metric}
    for setting, value in (known if folder is None else glue_settings(name, folder)).items():
        vars(arguments).setdefault(setting, value)
    arguments.glue = task.name
