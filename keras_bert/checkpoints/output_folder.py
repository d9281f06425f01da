"""Writing a folder so that it is there whole or not at all."""

import contextlib
import shutil
from pathlib import Path

from keras_bert.errors import InputError


@contextlib.contextmanager
def written_aside(folder, *, own, overwrite):
    """Gives an empty folder to write in, which takes the place of `folder` at the end.

    If writing fails, `folder` stays as it was; what was left aside is cleared by the next try.

    Args:
        folder: the path that is to be written.
        own: a function that tells whether an existing folder is one that this library wrote.
        overwrite: replace such a one.

    Raises:
        InputError: `folder` is a file, or holds something that may not be replaced.
    """
    folder = Path(folder)
    _check(folder, own=own, overwrite=overwrite)
    aside = folder.with_name(f"{folder.name}.part")
    if aside.exists():
        shutil.rmtree(aside)
    aside.mkdir(parents=True)
    yield aside
    if folder.exists():
        before = folder.with_name(f"{folder.name}.before")
        folder.rename(before)
        aside.rename(folder)
        shutil.rmtree(before)
    else:
        aside.rename(folder)


def _check(folder, *, own, overwrite):
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; a model folder cannot be written there.")
    if not any(folder.iterdir()):
        return
    if not overwrite:
        raise InputError(f"{folder} exists and is not empty; choose another place for the model.")
    if not own(folder):
        raise InputError(
            f"{folder} holds something that this library did not write; it stays as it is."
        )
