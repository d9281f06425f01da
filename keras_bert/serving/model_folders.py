"""The folders that exports write: of a model, and in it of its versions."""

import contextlib
import os
import stat
from pathlib import Path

from keras_bert.base.errors import InputError


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
                "with versions in it that are numbered up to 2^63 - 1, or one that holds such "
                "folders."
            )
        for folder in inside:
            name = Path(os.path.abspath(folder)).name  # of a link, its own
            # As REST's addresses have it; the name stands in lines of the log and of metrics, too.
            if not name or ":" in name or not name.isprintable():
                raise InputError(
                    f"The folder {str(folder)!r} cannot name a model: a name has no colon and no "
                    "control characters. Rename the folder."
                )
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
        found = [entry for entry in folder.iterdir() if _is_version(entry.name) and entry.is_dir()]
    return sorted(found, key=lambda entry: int(entry.name))


def _is_version(name):
    """Whether a name is a number that the messages of TensorFlow Serving have room for."""
    return name.isascii() and name.isdecimal() and int(name) < 2**63


def check_files(folder):
    """Raises OSError where something in a folder, at any depth, is neither a file nor a folder.

    Whoever reads a pipe waits for somebody to write to it, and nothing can break that off.
    """
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # a link to nothing
            mode = path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                break
    else:
        return
    raise OSError(f"{path.relative_to(folder)} is not a regular file.")
