"""`keras_bert.base.files.new_file` for paths of any file system of Beam's."""

import contextlib
import shutil
import tempfile
from pathlib import Path

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from data_gen.files import is_local
from keras_bert.base import files

_COPIED_AT_ONCE = 4 << 20


@contextlib.contextmanager
def new_file(path):
    """Gives the `Path` of a local file to write, which is at `path` at the end, whole.

    What is for this machine is written where it will lie. What is for another file system is
    written here, then copied there: aside first, under a name of `keras_bert.base.files`, then
    renamed. Nothing is cleared that an earlier process left, which `OutputFolder` does.

    Raises `InputError` where it cannot be written.
    """
    if is_local(path):
        with files.new_file(path, clear=False) as aside:
            yield aside
        return
    # Without a name of its own, so that a kill leaves nothing.
    with files.system_errors(path), tempfile.TemporaryFile() as local:
        yield Path(f"/dev/fd/{local.fileno()}")
        local.seek(0)
        above, _, name = str(path).rpartition("/")
        aside = f"{above}/{files.aside_name(name)}"
        with FileSystems.create(
            aside, "application/octet-stream", CompressionTypes.UNCOMPRESSED
        ) as target:
            shutil.copyfileobj(local, target, _COPIED_AT_ONCE)
        FileSystems.rename([aside], [str(path)])


def clear_leftovers(path):
    """`keras_bert.base.files.clear_leftovers` for paths of any file system of Beam's."""
    if is_local(path):
        files.clear_leftovers(path)
        return
    above, _, name = str(path).rpartition("/")
    found = FileSystems.match([f"{above}/.*"])[0].metadata_list
    left = [match.path for match in found if files.is_aside(match.path.rpartition("/")[2], name)]
    if left:
        FileSystems.delete(left)
