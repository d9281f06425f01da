"""The task type of a command line, which its flags depend on; without heavy imports."""

import argparse
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, read_small
from keras_bert.inference.settings import ABOUT_EXPORT, export_version
from keras_bert.readers.glue import glue_settings, glue_task
from keras_bert.readers.retrieval_folder import is_retrieval_folder
from keras_bert.records.file_formats import is_saved_dataset
from keras_bert.tasks import task_type_named

_DEFAULT = "classifier"


def first_arguments(argv):
    """The command, and the arguments that the flags of a command depend on; None if not given.

    The parser of the command reads them again, together with all others.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("command", nargs="?")
    for name in ("task", "glue", "settings", "model", "data", "index", "teacher"):
        parser.add_argument(f"--{name}", nargs="?")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--static", action="store_true")
    for names in (("-h", "--help"), ("--help-all",)):
        parser.add_argument(*names, action="store_true")
    return parser.parse_known_args(argv)[0]


def task_type_to_train(first):
    """The task type of `--task TASK`, `--glue NAME` or `--settings FILE`.

    What is wrong with these is reported by the command.
    """
    try:
        if first.task is not None:
            return task_type_named(first.task)
        if first.glue is not None:
            return glue_task(first.glue).task_type
        if first.settings is not None:
            from keras_bert.training.run_folder import read_settings

            settings = read_settings(first.settings, command=first.command)
            return task_type_named(str(settings.get("task", _DEFAULT)))
    except (InputError, OSError):
        pass
    return _DEFAULT


def task_type_of_teacher(first):
    """The task type of the folder of `--teacher FOLDER`, or of `--settings FILE`."""
    return task_type_to_train(first) if first.teacher is None else task_type_of(first.teacher)


def task_type_of(model):
    """The task type of a model folder or the output of a run.

    The default type if there is none: what is wrong with a model is reported by the command, which
    loads it.
    """
    return stored_task_type(model) or _DEFAULT


def stored_task_type(model):
    """The task type that a model folder or the output of a run has; None if it has none."""
    try:
        if (version := export_version(model)) is not None:
            about = version / ABOUT_EXPORT
            return task_type_named(str(parse_json(read_small(about))["task"]))
        for config in _configs(model):
            task_type = _task_type_in(config)
            if task_type is not None:
                return task_type_named(task_type)
    except (InputError, OSError, MemoryError, KeyError, TypeError):
        pass
    return None


def task_type_of_model(first):
    """The task type of the folder of `--model FOLDER`."""
    return _DEFAULT if first.model is None else task_type_of(first.model)


def task_type_of_models(first):
    """The task type of the last of `--models FOLDER FOLDER` that has one."""
    task_types = filter(None, map(stored_task_type, reversed(first.models or ())))
    return next(task_types, _DEFAULT)


def has_data_folder(first):
    """Whether `--data` is a folder of pre-training data, not a labelled file or GLUE's folder."""
    if first.data is None or first.glue is not None:
        return False
    is_labelled = is_saved_dataset(first.data) or is_retrieval_folder(first.data)
    return Path(first.data).is_dir() and not is_labelled


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


def _configs(model):
    """The paths where a model's config may be; of a named model only the config is downloaded.

    A file has word vectors, and no task.
    """
    folder = Path(model)
    if folder.is_file():
        return []
    configs = [folder / "config.json", folder / "model" / "config.json"]
    if any(path.exists() for path in configs):
        return configs
    from keras_bert.checkpoints import hub, locations

    if str(model).startswith(hub.SCHEME):
        return [hub.config_of(model)]
    return [locations.local_folder(model) / "config.json"]


def _task_type_in(config):
    """The task type in a config.json, or of the folder of sentence-transformers that it is in.

    None if it has none or cannot be read.
    """
    from keras_bert.checkpoints.sentence_transformers import is_text_embedder

    try:
        task_type = parse_json(read_small(config))["keras_bert"]["task"]
    except (OSError, ValueError, TypeError, KeyError):  # an `InputError` is a ValueError
        return "text-embedding" if is_text_embedder(config.parent) else None
    return task_type if isinstance(task_type, str) else None
