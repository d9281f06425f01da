"""Published files are whole, at whatever system call the process is killed."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from keras_bert.base import files
from keras_bert.base.errors import InputError
from tests.base.killed_writing import FOREIGN, empty, tree, write_file, write_folder
from tests.messages import raises_input_error

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def kills(*arguments):
    command = [sys.executable, "-m", "tests.base.killed_writing", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert not done.returncode, done.stderr
    return int(done.stdout)


@pytest.fixture
def place(tmp_path):
    """A folder that holds what users have."""
    empty(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("before", ["fresh", "replacing"])
@pytest.mark.parametrize("can", ["exchange", "none"])
@pytest.mark.parametrize("kind", ["file", "folder", "set"])
def test_a_kill_at_any_call_leaves_the_old_or_the_new(tmp_path, kind, can, before):
    assert kills(kind, can, before, tmp_path) > 8


@pytest.mark.slow
@pytest.mark.parametrize("kind, calls", [("file", 1), ("folder", 6)])
def test_a_kill_at_any_call_of_deleting_leaves_all_or_nothing(tmp_path, kind, calls):
    assert kills(kind, "deleting", tmp_path) >= calls


def test_deleting_a_link_leaves_what_it_leads_to(tmp_path):
    (tmp_path / "user").mkdir()
    (tmp_path / "link").symlink_to("user")
    files.delete(tmp_path / "link")
    files.delete(tmp_path / "nothing")
    assert os.listdir(tmp_path) == ["user"]


def test_an_exception_leaves_everything_as_it_was(place):
    write_folder(place / "out", "old")
    before = sorted(os.listdir(place))
    for new in (files.new_file, files.new_folder):
        with pytest.raises(KeyError), new(place / "out") as temporary:
            temporary.with_name("more").write_text("half")
            raise KeyError
        assert sorted(os.listdir(place)) == before and tree(place / "out")["a"] == "old"


def test_links_are_followed(tmp_path):
    (tmp_path / "disk").mkdir()
    write_folder(tmp_path / "disk" / "model", "old")
    (tmp_path / "model").symlink_to("disk/model")
    write_folder(tmp_path / "model")
    assert (tmp_path / "model").is_symlink() and tree(tmp_path / "disk" / "model")["a"] == "new"
    assert os.listdir(tmp_path / "disk") == ["model"]


def test_what_another_process_is_writing_is_no_leftover(place):
    with files.new_file(place / "out") as first:
        first.write_text("first")
        write_file(place / "out", "second")
        assert (place / "out").read_text() == "second"
    assert (place / "out").read_text() == "first"


def test_who_owns_a_folder_stops_those_that_still_write_in_it(place):
    with raises_input_error("cannot be written: No such file"):
        with files.new_file(place / "out") as temporary:
            temporary.write_text("late")
            files.clear_leftovers_in(place)
            assert temporary.exists()
            files.clear_leftovers_in(place, owned=True)
    assert not (place / "out").exists()


def test_many_writers_of_one_name_leave_one_whole(tmp_path):
    failed = []

    def write(number):
        try:
            for _ in range(20):
                write_file(tmp_path / "out", str(number) * 1000)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and os.listdir(tmp_path) == ["out"]
    assert len(text := (tmp_path / "out").read_text()) == 1000 and len(set(text)) == 1


def test_what_a_user_put_there_after_the_kill_stays(place):
    ready = place / (files.temporary_name("out") + ".ready")
    ready.mkdir()
    (ready / "out").write_text("new")
    (ready / "out.before").write_text("old")
    (place / "out").write_text("the user's")
    files.clear_leftovers_in(place)
    assert (place / "out").read_text() == "the user's"
    other = ".other.keras-bert-0123456789ab"  # ours by its name, and the whole folder was to clear
    assert sorted(os.listdir(place)) == sorted({"out", *FOREIGN} - {other})


@pytest.mark.parametrize(
    "umask, file_mode, folder_mode", [(0o022, 0o644, 0o755), (0, 0o666, 0o777)]
)
def test_files_have_the_users_umask(tmp_path, umask, file_mode, folder_mode):
    before = os.umask(umask)
    try:
        with files.new_folder(tmp_path / "out") as temporary:
            os.close(os.open(temporary / "weights", os.O_CREAT, 0o600))  # as safetensors makes them
        files.write_text(tmp_path / "text", "a")
    finally:
        os.umask(before)
    modes = [
        stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("out", "out/weights", "text")
    ]
    assert modes == [folder_mode, file_mode, file_mode]


def test_text_and_json(tmp_path):
    files.write_text(tmp_path / "a" / "b", "ä\r\nb\n")
    assert (tmp_path / "a" / "b").read_bytes() == "ä\r\nb\n".encode()
    files.write_json(tmp_path / "c", {"ä": [1.5]})
    assert (tmp_path / "c").read_text(encoding="utf-8") == '{\n "ä": [\n  1.5\n ]\n}\n'
    with pytest.raises(ValueError):
        files.write_json(tmp_path / "c", float("nan"))
    assert (tmp_path / "c").stat().st_size > 10


class FullDisk(Exception):
    """The error of TensorFlow and safetensors."""


@pytest.mark.parametrize(
    "error, words",
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device"),
        (OSError("the disk broke"), "the disk broke"),
        (FullDisk("RESOURCE_EXHAUSTED: …; No space left on device [Op:Save]"), "No space left on"),
    ],
)
def test_what_the_system_says_is_one_sentence(place, error, words):
    for new in (files.new_file, files.new_folder):
        with raises_input_error(f"out cannot be written: {words}") as refusal:
            with new(place / "out") as temporary:
                temporary.with_name("half").write_text("")
                raise error
        assert "Errno" not in str(refusal.value) and "keras-bert-" not in str(refusal.value)
        assert sorted(os.listdir(place)) == sorted(FOREIGN)


def test_what_is_written_temporary_is_called_by_its_place(place):
    """Also if it is itself written by this module, inside a folder that is aside."""
    with pytest.raises(InputError, match=f"^{place}/out cannot be written: No space left"):
        with files.new_folder(place / "out") as temporary, files.new_file(temporary / "part"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("error", [FullDisk("of another kind"), BrokenPipeError(32, "Broken pipe")])
def test_other_errors_go_through(place, error):
    with pytest.raises(type(error)), files.new_file(place / "out"):
        raise error
    with pytest.raises(FileNotFoundError), files.new_file(place / "out"):
        open(place / "an input that is not there")


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "a").mkdir(parents=True)
    for path, words in (
        (tmp_path / "file" / "out", "Not a directory|File exists"),
        (tmp_path / "folder", "Is a directory"),
        ("/proc/out", "No such file or directory"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(InputError, match=f"cannot be written: ({words})"):
            files.write_text(path, "text")
    with raises_input_error("cannot be written: Not a directory"):
        write_folder(tmp_path / "file")
    assert (tmp_path / "file").is_file() and sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize("replaces", [False, True])
def test_file_systems_that_can_do_less(tmp_path, monkeypatch, replaces):
    """No exchange of names, no locks, no flushing of folders."""
    monkeypatch.setattr(files, "_exchange", lambda new, path: False)

    def flock(*arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    if replaces:
        write_folder(tmp_path / "out", "old")
    write_folder(tmp_path / "out")
    assert set(tree(tmp_path / "out").values()) == {"new"} and os.listdir(tmp_path) == ["out"]
