"""The limits of the server: no client can block others."""

import concurrent.futures
import contextlib
import functools
import itertools
import json
import signal
import socket
import threading
import time
import types

import numpy as np
import pytest
import requests

import keras_bert as kb
from keras_bert.serving import ServeSettings, bounds, development_server, tensors
from keras_bert.serving.ask import connect
from keras_bert.serving.bounds import TimedProtocol
from keras_bert.serving.development_server import DevelopmentServer
from keras_bert.serving.errors import ServerError
from keras_bert.serving.model_version import ModelVersion
from tests.messages import raises_input_error
from tests.serving.running import running

PATH = "/v1/models/echo:predict"
MAX_BODY, MAX_BATCH, MAX_REQUESTS = 200_000, 16, 4


@pytest.fixture(scope="module")
def server(echo_folder):
    bounds = {"max_body": MAX_BODY, "max_batch": MAX_BATCH, "max_requests": MAX_REQUESTS}
    with running(models=[echo_folder], timeout=60.0, **bounds) as server:
        # Seconds, so that connections of a test do not count in the next one.
        server._uvicorn.config.timeout_keep_alive = 0.3
        yield server


@pytest.fixture(scope="module")
def proxied(echo_folder):
    with running(models=[echo_folder], allowed_hosts=["proxy.example"]) as server:
        yield server


@pytest.fixture(autouse=True)
def _still_answers(server):
    """After each test, a request is answered as before."""
    yield
    until(lambda: not server._uvicorn.server_state.connections)
    with connect(server.rest, timeout=10) as client:
        assert client.predict("echo", [{"text": "after"}])[0]["label"] == "1:after"


@pytest.fixture
def client(server):
    with connect(server.rest, timeout=10) as client:
        yield client


@pytest.fixture
def gate(monkeypatch):
    """The text "held" has no answer before `may` is set; `begun` counts its computations.

    `texts` are all those that were given to the model.
    """
    compute = ModelVersion.compute
    gate = types.SimpleNamespace(begun=threading.Semaphore(0), may=threading.Event(), texts=[])

    def hold(self, signature, inputs):
        gate.texts += inputs["text"].tolist()
        if b"held" in inputs["text"].tolist():
            gate.begun.release()
            gate.may.wait(60)
        return compute(self, signature, inputs)

    monkeypatch.setattr(ModelVersion, "compute", hold)
    yield gate
    gate.may.set()


@pytest.fixture
def set_timeout(server, monkeypatch):
    """Sets the time-out of what comes from now on."""
    return lambda seconds: monkeypatch.setitem(server._application.state._state, "timeout", seconds)


@contextlib.contextmanager
def asking(server, text):
    """Asks for `text`, and leaves at the end of the block."""
    body = json.dumps({"instances": [text]}).encode()
    length = f"Content-Length: {len(body)}\r\n\r\n".encode()
    with raw(server) as connection:
        connection.sendall(sent(f"POST {PATH}", length + body))
        yield


def until(holds):
    """Waits until `holds()`, which another thread brings about, also on a machine that is busy."""
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def raw(server):
    return socket.create_connection(("127.0.0.1", server.rest_port), timeout=10)


def sent(head, body=b""):
    return f"{head} HTTP/1.1\r\nHost: localhost\r\n".encode() + body


def received(connection):
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("examples", [MAX_BATCH, MAX_BATCH + 1, 10_000])
def test_the_batch_size_is_limited(client, examples):
    asked = [{"text": "a"}] * examples
    if examples <= MAX_BATCH:
        assert len(client.predict("echo", asked)) == examples
        return
    with pytest.raises(ServerError, match=f"more than the {MAX_BATCH}") as rejected:
        client.predict("echo", asked)
    assert rejected.value.code in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize("size", [MAX_BODY + 1, 3 * MAX_BODY])
def test_a_large_body_is_rejected(client, size):
    with pytest.raises(ServerError) as rejected:
        client.predict("echo", [{"text": "x" * size}])
    assert rejected.value.code == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize(
    "header, part",
    [
        (b"Content-Length: 99999999999", b"x" * 65536),
        (b"Transfer-Encoding: chunked", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    ],
)
def test_a_body_without_end_is_cut_off(server, monkeypatch, header, part):
    monkeypatch.setattr(server._uvicorn.config, "timeout_keep_alive", 0.2)
    with raw(server) as connection:
        connection.sendall(sent(f"POST {PATH}", header + b"\r\n\r\n"))
        end = time.monotonic() + 20
        for number in itertools.count():
            try:
                connection.sendall(part)
            except OSError:
                break
            if number == 5:
                assert b" 413 " in connection.recv(1000)
            assert time.monotonic() < end, "the server keeps reading"


def test_a_version_of_thousands_of_digits_is_rejected(server):
    answer = requests.get(f"{server.rest}/v1/models/echo/versions/{'9' * 5000}", timeout=10)
    assert answer.status_code == 400 and answer.json()["error"]


def test_slow_clients_are_not_waited_for(server, monkeypatch, set_timeout):
    set_timeout(0.2)
    monkeypatch.setattr(server._uvicorn.config, "timeout_keep_alive", 0.2)
    slow = [
        (b"", b""),  # connects and is silent
        (sent(f"POST {PATH}"), b""),  # headers without end
        (sent(f"POST {PATH}", b"Content-Length: 100\r\n\r\n{"), b"408"),  # a body without end
    ]
    with contextlib.ExitStack() as connections:
        opened = [connections.enter_context(raw(server)) for _ in slow]
        for connection, (data, _) in zip(opened, slow, strict=True):
            connection.sendall(data)
        for connection, (_, answer) in zip(opened, slow, strict=True):
            response = received(connection)
            assert answer in response and (response == b"") == (answer == b"")


def test_a_client_that_does_not_read_its_response_is_disconnected(server, monkeypatch):
    """Its connection would keep the response, and count as one of those at a time."""

    def large(
        self, signature, inputs
    ):  # more than the system takes for a client that reads nothing
        return {"label": np.array([b"x" * 2**26], object)}

    monkeypatch.setattr(ModelVersion, "compute", large)
    hasty = functools.partial(TimedProtocol, timeout=0.2)
    monkeypatch.setattr(server._uvicorn.config, "http_protocol_class", hasty)
    with raw(server) as connection:

        def is_there():
            clients = [other.client for other in server._uvicorn.server_state.connections.copy()]
            return connection.getsockname() in clients

        body = b'{"instances": ["a"]}'
        length = f"Content-Length: {len(body)}\r\n\r\n".encode()
        connection.sendall(sent(f"POST {PATH}", length + body))
        until(is_there)
        until(lambda: not is_there())


def test_requests_beyond_the_capacity_are_rejected(server, gate):
    with contextlib.ExitStack() as waiting:
        for _ in range(MAX_REQUESTS):
            waiting.enter_context(asking(server, "held"))
        until(lambda: len(server._uvicorn.server_state.tasks) == MAX_REQUESTS)
        assert requests.get(f"{server.rest}/v1/models/echo", timeout=10).status_code == 503
        with connect(server.rest, timeout=10) as client, pytest.raises(ServerError) as rejected:
            client.predict("echo", [{"text": "a"}])
        assert rejected.value.code == "UNAVAILABLE"
        gate.may.set()
    until(lambda: not server._uvicorn.server_state.tasks)


def test_slow_clients_block_others_until_their_time_is_over(server, monkeypatch, set_timeout):
    """There are as many as the server takes, of each kind."""
    set_timeout(0.5)
    monkeypatch.setattr(server._uvicorn.config, "timeout_keep_alive", 0.5)
    for start in (b"", b"Content-Length: 100\r\n\r\n{"):
        with contextlib.ExitStack() as connections:
            for _ in range(MAX_REQUESTS):
                slow = connections.enter_context(raw(server))
                slow.sendall(sent(f"POST {PATH}", start))

            def is_answered():
                body = {"instances": ["a"]}
                answer = requests.post(server.rest + PATH, json=body, timeout=10)
                assert answer.status_code in (200, 503)
                return answer.status_code == 200

            until(is_answered)


def test_as_many_clients_as_the_capacity_are_never_rejected(server):
    """Whose next request comes as soon as they have an answer."""

    def ask_again_and_again(number):
        with connect(server.rest, timeout=30) as client:
            return [client.predict("echo", [{"text": f"{number}"}]) for _ in range(40)]

    with concurrent.futures.ThreadPoolExecutor(MAX_REQUESTS) as threads:
        answers = list(threads.map(ask_again_and_again, range(MAX_REQUESTS)))
    for number, answered in enumerate(answers):
        assert {row["label"] for (row,) in answered} == {f"1:{number}"}


def test_a_client_that_disconnects_frees_its_place(server, gate):
    """Its computation cannot be interrupted, but the response has no reader."""
    for _ in range(MAX_REQUESTS):
        with asking(server, "held"):
            assert gate.begun.acquire(timeout=10)
        gate.may.set()
        until(lambda: not server._uvicorn.server_state.tasks)
        gate.may.clear()


def test_a_failure_of_the_server_is_reported(server, monkeypatch):
    monkeypatch.setattr(tensors, "write_outputs", lambda *_: 1 / 0)
    answer = requests.post(server.rest + PATH, json={"instances": ["a"]}, timeout=10)
    assert answer.status_code == 500 and "ZeroDivisionError" in answer.json()["error"]


def test_a_request_that_takes_too_long_times_out(server, gate, set_timeout):
    set_timeout(0.1)
    with connect(server.rest, timeout=10) as client, pytest.raises(ServerError) as rejected:
        client.predict("echo", [{"text": "held"}])
    assert rejected.value.code == "DEADLINE_EXCEEDED"


def test_others_time_out_while_long_computations_use_all_slots(server, gate, set_timeout):
    """A computation cannot be cancelled; requests that wait for it time out, and are dropped."""
    body = {"instances": ["held"]}
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        long = []
        for _ in range(2):
            long.append(threads.submit(requests.post, server.rest + PATH, json=body, timeout=60))
            assert gate.begun.acquire(timeout=10)
        set_timeout(0.1)
        answer = requests.post(server.rest + PATH, json={"instances": ["short"]}, timeout=10)
        assert answer.status_code == 504 and "within 0.1 s" in answer.json()["error"]
        gate.may.set()
        answers = [asked.result().json()["predictions"][0]["label"] for asked in long]
    assert answers == ["1:held"] * 2, "without the errors of the others"
    assert b"short" not in gate.texts, "nobody waits for it"


def test_others_are_answered_while_a_response_is_written(server, monkeypatch):
    """The vectors of a batch are millions of numbers as text, and take seconds."""
    write, begun, may = tensors.write_outputs, threading.Event(), threading.Event()

    def hold(*arguments):
        begun.set()
        may.wait(20)
        return write(*arguments)

    monkeypatch.setattr(tensors, "write_outputs", hold)
    with (
        connect(server.rest, timeout=60) as client,
        concurrent.futures.ThreadPoolExecutor(1) as threads,
    ):
        asked = threads.submit(client.predict, "echo", [{"text": "a"}])
        try:
            assert begun.wait(10)
            assert requests.get(f"{server.rest}/v1/models/echo", timeout=10).ok
        finally:
            may.set()
        assert asked.result()[0]["label"] == "1:a"


@pytest.mark.parametrize(
    "headers, status",
    [
        ({}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "LOCALHOST:1"}, 200),
        ({"Host": "[::1]:8501"}, 200),
        ({"Host": "a.localhost"}, 200),
        ({"Host": "proxy.example:80"}, 200),
        ({"Host": "evil.example"}, 400),
        ({"Host": "localhost.evil.example"}, 400),
        ({"Host": "192.0.2.1"}, 400),
        ({"Host": "[::1"}, 400),
        ({"Host": ""}, 400),
        ({"Origin": "http://localhost:8888"}, 200),
        ({"Origin": "https://proxy.example"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "http://[::1]:8888"}, 200),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 200),
        ({"Content-Type": None}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": None, "Origin": "http://localhost:8888"}, 415),
        (
            {
                "Content-Type": "application/x-www-form-urlencoded",
                "Origin": "http://localhost:8888",
            },
            415,
        ),
    ],
)
def test_pages_of_other_sites_are_rejected(proxied, headers, status):
    """A page can give an address of this machine its own name, and send plain text anywhere."""
    headers = {"Content-Type": "application/json", **headers}
    answer = requests.post(
        proxied.rest + PATH, data=b'{"instances": ["a"]}', headers=headers, timeout=10
    )
    assert answer.status_code == status
    if status == 400:
        assert answer.text == "Invalid host header"  # Starlette's
    elif status != 200:
        assert answer.json()["error"]
    if "Host" in headers:
        answer = requests.get(f"{proxied.rest}/v1/models/echo", headers=headers, timeout=10)
        assert answer.status_code == status


def test_the_host_names_of_a_server():
    loopback = ["*.localhost", "127.0.0.1", "[::1]", "localhost"]
    assert bounds.host_names("127.0.0.1") == bounds.host_names("LOCALHOST") == loopback
    assert bounds.host_names("box", ["Proxy.example"]) == sorted(
        [*loopback, "box", "proxy.example"]
    )
    assert bounds.host_names("fe80::1", ["[fe80::2]"]) == sorted(
        [*loopback, "[fe80::1]", "[fe80::2]"]
    )
    for host in ("0.0.0.0", "::", ""):
        assert socket.gethostname().lower() in bounds.host_names(host)
        assert "*" not in bounds.host_names(host)


def test_a_server_on_all_addresses_lists_its_host_names(echo_folder):
    with running(models=[echo_folder], host="0.0.0.0") as server:
        (line,) = [line for line in server.lines if line.startswith("Hosts")]
        assert "localhost" in line and "--allowed-hosts" in line
        address = f"http://127.0.0.1:{server.rest_port}/v1/models/echo"
        for name, status in ((socket.gethostname(), 200), ("0.0.0.0", 200), ("192.0.2.9", 400)):
            answer = requests.get(address, headers={"Host": name}, timeout=10)
            assert answer.status_code == status


@pytest.mark.parametrize("name", ["", "a*", "*a", "a.*.b", "**"])
def test_invalid_host_names_are_rejected(echo_folder, name):
    with pytest.raises(kb.InputError, match="Invalid `allowed_hosts` .* Expected a host name"):
        ServeSettings.of({"models": echo_folder, "allowed_hosts": [name]})


def test_responses_do_not_wait_for_the_acknowledgement_of_their_headers(server):
    with requests.Session() as session:
        session.get(f"{server.rest}/v1/models/echo", timeout=10)
        for connection in server._uvicorn.server_state.connections.copy():
            sent_from = connection.transport.get_extra_info("socket")
            assert sent_from.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_other_sites_cannot_show_the_page_in_a_frame(server):
    for path in ("/", "/v1/models/echo", "/nowhere"):
        headers = requests.get(server.rest + path, timeout=10).headers
        assert headers["X-Frame-Options"] == "SAMEORIGIN"
        policy = headers["Content-Security-Policy"]
        assert "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*" in policy


def test_unanswered_requests_are_rejected_when_the_server_stops(echo_folder, gate, monkeypatch):
    """The server does not wait for running computations, which cannot be cancelled."""
    monkeypatch.setattr(development_server, "_LAST_ANSWERS", 0.5)
    with contextlib.ExitStack() as stack:
        ending = stack.enter_context(running(models=[echo_folder]))
        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(6))
        clients = [connect(ending.rest, timeout=60) for _ in range(6)]
        asked = [
            threads.submit(stack.enter_context(client).predict, "echo", [{"text": "held"}])
            for client in clients
        ]
        slow = stack.enter_context(raw(ending))
        slow.sendall(sent(f"POST {PATH}", b"Content-Length: 100\r\n\r\n{"))
        until(lambda: len(ending._uvicorn.server_state.tasks) == 7)
        ending.stop()
        for one in asked:
            rejected = one.exception(timeout=120)
            assert isinstance(rejected, ServerError) and rejected.code == "UNAVAILABLE"
            assert "was stopped before" in str(rejected)
        assert b"503" in received(slow)
        until(lambda: not ending.thread.is_alive())
        assert not gate.may.is_set()
        assert ending.last_words() == "Stopped. 7 requests could not be answered."
        gate.may.set()


def test_a_second_interrupt_stops_the_server_at_once(echo_folder, gate, monkeypatch):
    """After the first alone it would wait for the last answers: here for longer than the test."""
    monkeypatch.setattr(development_server, "_LAST_ANSWERS", 100_000)
    with contextlib.ExitStack() as stack:
        ending = stack.enter_context(running(models=[echo_folder]))
        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        client = stack.enter_context(connect(ending.rest, timeout=60))
        asked = threads.submit(client.predict, "echo", [{"text": "held"}])
        assert gate.begun.acquire(timeout=120)
        ending._uvicorn.handle_exit(signal.SIGINT, None)
        time.sleep(0.5)
        assert ending.thread.is_alive() and not asked.done()
        ending._uvicorn.handle_exit(signal.SIGINT, None)
        assert asked.exception(timeout=120).code == "UNAVAILABLE"
        until(lambda: not ending.thread.is_alive())
        gate.may.set()


def test_an_address_that_is_not_available_is_rejected(server, echo_folder):
    for address, message in (
        ({"rest_port": server.rest_port}, "Cannot listen on 127.0.0.1"),
        ({"host": "a..b"}, "Cannot listen on a..b"),
    ):
        settings = ServeSettings.of({"models": [echo_folder], "rest_port": 0, **address})
        with raises_input_error(message):
            DevelopmentServer(settings, report=lambda line: None)
