"""The server in a thread of a notebook's process."""

import socket
import sys

import pytest
import requests

import keras_bert as kb


def test_it_answers_until_it_is_stopped(echo_folder):
    with kb.BackgroundServer(models=echo_folder, rest_port=0) as server:
        (answer,) = kb.ask(url=server.rest, model="echo", text=["one"])
        assert answer["label"] == "1:one"
        assert server.logs[0] == "echo: version 1 is served."
        assert repr(server) == f"BackgroundServer(running: {server.rest})"
        taken = int(server.rest.rpartition(":")[2])
        with pytest.raises(kb.InputError, match="Cannot listen"):
            kb.BackgroundServer(models=echo_folder, rest_port=taken)
    assert repr(server).startswith("BackgroundServer(stopped")
    server.stop()
    with pytest.raises(kb.InputError, match="cannot be reached|no answer|nobody"):
        next(kb.ask(url=server.rest, model="echo", text=["one"]))


def test_ipv6_addresses_can_be_used(echo_folder):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("NOT TESTED: this machine has no IPv6")
    with kb.BackgroundServer(models=echo_folder, host="::1", rest_port=0) as server:
        (answer,) = kb.ask(url=server.rest, model="echo", text=["one"])
        assert answer["label"] == "1:one"


def test_grpc_was_removed(echo_folder):
    with pytest.raises(kb.InputError, match="`grpc_port` was removed. Use `rest_port`, or Tens"):
        kb.BackgroundServer(models=echo_folder, grpc_port=0)
    with kb.BackgroundServer(models=echo_folder, rest_port=0) as server:
        with pytest.raises(AttributeError, match="removed: use `rest`, or TensorFlow Serving"):
            print(server.grpc)
        answer = requests.get(f"{server.rest}/monitoring/prometheus/metrics", timeout=10)
        assert answer.status_code == 404 and "Use TensorFlow Serving" in answer.json()["error"]


def test_errors_are_raised_by_the_constructor(tmp_path, monkeypatch):
    with pytest.raises(kb.InputError, match="No exported model"):
        kb.BackgroundServer(models=tmp_path)
    monkeypatch.delitem(sys.modules, "keras_bert.serving.development_server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(kb.InputError, match="keras-bert-toolkit\\[serve\\]"):
        kb.BackgroundServer(models=tmp_path)
