"""The task type of a command line, which its flags depend on; found without heavy imports."""

import argparse
import contextlib
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, read_small
from keras_bert.readers.glue import glue_settings, glue_task
from keras_bert.records.stored_tables import is_saved_dataset
from keras_bert.tasks import task_type_named

_DEFAULT = "classifier"


def task_type_to_train(argv):
    """The task type of `--glue NAME`, `--task TASK` or `--settings run.json`."""
    task_type = value_of(argv, "--task")
    glue = value_of(argv, "--glue")
    if task_type is None and glue is not None:
        with contextlib.suppress(InputError):  # raised again when the command runs
            return glue_task(glue).task_type
    if task_type is None:
        task_type = _at(_json(value_of(argv, "--settings")), "settings", "task")
    return _supported(task_type)


def task_type_of(model):
    """The task type of a model folder or the output of a run.

    The default type if there is none: what is wrong with a folder is reported by the command.
    """
    return _supported(next(filter(None, map(_task_in, _configs(model))), None))


def task_type_of_model(argv):
    """The task type of the folder of `--model FOLDER`."""
    model = value_of(argv, "--model")
    return _DEFAULT if model is None else task_type_of(model)


def has_data_folder(argv):
    """Whether `--data` is a folder of pre-training data, not a labelled file or GLUE's folder."""
    data = value_of(argv, "--data")
    if data is None or value_of(argv, "--glue") is not None:
        return False
    return Path(data).is_dir() and not is_saved_dataset(data)


def value_of(argv, flag):
    """The last value of a flag on a command line, or None."""
    value = None
    for position, word in enumerate(argv):
        if word == flag and position + 1 < len(argv):
            value = argv[position + 1]
        if word.startswith(f"{flag}="):
            value = word.partition("=")[2]
    return value


def add_glue_dir(parser):
    """Adds the flag for GLUE's folder."""
    group = next(g for g in parser._action_groups if g.title == "data")
    group.add_argument(
        "--glue-dir",
        metavar="FOLDER",
        default=argparse.SUPPRESS,
        help="GLUE's folder; with --glue, replaces --task, --train, --dev and --metric",
    )


def resolve_glue(arguments):
    """Replaces `--glue` and `--glue-dir` among the parsed arguments; other flags win.

    Without `--glue-dir` they set the task type and the metric only.

    Raises:
        InputError: `--glue-dir` without `--glue`, or GLUE has no such task or file.
    """
    folder = vars(arguments).pop("glue_dir", None)
    name = getattr(arguments, "glue", None)
    if name is None:
        if folder is None:
            return
        raise InputError("--glue-dir requires --glue. For other data, pass --train and --dev.")
    task = glue_task(name)
    settings = {"task": task.task_type, "metric": task.metric}
    for setting, value in (settings if folder is None else glue_settings(name, folder)).items():
        vars(arguments).setdefault(setting, value)
    arguments.glue = task.name


def _supported(task_type):
    try:
        return task_type_named(task_type)
    except InputError:  # reported by the command
        return _DEFAULT


def _task_in(config):
    return _at(_json(config), "keras_bert", "task")


def _configs(model):
    """The paths where a model's config may be; of a named model only the config is downloaded."""
    folder = Path(model)
    configs = [folder / "config.json", folder / "model" / "config.json"]
    if any(path.exists() for path in configs):
        return configs
    from keras_bert.checkpoints import hub, loading

    with contextlib.suppress(InputError):
        if str(model).startswith(hub.SCHEME):
            return [hub.config_of(model)]
        return [loading.local_folder(model) / "config.json"]
    return configs


def _json(path):
    try:
        return None if path is None else parse_json(read_small(path))
    except (OSError, ValueError, InputError):
        return None


def _at(value, *keys):
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
