"""The folder that a job writes into: taken only if it is free, and marked as finished at the end.

While a job runs, the folder holds IN_PROGRESS; a folder that a killed job left is told by it,
cleaned and used again. COMPLETED is written last. Nothing that this command did not write is ever
deleted.
"""

import json
import os
import re
import socket

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from data_gen.tfds_metadata import FEATURES, INFO
from keras_bert.errors import InputError
from keras_bert.records.folder import CARD, COMPLETED, NAME, VOCABULARY_FILES

IN_PROGRESS = "IN_PROGRESS"
PICTURE = "dataset_card.png"

_NAMES = "|".join(re.escape(name) for name in (CARD, PICTURE, *VOCABULARY_FILES, INFO, FEATURES))
_OURS = re.compile(
    rf"(?:{NAME}-(?:train|eval)\.tfrecord-\d{{5,}}-of-\d{{5,}}(?:\.gz)?|{_NAMES})(?:\.part-\w+)?"
    rf"|{COMPLETED}|{IN_PROGRESS}"
)
_PART = re.compile(r".*\.part-\w+")


class OutputFolder:
    """The output folder of a job, on any file system of Beam's.

    Creating one takes the folder. Raises `InputError` where `path` is a file, holds anything that
    this command did not write, holds finished data and `force` is not set, is in use by a job that
    is running, or cannot be written.
    """

    def __init__(self, path, *, force):
        self.path = str(path).rstrip("/")
        try:
            names = self._names()
            self._refuse(names, force)
            FileSystems.delete([self.file(name) for name in sorted(names, key=_finished_first)])
            if not FileSystems.exists(self.path) and "://" not in self.path:
                FileSystems.mkdirs(self.path)
            owner = {"host": socket.gethostname(), "process": os.getpid()}
            self.write(IN_PROGRESS, json.dumps(owner | {"started": _start_of(os.getpid())}))
        except InputError:
            raise
        except (OSError, BeamIOError, ValueError) as error:  # ValueError: an unknown file system
            raise InputError(f"the output {self.path} cannot be written: {error}") from None

    def file(self, name):
        """The path of a file of the folder."""
        return f"{self.path}/{name}"

    def read(self, name):
        """The text of a file of the folder."""
        with FileSystems.open(self.file(name)) as file:
            return file.read().decode("utf-8")

    def write(self, name, text):
        """Writes a small text file; `InputError` where it cannot be written."""
        try:
            with FileSystems.create(
                self.file(name), "text/plain", CompressionTypes.UNCOMPRESSED
            ) as file:
                file.write(text.encode("utf-8"))
        except (OSError, BeamIOError) as error:
            raise InputError(f"{self.file(name)} cannot be written: {error}") from None

    def shards(self):
        """How many shards are finished, and how many there will be (None: not known yet)."""
        counts, finished = {}, 0
        for name in self._names():
            match = re.fullmatch(rf"{NAME}-(\w+)\.tfrecord-\d+-of-(\d+)(?:\.gz)?", name)
            if match:
                finished += 1
                counts[match[1]] = int(match[2])
        return finished, sum(counts.values()) if "train" in counts else None

    def finish(self):
        """Marks the data as finished."""
        names = self._names()
        parts = [name for name in names if _PART.fullmatch(name)]
        FileSystems.delete([self.file(name) for name in parts])
        self.write(COMPLETED, "")
        FileSystems.delete([self.file(IN_PROGRESS)])

    def discard(self):
        """Deletes what was written into the folder, and the folder, if nothing else is in it."""
        names = self._names()
        FileSystems.delete([self.file(name) for name in names if _OURS.fullmatch(name)])
        if "://" not in self.path and not os.listdir(self.path):
            os.rmdir(self.path)

    def _names(self):
        if "://" not in self.path:
            if os.path.lexists(self.path) and not os.path.isdir(self.path):
                raise InputError(f"the output {self.path} is a file: give the name of a folder")
            return os.listdir(self.path) if os.path.isdir(self.path) else []
        found = FileSystems.match([f"{self.path}/**"])[0].metadata_list
        return [match.path[len(self.path) + 1 :] for match in found]

    def _refuse(self, names, force):
        foreign = sorted(name for name in names if not _OURS.fullmatch(name))
        if foreign:
            raise InputError(
                f"the output {self.path} holds something else already, such as {foreign[0]}: give "
                "a new or an empty folder"
            )
        if IN_PROGRESS in names:
            self._refuse_if_running()
        elif COMPLETED in names and not force:
            raise InputError(
                f"the output {self.path} holds finished data: give another folder, or --force to "
                "make it anew"
            )

    def _refuse_if_running(self):
        try:
            owner = json.loads(self.read(IN_PROGRESS))
            process, host, started = owner["process"], owner["host"], owner["started"]
        except (json.JSONDecodeError, KeyError, TypeError):
            return  # killed while it wrote this very file
        if host == socket.gethostname() and started == _start_of(process) is not None:
            raise InputError(
                f"the output {self.path} is in use by a job that is running (process {process}): "
                "wait for its end, or give another folder"
            )


def _start_of(process):
    """When a process of this machine started, None if it does not run.

    A number alone may have been given to another process since.
    """
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        return None if not _is_running(process) else "unknown"


def _is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _finished_first(name):
    """Deletes COMPLETED first, so that half a folder never looks finished."""
    return name != COMPLETED, name
