"""What the system says when something cannot be written, as one sentence; our hidden names."""

import contextlib
import errno
import os
import re
import secrets

from keras_bert.base.errors import InputError

MARK = ".keras-bert-"
READY = ".ready"

_TEMPORARY = re.compile(rf"\.(.+){re.escape(MARK)}[0-9a-f]{{12}}({re.escape(READY)})?", re.DOTALL)


def temporary_name(name):
    """A new hidden name for what is to be called `name`: `.NAME.keras-bert-RANDOM`."""
    return f".{name}{MARK}{secrets.token_hex(6)}"


def is_temporary(name, of=None):
    """Whether something is called as `temporary_name` calls it, for any name or the one given."""
    match = _TEMPORARY.fullmatch(name)
    return match is not None and of in (None, match[1])


def split_temporary(name):
    """What a hidden name is for, and whether it ends in READY; (None, False) if it is not ours."""
    match = _TEMPORARY.fullmatch(name)
    return (match[1], match[2] is not None) if match else (None, False)


# Libraries put the system's words into errors of their own classes (TensorFlow, safetensors). Some
# can only be about writing; the others count where the text names the place, too.
_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_ANYTHING = (errno.EACCES, errno.EPERM, errno.EIO)


@contextlib.contextmanager
def system_errors(path):
    """Raises `InputError` where the system does not let the body of a `with` write `path`.

    No space, no permission, a read-only disk, a folder that cannot be made: the sentence has the
    path and the system's words, whether they came as an `OSError` or in a library's own error. An
    `OSError` that names a file elsewhere is about something else, and goes through as it is.
    """
    try:
        yield
    except InputError as error:
        written, words = getattr(error, "cannot_be_written", ("", None))
        if MARK not in str(written):
            raise
        raise _refusal(path, words) from error  # it was aside for this one
    except Exception as error:
        words = _words_of(error, os.path.realpath(path))
        if words is None:
            raise
        raise _refusal(path, words) from error


def _refusal(path, words):
    """The sentence, which knows its parts: with a class of its own, a job would not know it."""
    refusal = InputError(f"{path} cannot be written: {words}")
    refusal.cannot_be_written = path, words
    return refusal


def _words_of(error, path):
    """What the system said about `path`; None where it was something else that failed."""
    if isinstance(error, OSError):
        if isinstance(error, BrokenPipeError):  # the reader of our standard output went away
            return None
        named = error.filename
        if isinstance(named, str | bytes | os.PathLike):
            if not _is_about(os.path.realpath(os.fsdecode(named)), path):
                return None
        return error.strerror or str(error)
    text = str(error)
    known = _WRITING + (_ANYTHING if os.path.dirname(path) in text else ())
    return next((words for words in map(os.strerror, known) if words in text), None)


def _is_about(named, path):
    """Whether a file is `path`, in it, aside for it, or a folder above it."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}{MARK}")
    return f"{named}/".startswith((f"{path}/", temporary)) or f"{path}/".startswith(f"{named}/")
