"""Models in archives: a `.zip` or `.tar.gz` as Google and TensorFlow Hub hand them out.

They are unpacked aside, and taken out are files alone: a member that is a link or a device, or that
would lie outside its folder, refuses the whole.
"""

import contextlib
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from keras_bert.errors import InputError
from keras_bert.files import system_errors

ENDINGS = (".zip", ".tar.gz", ".tgz", ".tar", ".tar.xz")

_ENCRYPTED = 1  # a bit of a zip member's flags

_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError)


def is_archive(path):
    """Whether a path is that of a file with an archive's ending."""
    return str(path).endswith(ENDINGS) and os.path.isfile(path)


def unpack(archive, folder):
    """Unpacks an archive into an empty folder.

    Raises:
        InputError: it is broken, does not fit on the disk, or a member is no ordinary file or lies
            outside its folder.
    """
    try:
        with _opened(archive) as members, system_errors(folder):
            _check_size(archive, sum(size for _, size, _ in members), folder)
            for name, _, open_member in members:
                place = Path(folder, *_parts(name, archive))
                place.parent.mkdir(parents=True, exist_ok=True)
                with open_member() as source, place.open("wb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)
    except NotImplementedError as error:  # a compression that Python's zipfile does not know
        raise InputError(f"{archive} cannot be unpacked: {error}; pack it anew.") from error
    except _BROKEN as error:
        raise InputError(f"{archive} is not a whole archive: {error}.") from error


@contextlib.contextmanager
def _opened(archive):
    """[(name, size, a function that opens it)] of the files in an archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            if any(member.flag_bits & _ENCRYPTED for member in file.infolist()):
                raise InputError(
                    f"{archive} is locked with a password; unpack it, or pack it anew."
                )
            yield [
                (member.filename, member.file_size, lambda member=member: file.open(member))
                for member in file.infolist()
                if not member.is_dir()
            ]
        return
    with tarfile.open(archive) as file:
        members = [member for member in file.getmembers() if not member.isdir()]
        for member in members:
            if not member.isfile():
                raise InputError(f"{archive} holds {member.name}, which is no ordinary file.")
        yield [
            (member.name, member.size, lambda member=member: file.extractfile(member))
            for member in members
        ]


def _parts(name, archive):
    """The parts of a member's path; InputError where it leads elsewhere."""
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise InputError(f"{archive} names a file outside its folder: {name}.")
    return path.parts


def _check_size(archive, size, folder):
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(
            f"{archive} holds {size / 1e6:,.0f} MB, and the disk of {Path(folder).parent} has "
            f"{free / 1e6:,.0f} MB left: free some space, or set KERAS_BERT_CACHE to a folder on "
            "another disk."
        )
