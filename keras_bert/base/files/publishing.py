"""One way to publish: aside, flushed, one rename.

What is being written lies in a hidden folder beside its place, `.NAME.keras-bert-RANDOM`, which
holds it under its own name. No user has such a name, so whatever carries our mark may be deleted,
and nothing else ever is. Its writer holds a lock on it: what nobody holds was left by a kill.

A kill at any moment leaves the old or the new under the name. Of a file that is `os.replace`; of a
folder that is not empty, Linux exchanges the two names at once. Two cases need more renames than
one: files that belong together, and folders where the file system has no exchange. There the hidden
folder is first renamed to `….ready`, which is the moment that decides. What it holds is then moved
in; if a kill ends that, the next that writes (or calls `clear_leftovers`) goes on with it. Until
then the name itself is missing, so that nobody reads half of the old and half of the new.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
from pathlib import Path

from keras_bert.base.files.system_errors import (
    READY,
    split_temporary,
    system_errors,
    temporary_name,
)

_BEFORE = ".before"

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}


@contextlib.contextmanager
def new_file(path, *, clear=True):
    """Gives a path to write a file to, which takes the place of `path` at the end.

    Files that are written beside it go along, for what belongs together: a reader that finds `path`
    finds them too, so `path` must be the file by which readers know the whole. Folders above
    `path` are made. A link is followed. If the body fails, everything stays as it was.

    `clear` is False where `clear_leftovers` need not be called, which looks at all of the folder.

    Raises `InputError` where the system does not let it be written.
    """
    with system_errors(path):
        target = Path(os.path.realpath(path))
        with _temporary(target, clear) as folder:
            yield folder / target.name
            _publish(folder, target)


@contextlib.contextmanager
def new_folder(path):
    """As `new_file` for a folder: gives an empty one, which replaces whatever lies at `path`.

    Whether that may be replaced is for the caller to know (see `check_output_folder`).
    """
    with system_errors(path):
        target = Path(os.path.realpath(path))
        with _temporary(target) as folder:
            os.mkdir(folder / target.name)
            yield folder / target.name
            _publish(folder, target)


@contextlib.contextmanager
def scratch_folder(path):
    """Gives an empty hidden folder beside `path` for the body of a `with`; nothing is published.

    Raises `InputError` where the system does not let it be written.
    """
    with system_errors(path), _temporary(Path(os.path.realpath(path))) as folder:
        yield folder


def write_text(path, text):
    """Writes a text file in UTF-8, its line ends as they are."""
    with new_file(path) as temporary:
        _write(temporary, text)


def write_texts(folder, texts):
    """Writes text files that belong together, name -> text, the one that readers know them by last.

    Whoever finds that one finds the others, all of this call's.
    """
    *beside, last = texts
    with new_file(Path(folder) / last) as temporary:
        for name in (*beside, last):
            _write(temporary.with_name(name), texts[name])


def write_json(path, value):
    """Writes a JSON value as a text file that people can read."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _write(path, text):
    path.write_text(text, encoding="utf-8", newline="")


def delete(path):
    """Deletes a file or a folder of ours: killed at any moment, it is whole, or gone by name."""
    path = Path(path)
    with system_errors(path):
        if path.is_dir() and not path.is_symlink():
            temporary = path.with_name(temporary_name(path.name))
            os.rename(path, temporary)
            shutil.rmtree(
                temporary, ignore_errors=True
            )  # what resists is hidden, and in nobody's way
        else:
            path.unlink(missing_ok=True)


def clear_leftovers(path):
    """Deletes what a killed process left aside for `path`, or finishes what that had decided."""
    path = Path(os.path.realpath(path))
    _clear(path.parent, path.name)


def clear_leftovers_in(folder, *, owned=False):
    """`clear_leftovers` for every name in a folder.

    `owned` is for who owns the folder (see `keras_bert.base.files.owned`), so that whoever is still
    writing in it is left over too: that is deleted under its hands, and can take no place.
    """
    _clear(Path(os.path.realpath(folder)), None, owned)


@contextlib.contextmanager
def _temporary(path, clear=True):
    """A hidden folder beside `path`, ours alone; it is gone at the end."""
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
    """Moves what lies in the hidden `folder` to `path` and beside it."""
    _flush(folder)
    written = folder / path.name
    if len(os.listdir(folder)) > 1 or not _replace(written, path):
        ready = folder.with_name(folder.name + READY)
        os.rename(folder, ready)
        _flush_folder(path.parent)
        _move_in(ready, path)
    _flush_folder(path.parent)


def _replace(new, path):
    """Puts `new` in the place of `path` at once; False where that cannot be."""
    try:
        os.replace(new, path)  # over a file, an empty folder or nothing
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return _exchange(new, path)
    return True


def _exchange(a, b):
    """Lets two paths change places at once; False where system or file system cannot do it."""
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
    """Moves all of a decided folder to its places, `path` last; goes on where a kill ended it."""
    new, before = ready / path.name, ready / f"{path.name}{_BEFORE}"
    # Where both are there, somebody has put something at `path` since: that stays.
    if new.exists() and not (before.exists() and path.exists()):
        if path.exists():
            os.rename(path, before)
        for name in sorted(set(os.listdir(ready)) - {new.name, before.name}):
            os.replace(ready / name, path.with_name(name))
        os.replace(new, path)
        _flush_folder(path.parent)
    shutil.rmtree(ready, ignore_errors=True)


def _clear(folder, wanted, owned=False):
    """Clears what lies aside in a folder for the name `wanted`, None for every name."""
    if not folder.is_dir():
        return
    for entry in os.listdir(folder):
        name, is_ready = split_temporary(entry)
        if name is None or wanted not in (None, name):
            continue
        found = folder / entry
        try:
            lock = _lock(found)
        except FileNotFoundError:
            continue  # somebody has just cleared it
        except BlockingIOError:  # somebody is writing
            if owned:
                _remove(found)
            continue
        try:
            if is_ready:
                _move_in(found, folder / name)
            else:
                _remove(found)
        finally:
            os.close(lock)


def _remove(path):
    """Deletes a folder, or a file that a job wrote aside by itself."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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
    for place, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(place, name), os.O_RDONLY)
            try:
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _flush_folder(place)


def _flush_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # not every file system can
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
