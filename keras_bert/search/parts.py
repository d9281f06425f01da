"""Indexes of the files of a job, one each, and their merging into one."""

import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.ownership import check_output_folder
from keras_bert.search.index import Index
from keras_bert.search.segments import (
    changing,
    copy_segment,
    is_index,
    is_unfinished,
    open_segments,
)

# What the parts of one index have in common.
_SAME = ("dtype", "similarity", "width", "words", "passages")


def write_part(
    model: Any, *, source: str, target: str, settings: dict[str, Any], report: Callable[[str], None]
) -> int:
    """Writes the index of a file as a tar file, whose bytes follow from it; returns its texts."""
    with tempfile.TemporaryDirectory() as folder:
        index = Index.build(model, source, output=Path(folder, "index"), report=report, **settings)
        with tarfile.open(target, "w") as archive:
            for path in sorted(index.folder.rglob("*")):
                if path.is_file():
                    member = archive.gettarinfo(path, str(path.relative_to(index.folder)))
                    member.mtime, member.uid, member.gid, member.mode = 0, 0, 0, 0o644
                    member.uname = member.gname = ""
                    with path.open("rb") as file:
                        archive.addfile(member, file)
        return len(index)


def merge_parts(
    output: Any,
    parts: Iterable[tuple[str, Callable[[str], Any]]],
    *,
    model: str,
    made_of: str,
    force: bool = False,
) -> Index:
    """Makes one index of the parts of a job, in their order.

    Args:
        output: the folder of the index.
        parts: pairs of the name of a file, and a function that puts its part, a tar file, at a
            path.
        model: where the model is found.
        made_of: a hash of everything that the index depends on.
        force: replace an index that is there already.

    Raises InputError: two files have a text of the same id, or the output is there already.
    """
    check_output_folder(output, is_ours=is_index, force=force or is_unfinished(output))
    new, seen = None, {}
    with tempfile.TemporaryDirectory() as temporary:
        opened = []
        for number, (name, fetch) in enumerate(parts):
            packed, folder = Path(temporary, "part.tar"), Path(temporary, str(number))
            fetch(str(packed))
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="data")
            info, segments = open_segments(folder)
            for id in (id for segment in segments for id in segment.ids.to_pylist()):
                if seen.setdefault(id, name) != name:
                    raise InputError.naming(
                        "The id {!r} is in {} and in {}. Name a column whose values are different "
                        "in all files as {id_column}.",
                        id,
                        seen[id],
                        name,
                    )
            about = {key: info[key] for key in (*_SAME, "schema")}
            new = new or {**about, "model": {**info["model"], "name": model}}
            opened += segments
        with changing(output, made_of=made_of, new=new) as change:
            for done, segment in enumerate(opened[change.done :], start=change.done + 1):
                change.add_segment(
                    lambda folder, segment=segment: copy_segment(segment, folder),  # type: ignore[misc]
                    done=done,
                )
            change.commit()
    return Index(output)
