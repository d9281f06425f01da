"""Models in archives: a `.zip` or `.tar.gz` as Google and TensorFlow Hub hand them out.

What an archive holds is looked at before anything is written: how many files and bytes there are,
and that each is an ordinary file inside its folder. Then the files of one model are unpacked.
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

from keras_bert.base.errors import InputError
from keras_bert.base.files import system_errors

ENDINGS = (".zip", ".tar.gz", ".tgz", ".tar", ".tar.xz")

# A model has a dozen files, in a folder or two.
_MOST_MEMBERS = 10_000
_MOST_PARTS = 32
_LONGEST_NAME = 1_000

# Trained weights hardly get smaller in an archive: what unpacks to more than 20 times its size is
# no model, unless it is small (new weights, many of them zeros).
_MOST_TIMES = 20
_SMALL = 256 << 20

# Headers of a tar that say more of the next member, such as a long name. tarfile reads them into
# memory, whatever their size.
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_LONGEST_HEADER = 1 << 20

_ENCRYPTED = 1  # a bit of a zip member's flags

# What zipfile and tarfile raise for a broken file: ValueError where it has no number or no UTF-8,
# RecursionError where a tar's header follows on a header thousands of times.
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

    Args:
        archive: the path of the archive.
        folder: the folder to unpack into.
        root: a function from the paths of all files in the archive to the folder to be unpacked,
            which may raise `InputError`.

    Returns:
        The path of what was unpacked: `folder` and what `root` has returned.

    Raises:
        InputError: the archive has too many files, too many bytes for its size or for the disk, or
            a member that is no ordinary file or is outside its folder, all of which is known before
            anything is written; or it is broken.
    """
    with contextlib.ExitStack() as stack:
        with _archive_errors(archive):
            files = _files_in(archive, stack)
        wanted = root(list(files))
        chosen = {path: file for path, file in files.items() if path.is_relative_to(wanted)}
        _check_space(archive, sum(size for size, _ in chosen.values()), folder)
        with system_errors(folder), _archive_errors(archive):
            for path, (_, extract) in chosen.items():
                extract(folder, path)
    return Path(folder, wanted)


@contextlib.contextmanager
def _archive_errors(archive):
    """Makes one sentence, an InputError, of what zipfile and tarfile say to a broken archive."""
    try:
        yield
    except InputError:
        raise
    except NotImplementedError as error:  # a compression that Python's zipfile does not know
        raise InputError(f"{archive} cannot be unpacked: {error}; pack it anew.") from error
    except _BROKEN as error:
        said = (str(error) or type(error).__name__).splitlines()[0].rstrip(".:")
        raise InputError(f"{archive} is not a whole archive: {said}.") from error


def _files_in(archive, stack):
    """{path: (size, a function of a folder and the path that extracts it there)}, all checked.

    The archive stays open for as long as the `stack`.
    """
    if zipfile.is_zipfile(archive):
        members = _zip_members(stack.enter_context(zipfile.ZipFile(archive)), archive)
    else:
        members = _tar_members(stack.enter_context(tarfile.open(archive, tarinfo=_Member)), archive)
    most = max(_SMALL, _MOST_TIMES * os.path.getsize(archive))
    files, total = {}, 0
    for count, (name, is_folder, size, extract) in enumerate(members):
        total += size
        if count >= _MOST_MEMBERS:
            raise InputError(
                f"{archive} has more than {_MOST_MEMBERS:,} members; a model has a few files. Give "
                "an archive of the model's folder alone."
            )
        if total > most:
            raise InputError(
                f"{archive} would unpack to {total / 1e6:,.0f} MB or more, over {_MOST_TIMES} "
                "times its size; weights do not get that small. Unpack it yourself, if you trust "
                "it, and give the folder."
            )
        if not is_folder:
            files[_path(name, archive)] = size, extract
    return files


def _zip_members(file, archive):
    """(name, whether it is a folder, size, a function that extracts it) of each member."""
    for member in file.infolist():
        if member.flag_bits & _ENCRYPTED:
            raise InputError(f"{archive} is locked with a password; unpack it, or pack it anew.")
        extract = partial(_extract_zipped, file, member)
        name = member.filename  # which may be empty: `is_dir` fails then
        yield name, name.endswith("/"), member.file_size, extract


def _tar_members(file, archive):
    """As `_zip_members`. Headers are read one at a time: the next is beyond the member's bytes."""
    for member in file:
        if not (member.isdir() or member.isfile()) or member.issparse():
            raise InputError(f"{archive} holds {member.name!r}, which is no ordinary file.")
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
        if member.type in _HEADERS and member.size > _LONGEST_HEADER:
            raise tarfile.ReadError("a header is too long")
        return member


def _path(name, archive):
    """The path of a member; InputError where it leads elsewhere, or nowhere."""
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise InputError(f"{archive} names a file outside its folder: {name!r}.")
    if "\0" in name:
        raise InputError(f"{archive} names a file with a null character: {name!r}.")
    if len(path.parts) > _MOST_PARTS or len(name) > _LONGEST_NAME:
        raise InputError(
            f"{archive} holds a file {len(path.parts):,} folders deep, with a name of "
            f"{len(name):,} characters; at most {_MOST_PARTS} and {_LONGEST_NAME:,} are unpacked."
        )
    return path


def _check_space(archive, size, folder):
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(
            f"{archive} holds {size / 1e6:,.0f} MB, and the disk of {Path(folder).parent} has "
            f"{free / 1e6:,.0f} MB left: free some space, or set KERAS_BERT_CACHE to a folder on "
            "another disk."
        )
