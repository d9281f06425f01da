"""Opening files that somebody else wrote: small ones whole, and no pipe that nothing writes to."""

import os
import stat

from keras_bert.base.errors import InputError

_LARGEST = 256 << 20


def read_small(path):
    """The bytes of a file that should be small; an `OSError` goes through as it is.

    Raises `InputError` where it holds more than 256 MiB, or has no end (`/dev/zero`), without
    reading more, and for a named pipe that no process writes to, without waiting for one.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        data = file.read(_LARGEST + 1)
        if not data and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise InputError(f"{path} is a pipe that nothing is written to, not a file.")
    if len(data) > _LARGEST:
        raise InputError(
            f"{path} holds more than {_LARGEST >> 20} MiB, which no file of its kind does."
        )
    return data


def check_regular(path):
    """Raises `InputError` for a pipe, socket or device, which a library would wait for.

    What is missing or a folder is for whoever opens it.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path} is a pipe or a device; a file was expected.")


def _open_at_once(path, flags):
    """As `os.open`, without waiting for a pipe's writer."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)  # for what a writer that is there has yet to write
    return descriptor
