"""Whether an output may be begun: only what is ours is replaced, and a folder has one owner."""

import contextlib
import dataclasses
import fcntl
import filecmp
import glob
import json
import os
import re
import socket
from pathlib import Path, PurePath

from keras_bert.base.errors import InputError
from keras_bert.base.files import is_temporary, parse_json, system_errors
from keras_bert.base.formatting import listed


def check_output_folder(path, *, is_ours, inputs=(), force=False):
    """Raises `InputError` unless a folder may be written at `path`.

    It may if there is nothing or an empty folder, and with `force` if `is_ours(path)`: the
    folder has the mark of the command that asks. It is never one of the `inputs` of the same call
    (see `reject_input_as_output`).
    """
    path = Path(path)
    if not os.path.lexists(path):
        return
    reject_input_as_output(inputs, path)
    if not path.is_dir():
        raise InputError(f"The output {path} is {_type_of(path)}: give the name of a folder.")
    found = held_names(path)
    if found and not is_ours(path):
        raise InputError(
            f"The output {path} holds something else already ({listed(found, most=3)}): give a new "
            "or an empty folder."
        )
    if found and not force:
        raise InputError.naming(
            "The output {} is there already: give another folder, or {force=True} to replace it.",
            path,
        )


def check_output_file(path, *, is_ours, inputs=(), force=False):
    """Checks a file as `check_output_folder` does a folder; any empty file may be replaced.

    A command without the setting `force` passes True: then a file with its mark is replaced.
    """
    path = Path(path)
    if not os.path.lexists(path):
        return
    reject_input_as_output(inputs, path)
    if not path.is_file():
        raise InputError(f"The output {path} is {_type_of(path)}: give the name of a file.")
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


def _type_of(path):
    """Names what is at a path that cannot be written, for a message."""
    if path.is_dir():
        return "a folder"
    if path.is_file():
        return "a file"
    return "a pipe or a device" if path.exists() else "a link to a file that does not exist"


def check_only_ours(folder, names, is_ours, *, writer):
    """Raises `InputError` if one of the `names` in a folder, or a file in it, is not ours.

    Args:
        folder: what is below it is about to be deleted.
        names: of files and folders in it; those that are missing are left out.
        is_ours: a function of the path of a file, relative to the folder and with "/".
        writer: the command in the message.
    """
    for path in files_below(Path(folder), names):
        relative = path.relative_to(folder).as_posix()
        if not is_ours(relative):
            raise InputError(
                f"The output folder {folder} contains {relative}, which {writer} did not write. It "
                "deletes only what it wrote itself. Move the file, or use another folder."
            )


def files_below(folder, names):
    """Yields the files below some names in a folder, links to folders as files."""
    for path in map(folder.joinpath, names):
        if path.is_dir() and not path.is_symlink():
            yield from files_below(path, held_names(path))
        elif os.path.lexists(path):
            yield path


def reject_input_as_output(inputs, output):
    """Raises `InputError` if an input is the output, or is in it, however it is spelled.

    An input is a path or a glob; a link, also one in a folder that is an input, is what it points
    to, and a hard link is the same file. What is not a path of this machine (`-`, `tfds:…`, another
    file system's) never is.
    """
    target = os.path.realpath(output)
    if not os.path.exists(target):
        return
    for path in map(str, inputs):
        if any(_is_in(place, target) for place in _places_of(path)) or _matches(path, target):
            raise InputError(
                f"The output {output} is also the input, or holds it ({path}): give another output."
            )


def _is_in(path, target):
    """Whether an existing path is another one, or is in it."""
    real = PurePath(os.path.realpath(path))
    return PurePath(target) in (real, *real.parents) or os.path.samefile(real, target)


def _places_of(path):
    """Yields what an input is on this machine: a path, with links that are in it, or a glob's."""
    if "\0" in path:
        return
    if os.path.exists(path):
        yield path
        for pattern in ("*", "*/*") if os.path.isdir(path) else ():  # such as RUN/model/*
            for inner in glob.iglob(f"{glob.escape(path)}/{pattern}"):
                if os.path.islink(inner) and os.path.exists(inner):
                    yield inner
    elif glob.has_magic(path):
        yield from filter(os.path.exists, glob.iglob(path, recursive=True))


def _matches(path, target):
    """Whether a path is that of a glob of Beam's, in which `**` is anything."""
    if "\0" in path or not glob.has_magic(path) or os.path.exists(path):
        return False
    parts = re.split(r"(\*\*|\*|\?|\[[^]]+\])", os.path.realpath(path))
    any_of = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    pattern = "".join(
        any_of.get(part) or (part.replace("[!", "[^") if part.startswith("[") else re.escape(part))
        for part in parts
    )
    try:
        return re.fullmatch(pattern, target, re.DOTALL) is not None
    except re.error:  # not a glob
        return False


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
    """The sorted names in a folder, without those that an interrupted run of ours left."""
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
        """The owner in the result of `to_json`; None if an interruption has cut that off."""
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

    Raises `InputError` that names the process if another one owns the folder.
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
