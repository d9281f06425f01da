"""The folders that exports write: of a model, and in it of its versions."""

import contextlib
import os
from pathlib import Path

from keras_bert.errors import InputError


def model_folders(folders):
    """{name: folder} of the models in some folders.

    Raises:
        InputError: there is none in one of them, or two have the same name.
    """
    found = {}
    for given in map(Path, folders):
        inside = [given] if version_folders(given) else _models_in(given)
        if not inside:
            raise InputError(
                f"{given} holds no exported model; give a folder that keras-bert export wrote, "
                "with numbered versions in it, or one that holds such folders."
            )
        for folder in inside:
            name = Path(os.path.abspath(folder)).name  # of a link, its own
            if name in found:
                raise InputError(f"{found[name]} and {folder} would both be called {name}.")
            found[name] = folder
    return found


def _models_in(folder):
    with contextlib.suppress(OSError):
        return sorted(entry for entry in folder.iterdir() if version_folders(entry))
    return []


def version_folders(folder):
    """The version folders of a model, the oldest first."""
    found = []
    with contextlib.suppress(OSError):
        found = [entry for entry in folder.iterdir() if entry.name.isdecimal() and entry.is_dir()]
    return sorted(found, key=lambda entry: int(entry.name))
