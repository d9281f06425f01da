"""What is checked before an output is begun: only what this library wrote is ever replaced."""

import filecmp
import os
from pathlib import Path, PurePath

from keras_bert.base.errors import InputError
from keras_bert.base.files.names import is_aside
from keras_bert.base.files.ownership import OWNER_FILE
from keras_bert.base.formatting import listed


def check_output_folder(path, *, is_ours, force=False):
    """Raises `InputError` unless a folder may be written at `path`.

    It may where there is nothing or an empty folder, and with `force` where `is_ours(path)` says
    that the folder is one that the same command wrote.
    """
    path = Path(path)
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError(f"the output {path} is a file: give the name of a folder")
    held = held_names(path)
    if not held:
        return
    if not is_ours(path):
        raise InputError(
            f"the output {path} holds something else already ({listed(held, most=3)}): give a new "
            "or an empty folder"
        )
    if not force:
        raise InputError(
            f"the output {path} is there already: give another folder, or `force=True` to "
            "replace it"
        )


def check_output_file(path, *, is_ours, force=False):
    """As `check_output_folder` for a file; an empty file of anybody's may be replaced."""
    path = Path(path)
    if not os.path.lexists(path):
        return
    if path.is_dir():
        raise InputError(f"the output {path} is a folder: give the name of a file")
    if not path.is_file():
        raise InputError(f"the output {path} is no ordinary file: give the name of one")
    if not path.stat().st_size:
        return
    if not is_ours(path):
        raise InputError(
            f"the output {path} is a file that this command did not write: give another name"
        )
    if not force:
        raise InputError(
            f"the output {path} is there already: give another name, or `force=True` to replace it"
        )


def refuse_input_as_output(inputs, output):
    """Raises `InputError` where an input (a path or a glob) is the output, or lies in it.

    What is no path of this machine (`-`, `tfds:…`, another file system's) cannot be.
    """
    place = Path(os.path.realpath(output))
    for given in map(str, inputs):
        is_glob = any(character in given for character in "*?[")
        if not place.exists() or not (is_glob or os.path.exists(given)):
            continue
        real = PurePath(os.path.realpath(given))
        if place in (real, *real.parents) or (is_glob and place.match(str(real))):
            raise InputError(
                f"the output {output} is also the input, or holds it ({given}): give another output"
            )


def same_files(folder, other, *, besides=()):
    """Whether two folders hold the same names with the same bytes, but for those files' `besides`.

    What a killed run of ours left aside does not count.
    """
    names = held_names(folder)
    if names != held_names(other):
        return False
    for name in names:
        one, two = Path(folder, name), Path(other, name)
        if one.is_dir() or two.is_dir():
            if not (one.is_dir() and two.is_dir() and same_files(one, two, besides=besides)):
                return False
        elif name not in besides and not filecmp.cmp(one, two, shallow=False):
            return False
    return True


def held_names(folder):
    """What a folder holds, sorted, without what a killed run of ours left aside."""
    return sorted(name for name in os.listdir(folder) if not (name == OWNER_FILE or is_aside(name)))
