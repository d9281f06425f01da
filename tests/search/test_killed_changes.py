"""Each change of an index killed at its calls that change files, and made again.

Then it is as if it had never been killed.

After each kill a reader has the index before the change, or after it.
"""

import shutil

import numpy as np
import pytest

from keras_bert.base import files
from keras_bert.base.errors import InputError
from keras_bert.search import building, ranking
from keras_bert.search.index import Index, load_index
from keras_bert.search.segments import tidy
from tests.kill_points import EVENTS, PUBLISHING, stop_at_every_call
from tests.search.indexes import found, table


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)  # the machine is not switched off
    monkeypatch.setattr(building, "_TEXTS", 4)
    monkeypatch.setattr(ranking, "COMPACTED", 8)


@pytest.fixture
def task(monkeypatch):
    """A model that takes no time: its vectors follow from the characters of a text."""

    class Task:
        class settings:
            similarity = "cosine"

        def size_of(self, size):
            return 5

        def encode_document(self, texts, batch_size=None):
            columns = np.arange(1, 6)
            vectors = [[sum(map(ord, text)) % (7 * n) + 1 for n in columns] for text in texts]
            return np.array(vectors, np.float32)

        encode_query = encode_document

    for name in ("open_embedder", "fingerprint"):
        value = (lambda task: task) if name == "open_embedder" else (lambda task: "a fingerprint")
        monkeypatch.setattr(f"keras_bert.search.index.{name}", value)
    return Task()


def snapshot(folder):
    """The bytes of all files by their paths."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def state(folder, task):
    """Returns what a reader finds; None if there is no index yet."""
    try:
        index = load_index(folder, embedder=task)
    except InputError as error:
        messages = ("is not finished", "has no segments.json", "does not exist")
        assert any(message in str(error) for message in messages)
        return None
    return sorted(index.ids), found(index, "cat", by="vectors", top_k=30)


def kills(folder, task, *, begin, change, events, is_same=False):
    """Kills `change()` at each event; returns how many kills there were."""

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        begin()

    prepare()
    before = state(folder, task)
    change()
    after, whole = state(folder, task), snapshot(folder)
    assert (before == after) == is_same and not any(files.is_temporary(name) for name in whole)
    seen = []

    def check(killed):
        seen.append(state(folder, task))
        assert seen[-1] in (before, after)
        change()
        tidy(folder)
        assert state(folder, task) == after
        assert snapshot(folder) == whole

    count = stop_at_every_call(
        folder.parent, prepare=prepare, action=change, check=check, events=events
    )
    assert before in seen and after in seen
    return count


CHANGES = ("build", "replace", "add", "add-replacing", "delete", "compact")


@pytest.mark.parametrize(
    ("name", "events", "least"),
    [
        ("add", PUBLISHING, 4),
        *(pytest.param(name, EVENTS, 20, marks=pytest.mark.slow) for name in CHANGES),
    ],
)
def test_a_killed_change(name, events, least, task, tmp_path):
    folder, words = tmp_path / "place" / "index", name in ("build", "compact")
    folder.parent.mkdir()
    for part, data in {"t": table(10), "n": table(7, 1, "n"), "r": table(6, 2)}.items():
        data.to_csv(tmp_path / f"{part}.csv", index=False)

    def build(name="t", **options):
        return Index.build(task, tmp_path / f"{name}.csv", output=folder, words=words, **options)

    def begin():
        build()
        if name == "compact":
            add("n")
            delete(["t3", "n0", "t9"])

    def add(part, **options):
        load_index(folder, embedder=task).add(tmp_path / f"{part}.csv", **options)

    def delete(ids):
        index = load_index(folder, embedder=task)
        if {*ids} <= {*index.ids}:  # else it was made before the kill
            index.delete(ids)

    def replace():
        if not folder.exists() or sorted(load_index(folder, embedder=task).ids)[0] != "n0":
            build("n", force=True)

    change = {
        "build": build,
        "replace": replace,
        "add": lambda: add("n"),
        "add-replacing": lambda: add("r", duplicates="replace"),
        "delete": lambda: delete(["t3", "t9"]),
        "compact": lambda: load_index(folder).compact(),
    }[name]
    least = 4 if name == "delete" else least
    count = kills(
        folder,
        task,
        begin=begin if name != "build" else lambda: None,
        change=change,
        events=events,
        is_same=name == "compact",
    )
    assert count >= least


def test_a_killed_build_goes_on_where_it_was(task, tmp_path, monkeypatch):
    table(10).to_csv(tmp_path / "t.csv", index=False)
    encoded, real = [], task.encode_document

    def encode(texts, batch_size=None):
        encoded.extend(texts)
        if len(encoded) == 10:
            raise KeyboardInterrupt
        return real(texts)

    monkeypatch.setattr(task, "encode_document", encode)
    with pytest.raises(KeyboardInterrupt):
        Index.build(task, tmp_path / "t.csv", output=tmp_path / "index")
    with pytest.raises(InputError, match="is not finished. Run the command that builds it again"):
        load_index(tmp_path / "index")
    index = Index.build(task, tmp_path / "t.csv", output=tmp_path / "index")
    assert len(encoded) == 12 and len(index) == 10


def test_another_build_does_not_go_on(task, tmp_path, monkeypatch):
    """With another file of the same name what is unfinished is deleted."""
    table(10).to_csv(tmp_path / "t.csv", index=False)
    real = task.encode_document

    def encode(texts, batch_size=None):
        if len(texts) < 4:
            raise KeyboardInterrupt
        return real(texts)

    monkeypatch.setattr(task, "encode_document", encode)
    with pytest.raises(KeyboardInterrupt):
        Index.build(task, tmp_path / "t.csv", output=tmp_path / "index")
    monkeypatch.undo()
    monkeypatch.setattr("keras_bert.search.index.open_embedder", lambda task: task)
    monkeypatch.setattr("keras_bert.search.index.fingerprint", lambda task: "a fingerprint")
    table(3, prefix="x").to_csv(tmp_path / "t.csv", index=False)
    index = Index.build(task, tmp_path / "t.csv", output=tmp_path / "index")
    assert index.ids == ["x0", "x1", "x2"]
