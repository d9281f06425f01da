"""A fingerprint of what a job reads, by which it is known that nothing of it has changed."""

import hashlib

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from data_gen.files import chunks, is_local


def fingerprint(windows, counts=None):
    """A text that changes with the content of the files of some windows, not with their names.

    `counts` (V,) are counts of pieces that are read beside them, if any.

    A local file is read for it, at about a gigabyte a second, and so is one of another file system
    that has no checksum of it.
    """
    sizes = {window.path: 0 for window in windows}
    for window in windows:
        sizes[window.path] += window.size
    contents = sorted(_content(path, size) for path, size in sizes.items())
    if counts is not None:
        contents.append(str(counts.tolist()))
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _content(path, size):
    checksum = None if is_local(path) else _checksum(path)
    if checksum is not None:
        return f"{checksum} {size}"
    digest = hashlib.sha256()
    for chunk in chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def _checksum(path):
    """What a file system has noted of the content of a file; None where it knows the size alone.

    Beam lets a file system give the size in place of a checksum.
    """
    try:
        checksum = FileSystems.checksum(path)
    except (BeamIOError, NotImplementedError):
        return None
    return None if not checksum or str(checksum).isdecimal() else checksum
