"""The folder of an index: segments of texts, and the one file that says which of them count.

    INDEX/
      segments.json              the segments, the deleted ids, the model and the settings
      segment-000001/
        rows.parquet             id, text and the other columns of each text
        vectors.npy              a vector per passage, float32 or float16 (P, D)
        codes.npy, ranges.npy    the same as int8 (P, D), and the range of each column (2, D)
        passages.npy             int32 (P, 3): the number of the text, its characters from and to
        words.parquet, word_*.npy   see `keras_bert.search.words`

Without `passages.npy` each text has one vector. A segment never changes: it is written under a
hidden name and renamed. A change of the index is the replacement of segments.json, so that a reader
has the index before it or after it. Until then what is written is recorded in `unfinished.json`:
the same change resumes there after an interruption, and another one deletes it.
"""

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from keras_bert.base import files
from keras_bert.base.errors import InputError, damaged
from keras_bert.base.formatting import counted
from keras_bert.base.ownership import held_names, lock_folder
from keras_bert.base.version import __version__
from keras_bert.search.vectors import Int8Vectors

FORMAT = 1
INFO, UNFINISHED = "segments.json", "unfinished.json"
ROWS, VECTORS, CODES, RANGES, PASSAGES = (
    *("rows.parquet", "vectors.npy", "codes.npy", "ranges.npy", "passages.npy"),
)
_SEGMENT = re.compile(r"segment-(\d{6,})")
_ADVICE = "Build the index again."
_GROUPS_KEPT = 64  # row groups of Parquet that a segment keeps in memory
ROWS_PER_GROUP = 512


def is_index(path: Any) -> bool:
    """Whether a path is the folder of an index, or of one that is not finished."""
    return any(Path(path, name).is_file() for name in (INFO, UNFINISHED))


def is_unfinished(path: Any) -> bool:
    """Whether a path is the folder of an index whose building was interrupted."""
    return is_index(path) and not Path(path, INFO).is_file()


class Segment:
    """The texts of a segment: n of them in P passages.

    Args:
        folder: the folder of the segment.
        about: its object in segments.json.
        deleted: ids that are no longer in the index.

    Attributes:
        count: n.
        vectors: (P, D), memory-mapped; `codes`, `Int8Vectors` of the same or None.
        passages: int32 (P, 3), or None if each text is one.

    Raises:
        FileNotFoundError: a file is missing.
        InputError: a file is shorter than it was.
    """

    def __init__(self, folder: Path, about: dict[str, Any], deleted: list[str]):
        self.folder, self.count = folder, about["texts"]
        for name, size in about["files"].items():
            found = (folder / name).stat().st_size
            if found != size:
                raise InputError(
                    f"{folder / name} has {counted(found, 'byte')} of {size:,}: it was cut short, "
                    "or changed. Build the index again."
                )
        opened = {
            name: np.load(folder / name, mmap_mode="r")
            for name in about["files"]
            if name.endswith(".npy")
        }
        self.arrays = opened
        self.vectors, self.passages = opened[VECTORS], opened.get(PASSAGES)
        self.codes = None
        if CODES in opened:
            self.codes = Int8Vectors.with_ranges(opened[CODES], np.array(opened[RANGES]))
        self.files = {*about["files"]}
        self._rows = parquet.ParquetFile(folder / ROWS, memory_map=True)
        self._ids, self._groups, self._deleted = None, {}, deleted

    @property
    def names(self) -> list[str]:
        """The columns of the rows, with `id` and `text`."""
        return self._rows.schema_arrow.names

    @property
    def ids(self) -> pyarrow.Array:
        """The ids of all n texts, also of deleted ones."""
        if self._ids is None:
            self._ids = self.column("id")
        return self._ids

    def column(self, name: str) -> pyarrow.Array:
        """A column of all n texts."""
        column = self._rows.read(columns=[name]).column(0)
        return pyarrow.concat_arrays(column.chunks) if column.num_chunks else column.type.empty()

    @property
    def alive(self) -> np.ndarray | None:
        """bool (n,), which texts are not deleted; None if none is."""
        if not self._deleted:
            return None
        import pyarrow.compute as pc

        gone = pc.is_in(self.ids, value_set=pyarrow.array(self._deleted, pyarrow.string()))
        return ~gone.to_numpy(zero_copy_only=False)

    def texts_of(self, passages: np.ndarray) -> np.ndarray:
        """The number of the text of each passage."""
        return passages if self.passages is None else self.passages[passages, 0]

    def row(self, number: int) -> dict[str, Any]:
        """The columns of one text."""
        group, place = divmod(number, ROWS_PER_GROUP)
        if group not in self._groups:
            if len(self._groups) >= _GROUPS_KEPT:
                del self._groups[next(iter(self._groups))]
            self._groups[group] = self._rows.read_row_group(group)
        return self._groups[group].slice(place, 1).to_pylist()[0]

    def table(self) -> pyarrow.Table:
        """The rows of all n texts."""
        return self._rows.read()


def write_rows(path: Path, table: pyarrow.Table) -> None:
    """Writes the rows of a segment."""
    with open(path, "wb") as file:
        parquet.write_table(table, file, row_group_size=ROWS_PER_GROUP, compression="zstd")


def copy_segment(segment: Segment, folder: Path) -> int:
    """Copies the files of a segment into another folder; returns the number of its texts."""
    for name in segment.files:
        shutil.copyfile(segment.folder / name, folder / name)
    return segment.count


def read_info(folder: Any) -> dict[str, Any]:
    """Returns the content of segments.json.

    Raises InputError if there is no index, one that is not finished, or one of a later version.
    """
    folder = Path(folder)
    if not (folder / INFO).is_file():
        if (folder / UNFINISHED).is_file():
            raise InputError(
                f"The index {folder} is not finished. Run the command that builds it again: it "
                "resumes."
            )
        if not folder.exists():
            raise InputError(f"The index {folder} does not exist.")
        raise InputError(f"{folder} is not an index: it has no {INFO}.")
    info = files.read_json(folder / INFO)
    with damaged(folder / INFO, _ADVICE):
        if info["format"] > FORMAT:
            raise InputError(
                f"The index {folder} is of a later version, {info['made_by']}. Update this one."
            )
        {about["name"]: about["texts"] for about in info["segments"]}
    return info


def last_change(folder: Any) -> str | None:
    """The hash of the last change of an index; None if the folder is not a finished index."""
    try:
        return read_info(folder)["change"]
    except InputError:
        return None


def open_segments(folder: Any) -> tuple[dict[str, Any], list[Segment]]:
    """Returns the content of segments.json, and its segments, opened.

    Raises InputError if it is no index, or a part of it is missing or damaged.
    """
    folder = Path(folder)
    while True:
        info = read_info(folder)
        try:
            with damaged(folder / INFO, _ADVICE), _unreadable(folder):
                return info, [
                    Segment(folder / about["name"], about, info["deleted"].get(about["name"], []))
                    for about in info["segments"]
                ]
        except FileNotFoundError as error:
            # Another process has changed the index in between, and deleted what is not in it.
            if read_info(folder) == info:
                raise InputError(
                    f"The index {folder} lacks a file: {error.filename}. Build it again."
                ) from None


@contextlib.contextmanager
def _unreadable(folder):
    try:
        yield
    except (pyarrow.ArrowException, ValueError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"The index {folder} is damaged ({error}). Build it again.") from None


class Change:
    """A change of an index, while its folder is locked; see `changing`.

    Attributes:
        info: what segments.json says, or will say; `commit` writes it.
        done: how many texts of the same change an interrupted process has written.
    """

    def __init__(self, folder, info, made_of, unfinished):
        self.folder, self.info = folder, info
        self._made_of, self._segments = made_of, unfinished["segments"] if unfinished else []
        self.done = unfinished["done"] if unfinished else 0
        self.added = [
            Segment(folder / about["name"], about, deleted=[]) for about in self._segments
        ]

    def add_segment(self, write: Callable[[Path], int], *, done: int) -> Segment:
        """Writes a segment, which is in the index after `commit`.

        Args:
            write: a function that writes its files into a folder, and returns the number of texts.
            done: how many texts of the change are written then.
        """
        if not self._segments:  # by which the folder is known as one of an index
            self._record(self.done)
        name = f"segment-{self.info['next'] + len(self._segments):06d}"
        with files.new_folder(self.folder / name) as temporary:
            count = write(temporary)
            sizes = {path.name: path.stat().st_size for path in sorted(temporary.iterdir())}
        self._segments.append({"name": name, "texts": count, "files": sizes})
        self._record(done)
        self.added.append(Segment(self.folder / name, self._segments[-1], deleted=[]))
        return self.added[-1]

    def _record(self, done):
        record = {"made_of": self._made_of, "done": done, "segments": self._segments}
        files.write_json(self.folder / UNFINISHED, record)

    def delete(self, places: dict[str, list[str]]) -> None:
        """Deletes the texts with these ids from segments by name, after `commit`."""
        deleted = self.info["deleted"]
        self.info["deleted"] = deleted | {
            name: sorted([*deleted.get(name, []), *ids]) for name, ids in places.items()
        }

    def commit(self, *, keeps: bool = True) -> None:
        """Makes the change at once: the index has the added segments, and those that it `keeps`."""
        self.info |= {
            "made_by": f"keras-bert {__version__}",
            "segments": [*(self.info["segments"] if keeps else []), *self._segments],
            "deleted": self.info["deleted"] if keeps else {},
            "next": self.info["next"] + len(self._segments),
            "change": self._made_of,
        }
        files.write_json(self.folder / INFO, self.info)
        _clear(self.folder, self.info)


@contextlib.contextmanager
def changing(
    folder: Any, *, made_of: str | None, new: dict[str, Any] | None = None
) -> Iterator[Change]:
    """Gives the `Change` of an index for the body of a `with`, in which no one else may change it.

    Without `commit` the index stays as it is. What is written is deleted by the next change, unless
    that is the same.

    Args:
        folder: the index.
        made_of: a hash of everything that the change depends on; None is never the same.
        new: what segments.json says of an index that is built; None changes one that is there.

    Raises InputError if the folder is not an index, or another process changes it.
    """
    folder = Path(folder)
    if new is None:
        read_info(folder)
    with lock_folder(folder):
        files.clear_leftovers_in(folder, owned=True)
        before = read_info(folder) if (folder / INFO).is_file() else None
        info = before
        if new is not None:
            first = before["next"] if before else 1
            info = {"format": FORMAT, "segments": [], "deleted": {}, "next": first, **new}
        unfinished = _unfinished(folder, made_of, info)
        _clear(folder, before, unfinished)
        yield Change(folder, info, made_of, unfinished)


def tidy(folder: Any) -> None:
    """Deletes what an interruption left after a change was made."""
    with changing(folder, made_of=None):
        pass


def _unfinished(folder, made_of, info):
    """The record of the same change, which an interrupted process left; else None."""
    path = folder / UNFINISHED
    if made_of is None or not path.is_file():
        return None
    record = files.read_json(path)
    with damaged(path, "Delete it."):
        numbers = [int(_SEGMENT.fullmatch(about["name"])[1]) for about in record["segments"]]
        is_same = record["made_of"] == made_of and numbers[:1] in ([], [info["next"]])
        return record if is_same and isinstance(record["done"], int) else None


def _clear(folder, info, unfinished=None):
    """Deletes the segments that neither the index nor an unfinished change has."""
    records = [record for record in (info, unfinished) if record is not None]
    kept = {about["name"] for record in records for about in record["segments"]}
    if unfinished is None:
        files.delete(folder / UNFINISHED)
    for name in held_names(folder):
        if _SEGMENT.fullmatch(name) and name not in kept and _is_segment(folder / name):
            files.delete(folder / name)


def _is_segment(path):
    """Whether a folder has what a segment has, and nothing else."""
    if not path.is_dir() or path.is_symlink():
        return False
    names = held_names(path)
    return ROWS in names and all(Path(name).suffix in (".npy", ".parquet") for name in names)
