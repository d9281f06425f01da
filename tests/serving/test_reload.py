"""A new version is served as soon as its folder appears, without losing a request."""

import gc
import os
import threading
import time
import weakref
from functools import partial

import pytest
import requests

from keras_bert.serving.ask import connect
from keras_bert.serving.model_version import ServedModel, lay_kernels_out_once
from tests.serving.running import running
from tests.serving.toy_models import copy_echo, write_echo


@pytest.fixture(scope="module")
def put_echo(tmp_path_factory):
    """`put_echo(folder, version)` gives a folder one of three versions, made once."""
    written = tmp_path_factory.mktemp("written") / "echo"
    for version in (1, 2, 3):
        write_echo(written, version)
    return partial(copy_echo, written)


def test_no_request_is_lost_while_versions_change(tmp_path, put_echo):
    folder = tmp_path / "echo"
    put_echo(folder, 1)
    seen, failures, over = ([], []), [], threading.Event()

    def ask(answers):
        with connect(server.rest, timeout=30) as client:
            while not over.is_set():
                try:
                    (row,) = client.predict("echo", [{"text": "x"}])
                    answers.append(row["label"])
                except Exception as error:
                    failures.append(error)

    def wait_for(label):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not all(label in a[-1:] for a in seen):
            time.sleep(0.05)

    with running(models=[folder], poll=0.05) as server:
        threads = [threading.Thread(target=ask, args=(answers,)) for answers in seen]
        for thread in threads:
            thread.start()
        wait_for("1:x")
        for version in (2, 3):
            put_echo(folder, version)
            wait_for(f"{version}:x")
        over.set()
        for thread in threads:
            thread.join()
        states = requests.get(f"{server.rest}/v1/models/echo", timeout=10).json()
        gone = requests.get(f"{server.rest}/v1/models/echo/versions/1/metadata", timeout=10)
    assert failures == []
    for answers in seen:
        assert sorted(answers) == answers and set(answers) == {"1:x", "2:x", "3:x"}
    states = [(state["version"], state["state"]) for state in states["model_version_status"]]
    assert states == [("3", "AVAILABLE"), ("2", "END"), ("1", "END")]
    assert gone.status_code == 404


def test_a_new_model_is_served(tmp_path, put_echo):
    put_echo(tmp_path / "first", 1)
    with (
        running(models=[tmp_path], poll=0.05) as server,
        connect(server.rest, timeout=30) as client,
    ):
        put_echo(tmp_path / "second", 2)
        deadline, names = time.monotonic() + 30, []
        while time.monotonic() < deadline and "second" not in names:
            time.sleep(0.05)
            names = requests.get(f"{server.rest}/try/models", timeout=10).json()["models"]
        assert names == ["first", "second"]
        while time.monotonic() < deadline and "second: version 2 is served." not in server.lines:
            time.sleep(0.05)
        (row,) = client.predict("second", [{"text": "x"}])
        assert row["label"] == "2:x"
        (row,) = client.predict("first", [{"text": "x"}])
        assert row["label"] == "1:x"


def test_a_version_that_does_not_load_keeps_the_old_one_and_is_tried_again(tmp_path, put_echo):
    folder = tmp_path / "echo"
    put_echo(folder, 1)
    model = ServedModel("echo", folder)
    assert model.refresh() == "echo: version 1 is served."
    (folder / "3").mkdir()
    assert "version 3 could not be loaded" in model.refresh()
    assert model.version().number == 1
    assert model.states[3]["state"] == "END" and model.states[3]["status"]["error_message"]
    assert model.refresh() is None, "what has not changed is not tried again"
    put_echo(folder, 2)
    assert model.refresh() == "echo: version 2 is served.", "it is the newest that can be loaded"
    (folder / "3").rmdir()
    put_echo(folder, 3)
    assert model.refresh() == "echo: version 3 is served."
    for entry in folder.iterdir():
        entry.rename(tmp_path / entry.name)
    assert model.refresh() is None and model.version().number == 3


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index", "assets/pipe"])
def test_a_pipe_in_a_version_does_not_stop_the_polling(tmp_path, put_echo, name):
    """To read it would wait for a writer who never comes."""
    folder = tmp_path / "echo"
    put_echo(folder, 1)
    put_echo(tmp_path / "aside", 2)
    (tmp_path / "aside" / "2" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "aside" / "2" / name)
    with running(models=[folder], poll=0.05) as server:

        def wait_for(line):
            until = time.monotonic() + 30
            while line not in server.lines:
                assert time.monotonic() < until
                time.sleep(0.02)

        (tmp_path / "aside" / "2").rename(folder / "2")
        wait_for(f"echo: version 2 could not be loaded: {name} is not a regular file.")
        put_echo(folder, 3)
        wait_for("echo: version 3 is served.")
    model = ServedModel("echo", folder)
    (folder / "3").rename(tmp_path / "3")
    assert "version 2 could not be loaded" in model.refresh()
    assert model.refresh() == "echo: version 1 is served."
    lay_kernels_out_once([folder])


def test_the_previous_version_is_served_when_the_newest_is_deleted(tmp_path, put_echo):
    """TensorFlow Serving does so, too: a version that is no good is taken back."""
    model = ServedModel("echo", tmp_path / "echo")
    for version in (1, 2):
        put_echo(tmp_path / "echo", version)
        assert model.refresh() == f"echo: version {version} is served."
    (tmp_path / "echo" / "2").rename(tmp_path / "2")
    assert model.refresh() == "echo: version 1 is served."
    states = {number: state["state"] for number, state in model.states.items()}
    assert states == {1: "AVAILABLE", 2: "END"} and model.refresh() is None
    (tmp_path / "2").rename(tmp_path / "echo" / "2")
    assert model.refresh() == "echo: version 2 is served."


def test_a_version_is_unloaded_at_once(tmp_path, put_echo):
    model = ServedModel("echo", tmp_path / "echo")
    put_echo(tmp_path / "echo", 1)
    model.refresh()
    before = weakref.ref(model.version()._model.signatures["serving_default"].graph)
    put_echo(tmp_path / "echo", 2)
    gc.disable()
    try:
        model.refresh()
        assert before() is None, "its graph stays in memory, and with it the weights"
    finally:
        gc.enable()


def test_new_versions_are_served_when_the_log_cannot_be_written(tmp_path, put_echo):
    """A terminal that was closed, or a pipe whose reader has gone."""

    def gone(line):
        raise BrokenPipeError

    folder = tmp_path / "echo"
    put_echo(folder, 1)
    with running(models=[folder], poll=0.05) as server:
        server._report = gone
        with connect(server.rest, timeout=30) as client:
            for version in (2, 3):
                put_echo(folder, version)
                until = time.monotonic() + 30
                while client.predict("echo", [{"text": "x"}])[0]["label"] != f"{version}:x":
                    assert time.monotonic() < until
                    time.sleep(0.02)
