"""Which kind of task a command line is about, found without loading anything heavy."""

import contextlib
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, read_small
from keras_bert.tasks import finetuned_kinds

_DEFAULT = "classifier"


def kind_given(argv, *, flag):
    """The kind of task that `--task KIND`, or the folder of `--model FOLDER`, says.

    It settles which flags the command has; what is wrong with the folder or the name is told when
    the command runs, so that here the default stands in for what is not found.
    """
    value = value_of(argv, flag)
    if value is None:
        value = value_of(argv, "--settings")
        kind = _at(_json(value), "settings", "task") if value else None
    elif flag == "--task":
        kind = value
    else:
        return kind_of(value)
    return kind if kind in finetuned_kinds() else _DEFAULT


def rows_given(argv):
    """Whether `--data` names a folder of rows, and not a file of labelled examples or GLUE's."""
    data = value_of(argv, "--data")
    return data is not None and value_of(argv, "--glue") is None and Path(data).is_dir()


def kind_of(model):
    """The kind of task that a model folder, or the output of a run, is of; see `kind_given`."""
    kind = None
    for config in _configs(model):
        kind = kind or _at(_json(config), "keras_bert", "task")
    return kind if kind in finetuned_kinds() else _DEFAULT


def _configs(model):
    """The paths at which the config of a model may lie; of a named one it is fetched alone."""
    folder = Path(model)
    if "://" in str(model) or folder.is_file():
        from keras_bert.checkpoints import hub, named_models

        with contextlib.suppress(InputError):
            if str(model).startswith(hub.SCHEME):
                return [hub.config_of(model)]
            folder = named_models.local_folder(model)
    return [folder / "config.json", folder / "model" / "config.json"]


def value_of(argv, flag):
    """What a command line says after a flag, at last where it says it again; or None."""
    found = None
    for place, word in enumerate(argv):
        if word == flag and place + 1 < len(argv):
            found = argv[place + 1]
        if word.startswith(f"{flag}="):
            found = word.partition("=")[2]
    return found


def _json(path):
    try:
        return parse_json(read_small(path))
    except (OSError, ValueError, InputError):
        return None


def _at(value, *keys):
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
