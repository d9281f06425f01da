"""Kills what writes a file, a folder or files that belong together at each of its system calls.

    python -m tests.base.killed_writing {file,folder,set} {exchange,none} {fresh,replacing} FOLDER
    python -m tests.base.killed_writing {file,folder} deleting FOLDER

Prints how many kills there were. A process of its own, since it forks for each of them, which is
slow if TensorFlow is loaded.
"""

import os
import shutil
import sys
from pathlib import Path

from keras_bert.base import files
from tests.kill_points import kill_at_every_call

# What users have, and what looks like ours but is not for this name.
FOREIGN = ["out.part", ".out.part", ".out.keras-bert-notes", ".other.keras-bert-0123456789ab"]


def write_file(path, text="new"):
    with files.new_file(path) as temporary:
        temporary.write_text(text)


def write_folder(path, text="new"):
    with files.new_folder(path) as temporary:
        (temporary / "a").write_text(text)
        (temporary / "b").mkdir()
        (temporary / "b" / "c").write_text(text)


def write_set(path, text="new"):
    files.write_texts(path.parent, {name: text for name in ("counts", "config", path.name)})


WRITE = {"file": write_file, "folder": write_folder, "set": write_set}


def tree(path):
    """The content of a path: the text of a file, or a folder's texts by name; None if nothing."""
    if path.is_dir():
        return {
            str(file.relative_to(path)): file.read_text()
            for file in sorted(path.rglob("*"))
            if file.is_file()
        }
    return path.read_text() if path.exists() else None


def state(place):
    """The state that a user finds."""
    return {
        name: tree(place / name)
        for name in os.listdir(place)
        if name not in FOREIGN and not files.is_temporary(name)
    }


def empty(place):
    shutil.rmtree(place)
    for name in FOREIGN:
        (place / name).mkdir(parents=True)
        (place / name / "thesis").write_text("mine")


def all_is_well(place, names):
    return sorted(os.listdir(place)) == sorted([*FOREIGN, *names]) and all(
        (place / name / "thesis").read_text() == "mine" for name in FOREIGN
    )


def kill_writing(kind, *, exchange, replaces, place):
    path, write = place / "out", WRITE[kind]
    real = files._exchange

    def told(new, old):
        os.chmod(path, 0o755)  # Python tells of this call, and not of the real one
        return real(new, old)

    files._exchange = told if exchange else lambda new, old: False
    # Only if more than one rename is needed may the name be missing for a while.
    at_once = kind == "file" or (kind == "folder" and (exchange or not replaces))

    def prepare():
        empty(place)
        if replaces:
            write(path, "old")

    prepare()
    old = state(place)
    write(path)
    new = state(place)
    assert new["out"] != old.get("out") and len(new) == (3 if kind == "set" else 1)

    def check(killed):
        left = state(place)
        assert killed or left == new
        assert left in (old, new) or not (at_once or "out" in left), left
        files.clear_leftovers(path)
        assert state(place) in (old, new), (left, state(place))
        assert all_is_well(place, state(place))
        write(path)
        assert state(place) == new and all_is_well(place, new)

    return kill_at_every_call(place, prepare=prepare, action=lambda: write(path), check=check)


def kill_deleting(kind, place):
    path = place / "out"
    states = []

    def prepare():
        empty(place)
        WRITE[kind](path)

    def check(killed):
        states.append(tree(path))
        files.clear_leftovers(path)
        files.delete(path)
        assert all_is_well(place, [])

    prepare()
    whole = tree(path)
    kills = kill_at_every_call(
        place, prepare=prepare, action=lambda: files.delete(path), check=check
    )
    assert states[0] == whole and states[-1] is None
    assert all(state in (whole, None) for state in states)
    return kills


if __name__ == "__main__":
    os.fsync = lambda descriptor: None  # the machine is not switched off here
    kind, *how, place = sys.argv[1:]
    if how == ["deleting"]:
        print(kill_deleting(kind, Path(place)))
    else:
        exchange, replaces = how[0] == "exchange", how[1] == "replacing"
        print(kill_writing(kind, exchange=exchange, replaces=replaces, place=Path(place)))
