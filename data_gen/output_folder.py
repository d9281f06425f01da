"""The output folder of a job: taken only if it is free, and marked as finished at the end.

While a job runs, the folder has a file IN_PROGRESS (on other file systems IN_PROGRESS-…) with its
owner, so that the folder of an interrupted job is recognized, cleaned and used again. COMPLETED is
written last. Nothing that this command did not write is ever deleted.
"""

import contextlib
import json
import os
import re
import secrets

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from data_gen.files import is_local, new_file
from keras_bert.base import files, ownership
from keras_bert.base.errors import InputError, Naming
from keras_bert.records.folder import (
    CARD,
    COMPLETED,
    NAME,
    SETTING_OF_KEY,
    SPLITS,
    DatasetCard,
    shard_name,
)
from keras_bert.text.vocabulary import TOKENIZER_FILES
from keras_bert.text.vocabulary_files import VOCABULARY_FILES, parse_vocabulary

INFO, FEATURES = "dataset_info.json", "features.json"
_MODULE = "tensorflow_datasets.core.features"


def features(spec):
    """`features.json` for examples of a `FeatureSpec`."""
    tensors = {
        name: {
            "pythonClassName": f"{_MODULE}.tensor_feature.Tensor",
            "tensor": {
                "dtype": "float32" if name in spec.floats else "int64",
                "encoding": "none",
                "shape": {"dimensions": ["-1" if length is None else str(length)]},
            },
        }
        for name, length in spec.lengths.items()
    }
    content = {
        "pythonClassName": f"{_MODULE}.features_dict.FeaturesDict",
        "featuresDict": {"features": tensors},
    }
    return json.dumps(content, indent=1) + "\n"


def info(card):
    """`dataset_info.json` for the folder of a dataset card. Empty splits are left out."""
    splits = [
        {
            "name": split,
            "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            "numBytes": str(counts.counters["bytes"]),
            "shardLengths": [str(number) for number in counts.shard_instances],
        }
        for split, counts in card.splits.items()
        if counts.instances
    ]
    content = {
        "name": NAME,
        "version": "1.0.0",
        "fileFormat": "tfrecord",
        "description": f"Rows for pre-training ({card.objective}), by {card.made_by}.",
        "splits": splits,
    }
    return json.dumps(content, indent=1) + "\n"


IN_PROGRESS = "IN_PROGRESS"
PICTURE = "dataset_card.png"

_NAMES = "|".join(
    re.escape(name) for name in (CARD, PICTURE, *sorted(TOKENIZER_FILES), INFO, FEATURES)
)
_OURS = re.compile(
    rf"{NAME}-(?:train|eval)\.tfrecord-\d{{5,}}-of-\d{{5,}}(?:\.gz)?|{_NAMES}"
    rf"|{COMPLETED}"
)
# On file systems without locks each job has a file of its own.
_CLAIM = re.compile(rf"{IN_PROGRESS}(?:-[0-9a-f]{{12}})?")


def owner_of(path):
    """The text of IN_PROGRESS in the folder `path`; None where there is none."""
    try:
        with open(f"{path}/{IN_PROGRESS}", encoding="utf-8") as file:
            return file.read()
    except OSError:  # nothing there, or another file system, where jobs have workers of their own
        return None


class OutputFolder:
    """The output folder of a job, on any file system of Beam's.

    Creating one takes the folder, unless it has the same data already: then `finished` is True,
    and nothing is changed. Finished data that is incomplete now is made again: `damage` is a phrase
    for what is wrong with it, else None. The folder is released by `finish`, `discard`, or the end
    of a `with`, which discards what was written if an `InputError` ends it.

    Args:
        path: the folder; it is made if it is not there.
        force: replace finished data that an earlier job left.
        card: a `DatasetCard` of the job's settings and input; its counts do not matter.
        inputs: a hash of the content of the input; `finish` writes it into COMPLETED.

    Raises `InputError` where `path` is a file, has anything that this command did not write, has
    other finished data and `force` is not set, is in use by a running job, or cannot be written.
    """

    def __init__(self, path, *, force, card=None, inputs=""):
        self.path = str(path).rstrip("/")
        self.damage = None
        self._claim = IN_PROGRESS
        self._inputs = inputs
        self._locks = contextlib.ExitStack()
        with self._errors(), contextlib.ExitStack() as locks:
            self.finished = self._is_finished(card, force)
            names = self._names(temporary=True)
            left = [name for name in names if _CLAIM.fullmatch(name) or files.is_temporary(name)]
            if self.finished and not left:
                return
            self._lock(locks, force)
            self._clear_leftovers()
            self.finished = self._is_finished(card, force)  # another may have finished it since
            if not self.finished:
                self._clean()
                self._locks = locks.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if isinstance(error, InputError):
            self.discard()
        self._locks.close()

    def file(self, name):
        """The path of a file of the folder."""
        return f"{self.path}/{name}"

    def read(self, name):
        """The text of a file of the folder."""
        return self._bytes(name).decode("utf-8")

    def _bytes(self, name):
        with FileSystems.open(self.file(name)) as file:
            return file.read()

    def write(self, name, text):
        """Writes a small text file; `InputError` where it cannot be written."""
        with new_file(self.file(name)) as file:
            file.write_text(text, encoding="utf-8", newline="")

    def card(self):
        """The `DatasetCard` in the folder."""
        return DatasetCard.parse(self.read(CARD), self.file(CARD))

    def shards(self):
        """The numbers of finished shards and of all shards (None: not known yet)."""
        counts, finished = {}, 0
        for name in self._names():
            match = re.fullmatch(rf"{NAME}-(\w+)\.tfrecord-\d+-of-(\d+)(?:\.gz)?", name)
            if match:
                finished += 1
                counts[match[1]] = int(match[2])
        return finished, sum(counts.values()) if "train" in counts else None

    def finish(self):
        """Marks the data as finished."""
        with self._errors():
            self._clear_leftovers()
            self.write(COMPLETED, self._inputs)
            self._locks.close()

    def discard(self):
        """Deletes what was written into the folder, and the folder, if nothing else is in it."""
        self._clear_leftovers()
        self._delete(name for name in self._names() if _OURS.fullmatch(name))
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
        locks.callback(self._delete, [self._claim])
        for name, owner in self._claims().items():
            if name != self._claim and name not in before:
                raise self._in_use(owner)
        self._delete(before)

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
        self._delete(sorted(names, key=lambda name: (name != COMPLETED, name)))

    def _clear_leftovers(self):
        if is_local(self.path):
            files.clear_leftovers_in(self.path, owned=True)
        else:
            self._delete(name for name in self._names(temporary=True) if files.is_temporary(name))

    def _delete(self, names):
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

    def _find_damage(self, card, names):
        """The value of `damage`, from the sizes of the shards and not from their content."""
        for split in SPLITS:
            counts = card.splits[split]
            shards = [
                shard_name(split, index, counts.shards, card.compression)
                for index in range(counts.shards)
            ]
            missing = [name for name in shards if name not in names]
            if missing:
                return f"{missing[0]} is missing"
            size, written = self._size(shards), counts.counters["bytes"]
            if written not in (0, size):  # 0: unknown, from an earlier version
                return f"the shards of the {split} split have {size} bytes of {written}"
        contents = {name: self._bytes(name) for name in VOCABULARY_FILES if name in names}
        try:
            vocabulary = parse_vocabulary(
                contents, folder=self.path, special_tokens=card.special_tokens
            )
            whole = vocabulary.sha256 == card.vocabulary.sha256
        except InputError:
            whole = False
        return None if whole else "its vocabulary is not the one that made it"

    def _size(self, names):
        """The bytes of files of the folder together."""
        paths = [self.file(name) for name in names]
        if is_local(self.path):
            return sum(map(os.path.getsize, paths))
        results = FileSystems.match(paths)
        return sum(match.size_in_bytes for result in results for match in result.metadata_list)

    def _is_finished(self, card, force):
        """Whether the data of `card` is there already; raises where other data is."""
        names = self._names()
        ours = (_OURS, _CLAIM)
        foreign = sorted(n for n in names if not any(pattern.fullmatch(n) for pattern in ours))
        if foreign:
            raise InputError(
                f"The output {self.path} has other files, such as {foreign[0]}. Use a new or an "
                "empty folder."
            )
        if COMPLETED not in names or force:
            return False
        other = ""
        if CARD not in names:
            other = f" without its {CARD}"
        elif card is not None:
            written_card = self.card()
            different = written_card.difference(card)
            if different is None and self.read(COMPLETED) != self._inputs:
                different = "content of the input"
            if different is None:
                self.damage = self._find_damage(written_card, names)
                return self.damage is None
            other = f" that was made with another {SETTING_OF_KEY.get(different, different)}"
        raise InputError.naming(
            "The output {} has finished data{}. Use another folder, or {force=True} to replace it.",
            self.path,
            other,
        )
