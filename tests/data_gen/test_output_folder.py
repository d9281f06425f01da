"""An output folder is taken only if it is free; what a killed job left is cleaned up."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from data_gen import documents
from data_gen.data_folder import NewDataFolder
from data_gen.files import fingerprint
from data_gen.output_folder import COMPLETED, IN_PROGRESS, OutputFolder
from data_gen.pretraining_data import pretraining_data
from keras_bert.base import files
from keras_bert.base.errors import InputError
from keras_bert.base.files import temporary_name
from keras_bert.base.ownership import Owner
from keras_bert.cli.main import main
from keras_bert.records import DataFolder
from keras_bert.records.folder import CARD
from tests.data_gen.killed_output_folder import SHARD, card, write_all
from tests.data_gen.other_file_system import OtherFileSystem
from tests.messages import raises_input_error

REPOSITORY = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module", autouse=True)
def _no_pictures():
    """Drawing the card takes a third of such a small job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("data_gen.pretraining_data.draw_card", lambda *arguments: False)
        yield


def fill(folder, *names):
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("{}")
    return folder


def names(folder):
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_or_empty_folder_is_taken_and_finished(tmp_path, exists):
    path = tmp_path / "a" / "b"
    if exists:
        path.mkdir(parents=True)
    folder = NewDataFolder(path, force=False)
    assert names(path) == [IN_PROGRESS]
    fill(path, SHARD)
    fill(path / temporary_name(SHARD), SHARD)
    folder.finish()
    assert names(path) == sorted([COMPLETED, SHARD])


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "path, message",
    [
        ("full", "has other files, such as thesis.txt"),
        ("full/thesis.txt", "is a file"),
        ("full/thesis.txt/b", "cannot be written"),
        ("nowhere://a", "nowhere://a cannot be written"),
    ],
)
def test_what_cannot_be_taken_is_rejected_and_left_alone(tmp_path, path, message, force):
    full = fill(tmp_path / "full", "thesis.txt", SHARD, COMPLETED)
    with raises_input_error(message):
        NewDataFolder(path if "://" in path else tmp_path / path, force=force)
    assert names(full) == sorted(["thesis.txt", SHARD, COMPLETED])


def test_finished_data_needs_force(tmp_path):
    path = fill(tmp_path / "a", SHARD, COMPLETED, "dataset_card.json")
    with raises_input_error("has finished data. ...force"):
        NewDataFolder(path, force=False)
    assert len(names(path)) == 3
    with NewDataFolder(path, force=True):
        assert names(path) == [IN_PROGRESS]
    assert names(path) == []


def test_a_folder_may_be_called_like_a_glob(tmp_path):
    path = fill(tmp_path / "run[1]*", SHARD, COMPLETED)
    with NewDataFolder(path, force=True) as folder:
        assert names(path) == [IN_PROGRESS]
        folder.finish()
    assert names(path) == [COMPLETED]


def test_a_folder_in_use_is_rejected(tmp_path):
    with NewDataFolder(tmp_path / "a", force=False):
        with raises_input_error(f"in use by process {os.getpid()}: wait for its end"):
            NewDataFolder(tmp_path / "a", force=True)


def test_what_a_dead_process_left_is_cleaned_up(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    path = fill(tmp_path / "a", SHARD)
    owner = json.dumps({"host": os.uname().nodename, "process": process.pid, "started": "1"})
    for mark in (owner, owner.replace(str(process.pid), str(os.getpid())), "", "[]"):
        fill(path / temporary_name(SHARD), SHARD)
        (path / IN_PROGRESS).write_text(mark)
        with NewDataFolder(path, force=False):
            assert names(path) == [IN_PROGRESS]


def test_discarding_leaves_what_is_not_ours(tmp_path):
    folder = NewDataFolder(tmp_path / "a", force=False)
    fill(tmp_path / "a", "notes.txt", SHARD)
    folder.discard()
    assert names(tmp_path / "a") == ["notes.txt"]


def test_the_same_data_again_is_finished_and_left_as_it_is(tmp_path):
    path = tmp_path / "a"
    write_all(path, card=card(), inputs="7 bytes")
    before = {name: os.stat(path / name).st_mtime_ns for name in names(path)}
    assert sorted(before) == sorted([COMPLETED, CARD, SHARD, "vocab.txt"])
    again = card(splits={"train": {}, "eval": {}})  # nothing is counted before a job
    assert NewDataFolder(path, force=False, card=again, inputs="7 bytes").finished
    (path / IN_PROGRESS).write_text("")  # killed after COMPLETED
    assert NewDataFolder(path, force=False, card=again, inputs="7 bytes").finished
    moved = card(input=["b.txt"])
    assert NewDataFolder(path, force=False, card=moved, inputs="7 bytes").finished
    for other, inputs, difference in (
        (card(seed=6), "7 bytes", "made with another seed"),
        (card(), "8 bytes", "made with another content of the input"),
    ):
        with raises_input_error(f"has finished data that was {difference}. ...force"):
            NewDataFolder(path, force=False, card=other, inputs=inputs)
    assert {name: os.stat(path / name).st_mtime_ns for name in names(path)} == before
    with NewDataFolder(path, force=True, card=card(), inputs="7 bytes") as folder:
        assert not folder.finished and names(path) == [IN_PROGRESS]


def remove(path):
    path.unlink()


def truncate(path):
    path.write_bytes(path.read_bytes()[:-2])


@pytest.mark.parametrize("place", ["local", "other"])
@pytest.mark.parametrize(
    "name, damaged, message",
    [
        (SHARD, remove, f"{SHARD} is missing"),
        (SHARD, truncate, "the shards of the train split have 2 bytes of 4"),
        ("vocab.txt", remove, "its vocabulary is not the one that made it"),
        ("vocab.txt", truncate, "its vocabulary is not the one that made it"),
    ],
)
def test_finished_data_that_is_damaged_is_made_again(other, place, name, damaged, message):
    path = "other://a" if place == "other" else other
    write_all(path, card=card(), inputs="7 bytes")
    whole = {name: (other / name).read_bytes() for name in names(other)}
    damaged(other / name)
    with raises_input_error("made with another seed"):
        NewDataFolder(path, force=False, card=card(seed=6), inputs="7 bytes")
    with NewDataFolder(path, force=False, card=card(), inputs="7 bytes") as folder:
        assert not folder.finished and folder.damage == message
    write_all(path, card=card(), inputs="7 bytes")
    assert {name: (other / name).read_bytes() for name in names(other)} == whole
    (other / CARD).unlink()
    with raises_input_error(f"finished data without its {CARD}. Use ...force"):
        NewDataFolder(path, force=False, card=card(), inputs="7 bytes")


@pytest.mark.slow
@pytest.mark.parametrize("before", ["fresh", "replacing"])
def test_a_folder_killed_at_any_call_is_taken_again(tmp_path, before):
    command = [sys.executable, "-m", "tests.data_gen.killed_output_folder", before, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert not done.returncode, done.stderr
    assert int(done.stdout) > 40


def test_another_file_system_is_written_in_the_same_way(other):
    (other / IN_PROGRESS).write_text("torn by a kill")
    (other / SHARD).write_text("half")
    (other / temporary_name(SHARD)).write_text("aside")
    write_all("other://a", card=card(), inputs="7 bytes")
    assert names(other) == sorted([COMPLETED, CARD, SHARD, "vocab.txt"])
    assert (other / SHARD).read_text() == "rows" and (other / COMPLETED).read_text() == "7 bytes"
    assert NewDataFolder("other://a", force=False, card=card(), inputs="7 bytes").finished
    (other / "thesis.txt").write_text("mine")
    with raises_input_error("has other files, such as thesis.txt"):
        NewDataFolder("other://a", force=True)


@pytest.mark.parametrize(
    "owner, without_force, with_force",
    [
        (Owner.this(), "process", "process"),
        (
            Owner("elsewhere", 7, "1"),
            "process 7 on elsewhere. ...has ended, use `force=True`",
            None,
        ),
        (Owner(Owner.this().host, os.getpid(), "of an earlier one"), None, None),
    ],
)
def test_on_another_file_system_its_owner_is_who_wrote_so(other, owner, without_force, with_force):
    (other / IN_PROGRESS).write_text(owner.to_json())
    for force, refusal in ((False, without_force), (True, with_force)):
        if refusal:
            with raises_input_error(f"in use by {refusal}"):
                NewDataFolder("other://a", force=force)
        else:
            write_all("other://a", force=force)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("moment", ["before it writes", "after it has written"])
def test_of_two_jobs_at_once_on_another_file_system_at_most_one_gets_the_folder(
    other, monkeypatch, moment, force
):
    """The second job does all that it does while the first one is at a certain moment."""
    (other / f"{IN_PROGRESS}-0123456789ab").write_text("torn by a kill")
    write, taken = OutputFolder.write, []

    def take():
        monkeypatch.setattr(OutputFolder, "write", write)
        try:
            taken.append(NewDataFolder("other://a", force=force))
        except InputError as error:
            assert f"in use by process {os.getpid()}. Wait" in str(error)

    def write_and_meet(self, name, text):
        if moment == "before it writes":
            take()
        write(self, name, text)
        if moment == "after it has written":
            take()

    monkeypatch.setattr(OutputFolder, "write", write_and_meet)
    try:
        taken.append(NewDataFolder("other://a", force=force))
    except InputError as error:
        assert f"in use by process {os.getpid()}. Wait" in str(error)
    (folder,) = taken
    (name,) = names(other)
    assert name.startswith(f"{IN_PROGRESS}-")
    folder.finish()
    assert names(other) == [COMPLETED]


SETTINGS = dict(
    max_length=64, dupe_factor=20, max_predictions=10, shard_bytes=10_000, input_format="lines"
)


@pytest.fixture(scope="module")
def undisturbed(corpus, corpus_files, tmp_path_factory):
    output = tmp_path_factory.mktemp("undisturbed") / "data"
    pretraining_data(
        input=corpus_files, vocab=corpus.vocabulary, output=output, **SETTINGS,
        beam_options=["--direct_num_workers=1"],
    )  # fmt: skip
    return output


def test_the_same_job_again_is_finished_and_another_is_rejected(
    corpus, corpus_files, undisturbed, tmp_path, capsys
):
    corpus.vocabulary.save(tmp_path / "vocab.txt")
    moved = corpus.write(tmp_path / "moved", names="hgfedcba")
    before = {name: os.stat(undisturbed / name).st_mtime_ns for name in names(undisturbed)}

    def status(**changes):
        given = {"input": corpus_files, "vocab": tmp_path / "vocab.txt", "output": undisturbed}
        flags = [
            f"--{n.replace('_', '-')}={v}" for n, v in {**given, **SETTINGS, **changes}.items()
        ]
        return main(["pretraining-data", *flags])

    assert status() == 0
    printed = capsys.readouterr()
    assert f"The data in {undisturbed} is finished already" in printed.err
    assert "Next: keras-bert inspect" in printed.out
    assert status(seed=1) == 2
    assert "that was made with another seed. " in capsys.readouterr().err
    assert status(input=moved) == 0
    assert f"The data in {undisturbed} is finished already" in capsys.readouterr().err
    next((tmp_path / "moved").iterdir()).write_text("another text\n")
    assert status(input=moved) == 2
    assert "another content of the input" in capsys.readouterr().err
    assert {name: os.stat(undisturbed / name).st_mtime_ns for name in names(undisturbed)} == before


def test_a_truncated_shard_of_a_finished_job_is_made_again(
    corpus, corpus_files, undisturbed, tmp_path
):
    output = tmp_path / "data"
    shutil.copytree(undisturbed, output)
    first, *_ = sorted(output.glob("*.tfrecord*"))
    os.truncate(first, first.stat().st_size // 2)
    told = []
    pretraining_data(
        input=corpus_files, vocab=corpus.vocabulary, output=output, **SETTINGS,
        beam_options=["--direct_num_workers=1"], report=told.append,
    )  # fmt: skip
    assert [line for line in told if "is made again: the shards of the" in line] == told
    assert names(output) == names(undisturbed)
    for path in output.glob("*.tfrecord*"):
        assert path.read_bytes() == (undisturbed / path.name).read_bytes()


def test_a_fingerprint_is_of_the_content_and_not_of_the_names(tmp_path):
    for name, text in (("a", "one"), ("b", "two"), ("c/b", "one"), ("c/a", "two"), ("d", "twp")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    a, b, d = (documents.find(str(tmp_path / name)) for name in "abd")
    fingerprint_of_both = fingerprint(a + b)
    assert (
        fingerprint(documents.find(str(tmp_path / "c" / "*")))
        == fingerprint_of_both
        == fingerprint(b + a)
    )
    assert (
        len({fingerprint_of_both, fingerprint(a), fingerprint(a + d), fingerprint(a + a + b)}) == 3
    )
    assert fingerprint(a, np.array([1, 2])) not in (fingerprint(a), fingerprint(a, np.array([12])))


@pytest.mark.parametrize("checksum", ["size", "none", "unknown", "known"])
def test_on_another_file_system_an_edit_of_equal_size_is_another_content(
    other, monkeypatch, checksum
):
    (other / "text").write_text("one")
    before = fingerprint(documents.find("other://a/text"))
    if checksum != "size":

        def answer(self, path):
            if checksum == "none":
                raise NotImplementedError
            return None if checksum == "unknown" else "3a5f=="

        monkeypatch.setattr(OtherFileSystem, "checksum", answer)
    with_checksum = fingerprint(documents.find("other://a/text"))
    assert (with_checksum == before) == (checksum != "known")
    (other / "text").write_text("two")
    assert (fingerprint(documents.find("other://a/text")) == with_checksum) == (checksum == "known")


# The command, which waits, where it would have ended, for who kills it.
UNFINISHED = """
import sys, time
from data_gen.output_folder import OutputFolder
from keras_bert.cli.main import main

OutputFolder.finish = lambda self: time.sleep(600)
main(sys.argv[1:])
"""


def test_a_killed_job_is_started_again(corpus, corpus_files, undisturbed, tmp_path):
    """Killed when the first of its shards is there; its workers are not."""
    corpus.vocabulary.save(tmp_path / "vocab.txt")
    output = tmp_path / "data"
    command = [sys.executable, "-c", UNFINISHED, "pretraining-data"]
    command += ["--input", corpus_files, "--vocab", tmp_path / "vocab.txt", "--output", output]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
    command += ["--direct_num_workers=2"]
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    job = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
    deadline = time.monotonic() + 240
    while not list(output.glob("*.tfrecord*")) and job.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    job.send_signal(signal.SIGKILL)
    assert job.wait() == -signal.SIGKILL
    assert not names(tmp_path / "temporary")
    assert not (output / COMPLETED).exists() and (output / IN_PROGRESS).exists()
    with raises_input_error("did not finish"):
        DataFolder.open(output)
    pretraining_data(
        input=corpus_files, vocab=tmp_path / "vocab.txt", output=output, **SETTINGS,
        beam_options=["--direct_num_workers=1"],
    )  # fmt: skip
    assert names(output) == names(undisturbed)
    for path in output.glob("*.tfrecord*"):
        assert path.read_bytes() == (undisturbed / path.name).read_bytes()


@pytest.mark.parametrize("name", ["vocab.txt", "00000-of-", CARD, "features.json", COMPLETED])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    corpus, corpus_files, tmp_path, monkeypatch, name
):
    """The disk is full when this file is written."""
    flush = files._flush

    def full(folder):
        if any(name in file for file in os.listdir(folder)):
            raise OSError(28, "No space left on device")
        flush(folder)

    monkeypatch.setattr(files, "_flush", full)
    with raises_input_error(f"{name}... cannot be written: ...No space left") as refusal:
        pretraining_data(
            input=corpus_files, vocab=corpus.vocabulary, output=tmp_path / "data",
            input_format="lines", dupe_factor=1, beam_options=["--direct_num_workers=1"],
        )  # fmt: skip
    assert "while running" not in str(refusal.value)
    assert not (tmp_path / "data").exists()
