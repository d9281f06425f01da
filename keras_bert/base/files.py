"""Reading files that somebody else wrote, and writing ours: whole or not at all.

Standard library alone: whatever reads or writes a file, in the jobs or in training, imports this.

Outputs are published: written under a hidden name, flushed, renamed once. What is being written is
in a hidden folder next to its destination, `.NAME.keras-bert-RANDOM`, under its own name. No user
has such a name: whatever carries our mark may be deleted, and nothing else ever is. Its writer
holds a lock on it; what nobody holds was left by an interruption.

An interruption at any moment leaves either the old or the new. A file is replaced by `os.replace`,
a folder that is not empty by Linux's exchange of two names. Two cases need several renames: files
that belong together, and folders if the file system has no exchange. There the hidden folder is
first renamed to `….ready`, which is the moment that decides, and its content is then moved in. The
next writer (or `clear_leftovers`) completes an interrupted move. Until then the name itself is
missing, so that half of the old and half of the new is never read.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.terminal import escaped

_LARGEST = 256 << 20


def read_small(path):
    """The bytes of a file that should be small.

    Raises:
        InputError: it holds more than 256 MiB or has no end (`/dev/zero`), and no more is read; or
            it is a named pipe that no process writes to, which is not waited for.
        OSError: it cannot be opened or read.
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


def possible_path(name: str | os.PathLike[str]) -> Path:
    """The `Path` of a name. Raises `InputError` if the system has none, as of a whole text."""
    path = Path(name)
    try:
        path.exists()
    except OSError as error:
        name = str(path)
        shown = name if len(name) < 100 else f"{name[:100]}…"
        raise InputError(f"{shown} cannot be opened: {error.strerror}.") from error
    return path


def check_regular(path):
    """Raises `InputError` for a pipe, socket or device, which a library would wait for.

    Whoever opens the path reports one that is missing or a folder.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path} is a pipe or a device. A file was expected.")


def _open_at_once(path, flags):
    """Opens a file as `os.open` does, without waiting for a pipe's writer."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)  # for what a writer that is there has yet to write
    return descriptor


# The escapes of a JSON text: a pair of surrogates, half of one (which is the group), any other.
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u([dD][89a-fA-F]\w\w)|.)", re.DOTALL
)
_TYPE_NAMES = {list: "a list", str: "a text", bool: "true or false", int: "a number"}


class NotJson(ValueError):
    """A text cannot be read as JSON. `line` is where, from 1; None if it is the whole."""

    def __init__(self, message, *, line=None):
        super().__init__(message)
        self.line = line


def parse_json(text, *, parse_constant=None, object_pairs_hook=None):
    """The value of a JSON text (str, or bytes in UTF-8).

    `parse_constant` is a function of "NaN", "Infinity" and "-Infinity", which are not JSON; without
    it they are floats. `object_pairs_hook` makes an object of its keys and values, and may raise
    NotJson.

    Raises:
        NotJson: the text is not JSON, or Python cannot read it: nested too deep for its stack, or a
            number of more than 4,300 digits.
    """
    try:
        return json.loads(text, parse_constant=parse_constant, object_pairs_hook=object_pairs_hook)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, line=error.lineno) from None
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start + 1} is not UTF-8") from None
    except RecursionError:
        raise NotJson("it is nested too deep") from None
    except ValueError:
        raise NotJson("it holds a number of thousands of digits") from None


def read_json(path):
    """The object in a JSON file.

    Raises:
        InputError: the file is missing or cannot be read, is not UTF-8, is not JSON (with the
            line) or not an object, or holds a text that is not Unicode.
    """
    try:
        text = read_small(path).decode("utf-8")
        content = parse_json(text)
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder. A JSON file was expected.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}).") from error
    except NotJson as error:
        position = f"{path}, line {error.line}" if error.line else str(path)
        raise InputError(f"{position}: this is not JSON ({error}).") from error
    check_object(content, source=path)
    half = next((match[1] for match in _ESCAPES.finditer(text) if match[1]), None)
    if half is not None:  # which JSON can write, and UTF-8 cannot
        raise InputError(
            f"{path} contains half of a surrogate pair (\\u{half}), which is not a character."
        )
    return content


def check_object(content, *, source):
    """Raises InputError unless the value of a JSON text is an object; `source` names the file."""
    if not isinstance(content, dict):
        type_name = "null" if content is None else _TYPE_NAMES.get(type(content), "a number")
        raise InputError(f"{source} should hold a JSON object, not {type_name}.")


_MARK, _READY, _BEFORE = ".keras-bert-", ".ready", ".before"
_TEMPORARY = re.compile(rf"\.(.+){re.escape(_MARK)}[0-9a-f]{{12}}({re.escape(_READY)})?", re.DOTALL)

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}


def hash_of_file(path):
    """The SHA-256 of a file's content, an object of `hashlib`."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256")


def hash_of_json(value):
    """The SHA-256 of a JSON value, whose objects may have their keys in any order, as a string."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def temporary_name(name):
    """A new hidden name for what is to be called `name`: `.NAME.keras-bert-RANDOM`."""
    return f".{name}{_MARK}{secrets.token_hex(6)}"


def is_temporary(name, target=None):
    """Whether `name` is one of `temporary_name`, for any name or for `target`."""
    match = _TEMPORARY.fullmatch(name)
    return match is not None and target in (None, match[1])


# Libraries put the system's words into errors of their own classes (TensorFlow, safetensors). Some
# can only be about writing; the others count if the text names the place, too.
_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_ANYTHING = (errno.EACCES, errno.EPERM, errno.EIO)


@contextlib.contextmanager
def system_errors(path):
    """Raises `InputError` if the system does not let the body of a `with` write `path`.

    No space, no permission, a read-only disk, a folder that cannot be made: the message has the
    path and the system's words, whether they came as an `OSError` or in a library's own error. An
    `OSError` that names a file elsewhere is about something else, and goes through as it is.
    """
    try:
        yield
    except InputError as error:
        written, words = getattr(error, "cannot_be_written", ("", None))
        if _MARK not in str(written):
            raise
        raise _write_error(path, words) from error  # it was temporary for this one
    except Exception as error:
        words = _words_of(error, os.path.realpath(path))
        if words is None:
            raise
        raise _write_error(path, words) from error


def _write_error(path, words):
    """An attribute, not a class, has the parts: Beam's workers pass on the base class alone."""
    error = InputError(f"{path} cannot be written: {words}.")
    error.cannot_be_written = path, words
    return error


def _words_of(error, path):
    """Returns what the system said about `path`; None if something else failed."""
    if isinstance(error, OSError):
        if isinstance(error, BrokenPipeError):  # the reader of our standard output went away
            return None
        named = error.filename
        if isinstance(named, str | bytes | os.PathLike):
            if not _is_about(os.path.realpath(os.fsdecode(named)), path):
                return None
        return error.strerror or str(error).rstrip(".")
    text = str(error)
    reasons = _WRITING + (_ANYTHING if os.path.dirname(path) in text else ())
    return next((words for words in map(os.strerror, reasons) if words in text), None)


def _is_about(named, path):
    """Whether a file is `path`, in it, temporary for it, or a folder above it."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}{_MARK}")
    return f"{named}/".startswith((f"{path}/", temporary)) or f"{path}/".startswith(f"{named}/")


def new_file(path, *, clear=True):
    """A context manager: gives a path to write a file to, which replaces `path` at the end.

    Files that are written next to it are published with it: `path` must be the file by which
    readers detect the whole. Folders above `path` are made, and a link is followed. If the body
    fails, everything stays as it was.

    Args:
        path: the destination.
        clear: False if `clear_leftovers`, which lists the whole folder, need not be called.

    Raises:
        InputError: the system does not let it be written.
    """
    return _published(path, clear=clear)


def new_folder(path):
    """Gives an empty folder, which replaces whatever is at `path`, as `new_file` for a file.

    The caller decides whether that may be replaced (see `keras_bert.base.ownership`).
    """
    return _published(path, is_folder=True)


@contextlib.contextmanager
def _published(path, *, is_folder=False, clear=True):
    with system_errors(path):
        target = Path(os.path.realpath(path))
        with _temporary(target, clear) as folder:
            if is_folder:
                os.mkdir(folder / target.name)
            yield folder / target.name
            _publish(folder, target)


@contextlib.contextmanager
def scratch_folder(path):
    """Gives an empty hidden folder next to `path` for the body of a `with`; nothing is published.

    Raises `InputError` if the system does not let it be written.
    """
    with system_errors(path), _temporary(Path(os.path.realpath(path))) as folder:
        yield folder


def write_text(path, text):
    """Writes a text file in UTF-8, its line ends as they are."""
    path = Path(path)
    write_texts(path.parent, {path.name: text})


def write_texts(folder, texts):
    """Writes text files that belong together, name -> text.

    The last one is the file that readers look for: who finds it finds the others of this call.
    """
    with new_file(Path(folder) / list(texts)[-1]) as temporary:
        for name, text in texts.items():
            temporary.with_name(name).write_text(text, encoding="utf-8", newline="")


def write_json(path, value):
    """Writes a JSON value as a text file that people can read, in a terminal, too."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(path, escaped(text) + "\n")


def delete(path):
    """Deletes a file or folder of ours; an interruption leaves it whole, or gone by name."""
    path = Path(path)
    with system_errors(path):
        if path.is_dir() and not path.is_symlink():
            temporary = path.with_name(temporary_name(path.name))
            os.rename(path, temporary)
            # What cannot be deleted is hidden.
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def clear_leftovers(path):
    """Deletes what an interrupted process left for `path`, or completes what it had decided."""
    path = Path(os.path.realpath(path))
    _clear(path.parent, path.name)


def clear_leftovers_in(folder, *, owned=False):
    """`clear_leftovers` for every name in a folder.

    `owned` is for the owner of the folder (`keras_bert.base.ownership`): what another process is
    still writing there is deleted too, so that it cannot be published.
    """
    _clear(Path(os.path.realpath(folder)), None, owned)


@contextlib.contextmanager
def _temporary(path, clear=True):
    """A hidden, locked folder next to `path`; it is gone at the end."""
    os.makedirs(path.parent, exist_ok=True)
    if clear:
        clear_leftovers(path)
    folder, lock = _make_locked(path)
    try:
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:  # an interrupt may end the deleting, and this process may live on
            os.close(lock)


def _make_locked(path):
    while True:
        folder = path.with_name(temporary_name(path.name))
        os.mkdir(folder)
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            lock = _lock(folder)
            if folder.exists():
                return folder, lock
            os.close(lock)
        # Another process took it for a leftover before it was locked.


def _publish(folder, path):
    """Moves what is in the hidden `folder` to `path` and next to it."""
    _flush(folder)
    if len(os.listdir(folder)) > 1 or not _replace(folder / path.name, path):
        ready = folder.with_name(folder.name + _READY)
        os.rename(folder, ready)
        _flush_folder(path.parent)
        _move_in(ready, path)
    _flush_folder(path.parent)


def _replace(new, path):
    """Puts `new` in the place of `path` at once; False if that is not possible."""
    try:
        os.replace(new, path)  # over a file, an empty folder or nothing
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return _exchange(new, path)
    return True


def _exchange(a, b):
    """Exchanges two paths at once; False if system or file system cannot do it."""
    import ctypes  # seldom needed, and not free to load

    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if not renameat2(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE):
        return True
    if ctypes.get_errno() in _NO_EXCHANGE:
        return False
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(b))


def _move_in(ready, path):
    """Moves all of a decided folder to its destination, `path` last; may be called again."""
    new, before = ready / path.name, ready / f"{path.name}{_BEFORE}"
    # If both are there, somebody has put something at `path` since: that stays.
    if new.exists() and not (before.exists() and path.exists()):
        if path.exists():
            os.rename(path, before)
        # From z to a: of a tokenizer's files, what can be read alone comes after its config.
        for name in sorted(set(os.listdir(ready)) - {new.name, before.name}, reverse=True):
            os.replace(ready / name, path.with_name(name))
        os.replace(new, path)
        _flush_folder(path.parent)
    shutil.rmtree(ready, ignore_errors=True)


def _clear(folder, wanted, owned=False):
    """Clears what is temporary in a folder for the name `wanted`, None for every name."""
    if not folder.is_dir():
        return
    for name in os.listdir(folder):
        match = _TEMPORARY.fullmatch(name)
        if match is None or wanted not in (None, match[1]):
            continue
        path, lock = folder / name, None
        try:
            lock = _lock(path)
        except FileNotFoundError:
            continue  # another process has just cleared it
        except BlockingIOError:  # somebody is writing
            if not owned:
                continue
        try:
            if match[2] and lock is not None:
                _move_in(path, folder / match[1])
            elif path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:  # a file that a job wrote under a temporary name by itself
                path.unlink(missing_ok=True)
        finally:
            if lock is not None:
                os.close(lock)


def _lock(folder):
    """Locks a folder until what is returned is closed; BlockingIOError if another has locked it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        pass  # a file system without locks
    return descriptor


def _flush(folder):
    """Brings a tree to the disk, its files with the user's umask, whatever wrote them."""
    mode = os.stat(folder).st_mode & 0o666  # made by ourselves, it shows the umask
    for root, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(root, name), os.O_RDONLY)
            try:
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _flush_folder(root)


def _flush_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # not every file system can
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache_folder():
    """The folder of converted models, and of what JAX compiles for a GPU or TPU."""
    folder = os.environ.get("KERAS_BERT_CACHE")
    if folder:
        return Path(folder)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "keras-bert")
