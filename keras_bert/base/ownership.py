"""Whether an output may be begun: only what is ours is replaced, and a folder has one owner."""

import contextlib
import dataclasses
import fcntl
import filecmp
import json
import os
import socket
from pathlib import Path, PurePath

from keras_bert.base.errors import InputError
from keras_bert.base.files import is_temporary, parse_json, system_errors
from keras_bert.base.formatting import listed


def check_output_folder(path, *, is_ours, force=False):
    """Raises `InputError` unless a folder may be written at `path`.

    It may where there is nothing or an empty folder, and with `force` where `is_ours(path)`: the
    folder is one that the same command wrote.
    """
    path = Path(path)
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError(f"The output {path} is a file: give the name of a folder.")
    held = held_names(path)
    if held and not is_ours(path):
        raise InputError(
            f"The output {path} holds something else already ({listed(held, most=3)}): give a new "
            "or an empty folder."
        )
    if held and not force:
        raise InputError.naming(
            "The output {} is there already: give another folder, or {force=True} to replace it.",
            path,
        )


def check_output_file(path, *, is_ours, force=False):
    """As `check_output_folder` for a file; an empty file of anybody's may be replaced."""
    path = Path(path)
    if not os.path.lexists(path):
        return
    if path.is_dir():
        raise InputError(f"The output {path} is a folder: give the name of a file.")
    if not path.is_file():
        raise InputError(f"The output {path} is a pipe or a device: give the name of a file.")
    is_empty = not path.stat().st_size
    if not is_empty and not is_ours(path):
        raise InputError(
            f"The output {path} is a file that this command did not write: give another name."
        )
    if not is_empty and not force:
        raise InputError.naming(
            "The output {} is there already: give another name, or {force=True} to replace it.",
            path,
        )


def reject_input_as_output(inputs, output):
    """Raises `InputError` where an input (a path or a glob) is the output, or is in it.

    What is not a path of this machine (`-`, `tfds:…`, another file system's) never is.
    """
    target = Path(os.path.realpath(output))
    for path in map(str, inputs):
        is_glob = any(character in path for character in "*?[")
        if not target.exists() or not (is_glob or os.path.exists(path)):
            continue
        real = PurePath(os.path.realpath(path))
        if target in (real, *real.parents) or (is_glob and target.match(str(real))):
            raise InputError(
                f"The output {output} is also the input, or holds it ({path}): give another output."
            )


def same_files(folder, other, *, besides=()):
    """Whether two folders hold the same names with the same bytes, except for files in `besides`.

    What an interrupted run of ours left does not count.
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
    """What a folder holds, sorted, without what an interrupted run of ours left."""
    return sorted(
        name for name in os.listdir(folder) if not (name == OWNER_FILE or is_temporary(name))
    )


OWNER_FILE = ".keras-bert-owner"


@dataclasses.dataclass(frozen=True)
class Owner:
    """A process, wherever it runs. `started` tells it from a later one of the same number."""

    host: str
    process: int
    started: str

    @classmethod
    def this(cls):
        """The process that asks."""
        return cls(socket.gethostname(), os.getpid(), _start_of(os.getpid()))

    @classmethod
    def from_json(cls, text):
        """What `to_json` returned; None where an interruption has cut it off."""
        try:
            owner = parse_json(text)
            return cls(str(owner["host"]), int(owner["process"]), str(owner["started"]))
        except (ValueError, KeyError, TypeError):
            return None

    def to_json(self):
        return json.dumps(dataclasses.asdict(self))

    @property
    def is_here(self):
        """Whether it is, or was, a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def runs(self):
        """Whether it is running; True for another machine's, which cannot be asked."""
        return not self.is_here or _start_of(self.process) == self.started

    def __str__(self):
        return f"process {self.process}" + ("" if self.is_here else f" on {self.host}")


@contextlib.contextmanager
def lock_folder(folder, *, name=OWNER_FILE):
    """Owns `folder` (made if it is not there) for the body of a `with`.

    The lock is the system's own, on the file `name` in the folder: it ends with the process,
    however that ends, and on shared disks it holds between machines. The file names the owner.
    (The package `filelock` leaves its file in the folder, and does not name the owner.)

    Raises `InputError` that names the process where another one owns the folder.
    """
    folder = Path(folder)
    with system_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = _locked(folder / name, folder)
    with file:
        try:
            with system_errors(folder):
                file.truncate()
                file.write(Owner.this().to_json().encode())
                file.flush()
            yield
        finally:
            (folder / name).unlink(missing_ok=True)


def _locked(path, folder):
    """The open and locked file at `path`."""
    while True:
        file = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        owner = Owner.from_json(file.read())
        file.seek(0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise _in_use(folder, owner) from None
        except OSError:  # a file system without locks: the file is all there is to go by
            if owner and owner.runs:
                file.close()
                raise _in_use(folder, owner, unless=path) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()  # its owner deleted it after we had opened it


def _in_use(folder, owner, unless=None):
    advice = f" (if that has ended, delete {unless})" if unless and not owner.is_here else ""
    return InputError(
        f"The output {folder} is in use by {owner or 'another process'}: wait for its end, or give "
        f"another folder{advice}."
    )


def _start_of(process):
    """When a process of this machine started, None if it does not run."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"
