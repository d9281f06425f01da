"""The output folder of a job: taken only if it is free, and marked as finished at the end.

While a job runs, the folder has a file IN_PROGRESS (on other file systems IN_PROGRESS-…) with its
owner, so that the folder of an interrupted job is recognized, cleaned and used again. COMPLETED is
written last. Nothing that this command did not write is ever deleted.
"""

import contextlib
import os
import re
import secrets

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from data_gen.files import is_local, new_file
from keras_bert.base import files, ownership
from keras_bert.base.errors import InputError, Naming
from keras_bert.records.folder import COMPLETED

IN_PROGRESS = "IN_PROGRESS"
# On file systems without locks each job has a file of its own.
_CLAIM = re.compile(rf"{IN_PROGRESS}(?:-[0-9a-f]{{12}})?")


def owner_of(path):
    """The text of IN_PROGRESS in the folder `path`; None if there is none."""
    try:
        with open(f"{path}/{IN_PROGRESS}", encoding="utf-8") as file:
            return file.read()
    except OSError:  # nothing there, or another file system, where jobs have workers of their own
        return None


def check_owner(path, owner):
    """Raises `InputError` unless `owner_of` a folder is still what it was when the job began.

    Else the job was interrupted, and its workers are still there next to a new one's.
    """
    if owner_of(path) != owner:
        raise InputError(f"{path} belongs to another job now.")


class OutputFolder:
    """The output folder of a job, on any file system of Beam's.

    Creating one takes the folder, unless it has the same data already: then `finished` is True,
    and nothing is changed. Finished data that is incomplete now is made again: `damage` is a phrase
    for what is wrong with it, else None. The folder is released by `finish`, `discard`, or the end
    of a `with`, which discards what was written if an `InputError` ends it, or anything else before
    there is a shard.

    A subclass names the files that its job writes, and says when finished data is the job's own.

    Args:
        path: the folder; it is made if it is not there.
        force: replace finished data that an earlier job left.
        inputs: a hash of what the data is made from; `finish` writes it into COMPLETED.

    Attributes:
        OURS: a regular expression of the files that the job writes, but for COMPLETED.
        SHARD: one of its shards, with the group `total`, how many there are, and perhaps `split`.
        FIRST_SPLIT: the split whose shards every job writes; None if there are no splits.

    Raises `InputError` if `path` is a file, has anything that this command did not write, has
    other finished data and `force` is not set, is in use by a running job, or cannot be written.
    """

    OURS: re.Pattern
    SHARD: re.Pattern
    FIRST_SPLIT: str | None = None

    def __init__(self, path, *, force, inputs=""):
        self.path = str(path).rstrip("/")
        self.damage = None
        self._claim = IN_PROGRESS
        self._inputs = inputs
        self._locks = contextlib.ExitStack()
        with self._errors(), contextlib.ExitStack() as locks:
            self.finished = self._is_finished(force)
            names = self._names(temporary=True)
            left = [name for name in names if _CLAIM.fullmatch(name) or files.is_temporary(name)]
            if self.finished and not left:
                return
            self._lock(locks, force)
            self._clear_leftovers()
            self.finished = self._is_finished(force)  # another may have finished it since
            if not self.finished:
                self._clean()
                self._locks = locks.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if isinstance(error, InputError) or (error is not None and not self.shards()[0]):
            self.discard()
        self._locks.close()

    def file(self, name):
        """The path of a file of the folder."""
        return f"{self.path}/{name}"

    def read(self, name):
        """The text of a file of the folder."""
        return self.bytes(name).decode("utf-8")

    def bytes(self, name):
        with FileSystems.open(self.file(name)) as file:
            return file.read()

    def write(self, name, text):
        """Writes a small text file; `InputError` if it cannot be written."""
        with new_file(self.file(name)) as file:
            file.write_text(text, encoding="utf-8", newline="")

    def shards(self):
        """The numbers of finished shards and of all shards (None: not known yet)."""
        totals, finished = {}, 0
        for match in filter(None, map(self.SHARD.fullmatch, self._names())):
            finished += 1
            totals[match.groupdict().get("split")] = int(match["total"])
        return finished, sum(totals.values()) if self.FIRST_SPLIT in totals else None

    def difference(self, names):
        """In what finished data differs from what the job would make, to follow "finished data".

        None for the same data. `names` are those of the folder's files.
        """
        raise NotImplementedError

    def find_damage(self, names):
        """The value of `damage` for finished data that is the same."""
        raise NotImplementedError

    def interruption(self):
        """The message of a job that was interrupted."""
        finished, total = self.shards()
        written = f"{finished} of {total}" if total else "no"
        return (
            f"Interrupted with {written} shards written to {self.path}. Run the same command again "
            "to start over and replace them."
        )

    def has_the_same_inputs(self):
        """Whether finished data is made from what the job reads."""
        return self.read(COMPLETED) == self._inputs

    def finish(self):
        """Marks the data as finished."""
        with self._errors():
            self._clear_leftovers()
            self.write(COMPLETED, self._inputs)
            self._locks.close()

    def discard(self):
        """Deletes what was written into the folder, and the folder, if nothing else is in it."""
        self._clear_leftovers()
        self.delete(filter(self._is_ours, self._names()))
        self._locks.close()
        if is_local(self.path) and not os.listdir(self.path):
            os.rmdir(self.path)

    def _errors(self):
        return files.system_errors(self.path)

    def _lock(self, locks, force):
        """Takes the folder for this process until the `ExitStack` that is given is closed."""
        if is_local(self.path):
            locks.enter_context(ownership.lock_folder(self.path, name=IN_PROGRESS))
            return
        # Other file systems have no locks, and overwrite what another job has just written. So
        # each job writes a file of its own, and then looks for others': of two jobs at once at
        # least one finds the other's, and gives up.
        before = self._claims()
        for owner in before.values():
            if owner and owner.runs and (owner.is_here or not force):
                raise self._in_use(owner)
        self._claim = f"{IN_PROGRESS}-{secrets.token_hex(6)}"
        self.write(self._claim, ownership.Owner.this().to_json())
        locks.callback(self.delete, [self._claim])
        for name, owner in self._claims().items():
            if name != self._claim and name not in before:
                raise self._in_use(owner)
        self.delete(before)

    def _claims(self):
        """The owners in the files IN_PROGRESS…, by file; None for an incomplete file.

        A file that disappears meanwhile is left out.
        """
        claims = {}
        for name in filter(_CLAIM.fullmatch, self._names()):
            try:
                claims[name] = ownership.Owner.from_json(self.read(name))
            except OSError:
                if FileSystems.exists(self.file(name)):
                    raise
        return claims

    def _in_use(self, owner):
        known_elsewhere = owner is not None and not owner.is_here
        hint = Naming(" If that has ended, use {force=True}.") if known_elsewhere else ""
        return InputError.naming(
            "The output {} is in use by {}. Wait for its end, or use another folder.{}",
            self.path,
            owner or "another process",
            hint,
        )

    def _clean(self):
        """Deletes what an earlier job left; COMPLETED first, so that it never looks finished."""
        names = [name for name in self._names() if name != self._claim]
        self.delete(sorted(names, key=lambda name: (name != COMPLETED, name)))

    def _clear_leftovers(self):
        if is_local(self.path):
            files.clear_leftovers_in(self.path, owned=True)
        else:
            self.delete(name for name in self._names(temporary=True) if files.is_temporary(name))

    def delete(self, names):
        """Deletes files of the folder."""
        paths = [self.file(name) for name in names]
        if is_local(self.path):
            for path in paths:  # Beam takes a path for a glob
                os.unlink(path)
        else:
            FileSystems.delete(paths)

    def _names(self, temporary=False):
        """The names in the folder, with those of temporary files only if asked for."""
        if is_local(self.path):
            if os.path.lexists(self.path) and not os.path.isdir(self.path):
                raise InputError(f"The output {self.path} is a file. Expected a folder.")
            names = os.listdir(self.path) if os.path.isdir(self.path) else []
        else:
            try:
                matches = FileSystems.match([f"{self.path}/**"])[0].metadata_list
            except (BeamIOError, ValueError) as error:  # ValueError: an unknown file system
                raise InputError(f"{self.path} cannot be written: {error}.") from None
            names = [match.path[len(self.path) + 1 :] for match in matches]
        return [name for name in names if temporary or not files.is_temporary(name)]

    def size(self, names):
        """The bytes of files of the folder together."""
        paths = [self.file(name) for name in names]
        if is_local(self.path):
            return sum(map(os.path.getsize, paths))
        results = FileSystems.match(paths)
        return sum(match.size_in_bytes for result in results for match in result.metadata_list)

    def _is_ours(self, name):
        return name == COMPLETED or self.OURS.fullmatch(name) is not None

    def _is_finished(self, force):
        """Whether the job's data is there already; raises if other data is."""
        names = self._names()
        foreign = sorted(n for n in names if not (self._is_ours(n) or _CLAIM.fullmatch(n)))
        # A vocabulary alone, or a card, is not what a job leaves.
        marks = (COMPLETED, *filter(_CLAIM.fullmatch, names), *filter(self.SHARD.fullmatch, names))
        if not {*marks} & {*names}:
            foreign = sorted(names)
        if foreign:
            raise InputError(
                f"The output {self.path} has other files, such as {foreign[0]}. Use a new or an "
                "empty folder."
            )
        if COMPLETED not in names or force:
            return False
        difference = self.difference(names)
        if difference is None:
            self.damage = self.find_damage(names)
            return self.damage is None
        raise InputError.naming(
            "The output {} has finished data{}. Use another folder, or {force=True} to replace it.",
            self.path,
            difference,
        )
