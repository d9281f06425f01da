"""Models in archives: a `.zip` or `.tar.gz`, as Google and TensorFlow Hub distribute them.

zipfile and tarfile (with its `data` filter) unpack them. The limits here are checked before
anything is written, because neither bounds the number or size of the members of a hostile archive.
"""

import contextlib
import gzip
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from functools import partial
from pathlib import Path, PurePosixPath

from keras_bert.base.errors import InputError, input_errors, reason_of
from keras_bert.base.files import system_errors

ENDINGS = (".zip", ".tar.gz", ".tgz", ".tar", ".tar.xz")

# A model has a dozen files, in a folder or two.
_MAX_MEMBERS = 10_000
_MAX_DEPTH = 32
_MAX_NAME = 1_000

# Trained weights hardly compress. An archive that unpacks to more than 20 times its size is not a
# model, unless it is small (new weights, many of them zeros).
_MAX_RATIO = 20
_SMALL = 256 << 20

# tarfile reads the headers for long names and the like into memory, whatever their size.
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_MAX_HEADER = 1 << 20

_PACK = "Pack the model's folder alone."

_ENCRYPTED = 1  # a bit of a zip member's flags

# What zipfile and tarfile raise for a broken file: ValueError for an invalid number or UTF-8,
# RecursionError for thousands of tar headers in a row.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RecursionError,
    ValueError,
)


def is_archive(path):
    """Whether a path is that of a file with an archive's ending."""
    return str(path).endswith(ENDINGS) and os.path.isfile(path)


def unpack(archive, folder, *, root):
    """Unpacks one folder of an archive into an empty folder.

    `root` is a function from the paths of all files in the archive to the folder to be unpacked,
    which may raise `InputError`. Returns the path of what was unpacked.

    Raises:
        InputError: the archive is broken, has too many files, too many bytes for its size or for
            the disk, or a member that is a link or is outside its folder. Nothing is written then.
    """

    def message(error):
        if isinstance(error, NotImplementedError):  # of zipfile, for a compression
            return f"{archive} cannot be unpacked: {error}. Pack it again."
        if isinstance(error, _BROKEN):
            return (
                f"{archive} is not a whole archive: {reason_of(error)}. Download or pack it again."
            )
        return None

    with contextlib.ExitStack() as stack:
        with input_errors(message):
            files = _files_in(archive, stack)
        wanted = root(list(files))
        chosen = {path: file for path, file in files.items() if path.is_relative_to(wanted)}
        _check_space(archive, sum(size for size, _ in chosen.values()), folder)
        with system_errors(folder), input_errors(message):
            for path, (_, extract) in chosen.items():
                extract(folder, path)
    return Path(folder, wanted)


def _files_in(archive, stack):
    """{path: (size, function of a folder and the path that extracts it)}; `stack` closes the file.

    All members are checked.
    """
    if zipfile.is_zipfile(archive):
        members = _zip_members(stack.enter_context(zipfile.ZipFile(archive)), archive)
    else:
        members = _tar_members(stack.enter_context(tarfile.open(archive, tarinfo=_Member)), archive)
    limit = max(_SMALL, _MAX_RATIO * os.path.getsize(archive))
    files, total = {}, 0
    for count, (name, is_folder, size, extract) in enumerate(members):
        total += size
        if count >= _MAX_MEMBERS:
            raise InputError(
                f"{archive} has more than {_MAX_MEMBERS:,} members. Expected an archive of one "
                f"model. {_PACK}"
            )
        if total > limit:
            raise InputError(
                f"{archive} would unpack to {total / 1e6:,.0f} MB or more, over {_MAX_RATIO} times "
                "its size. Weights do not compress that well. If you trust it, unpack it yourself "
                "and give the folder."
            )
        if not is_folder:
            files[_path(name, archive)] = size, extract
    return files


def _zip_members(file, archive):
    """Yields (name, whether it is a folder, size, function that extracts it) of each member."""
    for member in file.infolist():
        if member.flag_bits & _ENCRYPTED:
            raise InputError(f"{archive} is encrypted. Unpack it, or pack it without a password.")
        name = member.filename  # not `is_dir`, which fails for an empty name
        yield name, name.endswith("/"), member.file_size, partial(_extract_zipped, file, member)


def _tar_members(file, archive):
    """As `_zip_members`. Headers are read one at a time: the next follows the member's bytes."""
    for member in file:
        if not (member.isdir() or member.isfile()) or member.issparse():
            raise InputError(
                f"{archive} contains {member.name!r}, which is not an ordinary file. Pack the "
                "files themselves, without links."
            )
        yield member.name, member.isdir(), member.size, partial(_extract_tarred, file, member)


def _extract_zipped(file, member, folder, path):
    member.filename = str(path)
    file.extract(member, folder)


def _extract_tarred(file, member, folder, path):
    file.extract(member.replace(name=str(path)), folder, filter="data")


class _Member(tarfile.TarInfo):
    """A member of a tar; a header of more than a megabyte is an error."""

    @classmethod
    def frombuf(cls, buf, encoding, errors):
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HEADERS and member.size > _MAX_HEADER:
            raise tarfile.ReadError("a header is too long")
        return member


def _path(name, archive):
    """The path of a member; InputError if it is outside the folder, or none at all.

    zipfile would drop such parts of a name silently, and two members could become one file.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise InputError(f"{archive} names a file outside its folder: {name!r}. {_PACK}")
    if "\0" in name:
        raise InputError(f"{archive} names a file with a null character: {name!r}. {_PACK}")
    if len(path.parts) > _MAX_DEPTH or len(name) > _MAX_NAME:
        raise InputError(
            f"{archive} contains a file {len(path.parts):,} folders deep, with a name of "
            f"{len(name):,} characters. Expected at most {_MAX_DEPTH} and {_MAX_NAME:,}. {_PACK}"
        )
    return path


def _check_space(archive, size, folder):
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(
            f"{archive} contains {size / 1e6:,.0f} MB, and the disk of {Path(folder).parent} has "
            f"{free / 1e6:,.0f} MB left. Free some space, or set KERAS_BERT_CACHE to a folder on "
            "another disk."
        )
