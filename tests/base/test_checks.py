"""Which outputs a command may write, and who owns a folder."""

import os
import signal
import socket
import subprocess
import sys

import pandas as pd
import pytest

from keras_bert.base import files, ownership
from keras_bert.base.errors import InputWarning, warn_user
from tests.messages import raises_input_error


def ours(folder):
    return (folder / "mark").exists() if folder.is_dir() else folder.read_text() == "ours"


def test_a_folder_is_taken_if_it_is_free_or_ours_by_force(tmp_path):
    path = tmp_path / "out"
    ownership.check_output_folder(path, is_ours=ours)
    path.mkdir()
    (path / files.temporary_name("model")).mkdir()
    (path / ".keras-bert-owner").touch()
    ownership.check_output_folder(path, is_ours=ours)
    (path / "mark").touch()
    with raises_input_error("out is there already... `force=True`"):
        ownership.check_output_folder(path, is_ours=ours)
    ownership.check_output_folder(path, is_ours=ours, force=True)
    (path / "mark").rename(path / "thesis.txt")
    for force in (False, True):
        with raises_input_error("holds something else already (thesis.txt)"):
            ownership.check_output_folder(path, is_ours=ours, force=force)
        with raises_input_error("thesis.txt is a file"):
            ownership.check_output_folder(path / "thesis.txt", is_ours=ours, force=force)


def test_a_file_is_taken_if_it_is_free_or_ours_by_force(tmp_path):
    path = tmp_path / "out"
    ownership.check_output_file(path, is_ours=ours)
    path.touch()
    ownership.check_output_file(path, is_ours=ours)
    path.write_text("ours")
    with raises_input_error("out is there already"):
        ownership.check_output_file(path, is_ours=ours)
    ownership.check_output_file(path, is_ours=ours, force=True)
    path.write_text("a thesis")
    for force in (False, True):
        with raises_input_error("this command did not write"):
            ownership.check_output_file(path, is_ours=ours, force=force)
        with raises_input_error("is a folder"):
            ownership.check_output_file(tmp_path, is_ours=ours, force=force)
    os.mkfifo(tmp_path / "pipe")
    with raises_input_error("is a pipe or a device"):
        ownership.check_output_file(tmp_path / "pipe", is_ours=ours)


def test_an_input_is_no_output(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("text")
    (tmp_path / "link").symlink_to("data")
    monkeypatch.chdir(tmp_path)
    for given, output in (
        ("data/a.txt", tmp_path / "link" / "a.txt"),
        ("data/*.txt", "data/a.txt"),
        ("link/?.txt", "data/a.txt"),
        ("data/a.txt", "data"),
        ("data/*.txt", "data"),
        (tmp_path / "data", "data"),
    ):
        with raises_input_error("is also the input"):
            ownership.reject_input_as_output(["other", given], output)
    for given, output in (
        ("data/a.txt", "data/b.txt"),
        ("data/*.txt", "new"),
        ("*.txt", "data/a.txt"),
        ("data/*.tsv", "data/a.txt"),
        ("-", "."),
        ("tfds:wiki:train", "."),
        ("gs://data/a.txt", "."),
    ):
        ownership.reject_input_as_output([given], output)


_OWNER = """
import sys, time
from keras_bert.base.ownership import lock_folder
with lock_folder(sys.argv[1]):
    print("owned", flush=True)
    time.sleep(600)
"""


def test_a_folder_has_one_owner_and_a_dead_one_is_no_obstacle(tmp_path):
    folder = tmp_path / "a" / "out"
    owner = subprocess.Popen([sys.executable, "-c", _OWNER, folder], stdout=subprocess.PIPE)
    assert owner.stdout.readline() == b"owned\n"
    with raises_input_error(f"is in use by process {owner.pid}: wait"):
        with ownership.lock_folder(folder):
            pass
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    assert ownership.held_names(folder) == [] and os.listdir(folder)
    with ownership.lock_folder(folder):
        with raises_input_error(f"process {os.getpid()}:"):
            with ownership.lock_folder(folder):
                pass
    assert os.listdir(folder) == []


@pytest.mark.parametrize(
    "owner, rejects",
    [
        (ownership.Owner.this(), True),
        (ownership.Owner(socket.gethostname(), os.getpid(), "of an earlier process"), False),
        (ownership.Owner("elsewhere", 1, "5"), True),
    ],
)
def test_where_there_are_no_locks_the_file_tells_the_owner(tmp_path, monkeypatch, owner, rejects):
    def flock(*arguments):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    (tmp_path / ".keras-bert-owner").write_text(owner.to_json())
    if not rejects:
        with ownership.lock_folder(tmp_path):
            return
    where = f"process {owner.process}" if owner.is_here else "process 1 on elsewhere... delete "
    with raises_input_error(f"in use by {where}"):
        with ownership.lock_folder(tmp_path):
            pass


def test_an_owner_comes_back_from_its_text():
    this = ownership.Owner.this()
    assert ownership.Owner.from_json(this.to_json()) == this and this.runs and this.is_here
    for torn in ("", "[]", this.to_json()[:-1], '{"host": "a"}'):
        assert ownership.Owner.from_json(torn) is None


def test_a_warning_is_at_the_line_of_the_user_through_whatever_library():
    for warn in (warn_user, lambda message: pd.Series([message]).map(warn_user)):
        with pytest.warns(InputWarning, match="careful") as caught:
            warn("careful")
        assert caught[0].filename == __file__
