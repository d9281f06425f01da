"""One owner an output folder at a time."""

import contextlib
import dataclasses
import fcntl
import json
import os
import socket
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files.json_text import parse_json
from keras_bert.base.files.system_errors import system_errors

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
        """What `to_json` gave; None where a kill has cut it off."""
        try:
            said = parse_json(text)
            return cls(str(said["host"]), int(said["process"]), str(said["started"]))
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
def owned(folder, *, name=OWNER_FILE):
    """Owns `folder` (made if it is not there) for the body of a `with`.

    The lock is the system's own, on the file `name` in the folder: it ends with the process,
    however that ends, and on shared disks it holds between machines. The file says whose it is.

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
        except OSError:  # a file system without locks: all that is known is what the file says
            if owner and owner.runs:
                file.close()
                raise _in_use(folder, owner, unless=path) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()  # its owner deleted it after we had opened it


def _in_use(folder, owner, unless=None):
    message = (
        f"the output {folder} is in use by {owner or 'another process'}: wait for its end, or give "
        "another folder"
    )
    if unless and not owner.is_here:
        message += f" (if that has ended, delete {unless})"
    return InputError(message)


def _start_of(process):
    """When a process of this machine started, None if it does not run."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        return "unknown" if _is_running(process) else None


def _is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
