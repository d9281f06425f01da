"""A fingerprint of what a job reads, by which it is known that nothing of it has changed."""

import hashlib

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from data_gen.files import is_local, reading


def fingerprint(windows, counts=None):
    """A text that changes with the content of the files of some windows, not with their names.

    `counts` (V,) are counts of pieces that are read beside them, if any.

    A local file is read for it, at about a gigabyte a second; of another one its file system knows
    a checksum, or at least the size.
    """
    sizes = {window.path: 0 for window in windows}
    for window in windows:
        sizes[window.path] += window.size
    contents = sorted(_content(path, size) for path, size in sizes.items())
    if counts is not None:
        contents.append(str(counts.tolist()))
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _content(path, size):
    if is_local(path):
        with reading(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    try:
        return f"{FileSystems.checksum(path)} {size}"
    except (BeamIOError, NotImplementedError):
        return str(size)
