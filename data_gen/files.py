"""Files on Beam's file systems, as inputs and outputs, and descriptors of parts of them."""

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from keras_bert.base import files
from keras_bert.base.errors import InputError
from keras_bert.records.file_formats import GZIP, PARQUET, decompressed, gzip_errors

CHUNK_BYTES = 4 << 20


class Window(NamedTuple):
    """The documents of `path` that begin from byte `start` up to `stop` (None: the end)."""

    path: str
    format: str | None  # None: to be detected from the content
    start: int
    stop: int | None
    size: int  # its bytes on disk


class Block(NamedTuple):
    """A run of documents from `start` to `end` of a file (None: to its end).

    The offsets are bytes of a text file, rows of a Parquet file, records of a tfds shard. A
    `stream` cannot be entered in its middle: it is one block of any length.

    `digest` is a hash of the documents, `size` their bytes. `eval_documents` and `eval_size` count
    those with a hash below the limit that was asked for, `lowest` and `highest` are the ends of
    their hashes. `counts` are pairs (name, number) of what was left out. `dropped` are the hashes
    of documents that are read from another block.
    """

    path: str
    format: str
    start: int
    end: int | None
    stream: bool = False
    digest: bytes = b""
    documents: int = 0
    size: int = 0
    eval_documents: int = 0
    eval_size: int = 0
    lowest: int = 2**64
    highest: int = -1
    counts: tuple = ()
    dropped: tuple = ()


def is_local(path):
    """Whether a path is one of this machine, and not another file system's (`gs://…`)."""
    return "://" not in str(path)


def sizes(patterns):
    """The sizes of all files that the patterns (paths or globs) match, by path.

    Raises `InputError` if a pattern matches nothing, or a file is empty.
    """
    sizes_by_path = {}
    for pattern in [patterns] if isinstance(patterns, str) else map(str, patterns):
        matches = _matches(pattern)
        if is_local(pattern) and pattern not in matches and os.path.exists(pattern):
            matches = {pattern: os.stat(pattern).st_size}  # a name with brackets, say
        if not matches:
            problem = "No file matches" if set("*?[") & set(pattern) else "There is no file"
            raise InputError(f"{problem} {pattern}. Expected a path or a glob of text files.")
        sizes_by_path |= matches
    for path, size in sizes_by_path.items():
        if is_local(path):
            _check_is_a_file(path)
        if not size:
            raise InputError(f"{path} is empty. Remove it from the input.")
    return sizes_by_path


def _matches(pattern):
    """The sizes of the files that a path or a glob matches, by path."""
    # Beam finds nothing for a glob without a folder.
    is_name = is_local(pattern) and "/" not in pattern
    try:
        matches = FileSystems.match([f"./{pattern}" if is_name else pattern])[0].metadata_list
    except (BeamIOError, ValueError) as error:
        raise InputError(f"Could not list the input {pattern}: {error}.") from None
    return {
        match.path.removeprefix("./" if is_name else ""): match.size_in_bytes for match in matches
    }


def _check_is_a_file(path):
    """Raises `InputError` if a path of this machine is a folder, or can be read only once."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder. Expected the files in it, such as {path}/*.txt.")
    if not stat.S_ISREG(mode):
        raise InputError(
            f"{path} is a pipe or a device, but the text is read more than once. Write it to a "
            "file first."
        )


def head(path, size):
    """The first `size` bytes of a file as they are."""
    with open_file(path) as file:
        return file.read(size)


def detect(head):
    """ "gzip", "parquet" or "text", detected from a file's first bytes and not from its name."""
    return "gzip" if head[:2] == GZIP else "parquet" if head[:4] == PARQUET else "text"


def chunks(path, *, start=0, end=None, compressed=False, size=CHUNK_BYTES):
    """Yields the bytes of a file from `start` to `end` (None: to its end), `size` at a time.

    Of a compressed file it yields all that the file holds, decompressed.
    """
    with open_file(path) as file:
        if compressed:
            with gzip_errors(path), decompressed(file) as stream:
                while chunk := stream.read(size):
                    yield chunk
            return
        if start:
            file.seek(start)
        left = None if end is None else end - start
        while left != 0:
            chunk = file.read(size if left is None else min(size, left))
            if not chunk:
                return
            left = None if left is None else left - len(chunk)
            yield chunk


def open_file(path):
    """Opens a file to read its bytes as they are."""
    try:
        if is_local(path):  # a fifth of the time, which counts if there are many files
            return open(path, "rb")
        return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    except (BeamIOError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}.") from None


@contextlib.contextmanager
def new_file(path):
    """Yields the `Path` of a local file to write, which is at `path` at the end, complete.

    A file for another file system is written here, copied there under a temporary name of
    `keras_bert.base.files`, then renamed. `OutputFolder` clears what an earlier process left.

    Raises `InputError` if it cannot be written.
    """
    if is_local(path):
        with files.new_file(path, clear=False) as temporary:
            yield temporary
        return
    # Without a name: an interruption leaves nothing.
    with files.system_errors(path), tempfile.TemporaryFile() as local:
        yield Path(f"/dev/fd/{local.fileno()}")
        local.seek(0)
        above, _, name = str(path).rpartition("/")
        temporary = f"{above}/{files.temporary_name(name)}"
        with FileSystems.create(
            temporary, "application/octet-stream", CompressionTypes.UNCOMPRESSED
        ) as target:
            shutil.copyfileobj(local, target, CHUNK_BYTES)
        FileSystems.rename([temporary], [str(path)])


def clear_leftovers(path):
    """`keras_bert.base.files.clear_leftovers` for paths of any file system of Beam's."""
    if is_local(path):
        files.clear_leftovers(path)
        return
    above, _, name = str(path).rpartition("/")
    matches = FileSystems.match([f"{above}/.*"])[0].metadata_list
    left = [
        match.path for match in matches if files.is_temporary(match.path.rpartition("/")[2], name)
    ]
    if left:
        FileSystems.delete(left)


def fingerprint(windows, counts=None):
    """A hash of the content of the files of some windows, whatever their names.

    `counts` (V,) are counts of tokens that are read with them, if any. Local files are read, at
    about a gigabyte per second, and so are those of a file system without checksums.
    """
    sizes = {window.path: 0 for window in windows}
    for window in windows:
        sizes[window.path] += window.size
    contents = sorted(content_hash(path, size) for path, size in sizes.items())
    if counts is not None:
        contents.append(str(counts.tolist()))
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def content_hash(path, size):
    """A hash of the content of a file of this size: the file system's own, if it has one."""
    checksum = None if is_local(path) else _checksum(path)
    if checksum is not None:
        return f"{checksum} {size}"
    digest = hashlib.sha256()
    for chunk in chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def _checksum(path):
    """A file system's checksum of a file, or None: Beam lets it return the size instead."""
    try:
        checksum = FileSystems.checksum(path)
    except (BeamIOError, NotImplementedError):
        return None
    return None if not checksum or str(checksum).isdecimal() else checksum
