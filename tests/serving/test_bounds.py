"""The limits of the server: no client can block others."""

import asyncio
import concurrent.futures
import contextlib
import functools
import json
import signal
import socket
import threading
import time
import types

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from keras_bert.serving import bounds, development_server, grpc_services, tensors
from keras_bert.serving.ask import connect
from keras_bert.serving.bounds import PromptProtocol
from keras_bert.serving.development_server import DevelopmentServer
from keras_bert.serving.errors import ServerError
from keras_bert.serving.model_version import ModelVersion
from tests.messages import says
from tests.serving.running import running

PATH = "/v1/models/echo:predict"
MAX_BODY, MAX_BATCH, MAX_REQUESTS = 200_000, 16, 4


@pytest.fixture(scope="module")
def server(echo_folder):
    bounds = {"max_body": MAX_BODY, "max_batch": MAX_BATCH, "max_requests": MAX_REQUESTS}
    with running(models=[echo_folder], timeout=60.0, **bounds) as server:
        yield server


@pytest.fixture(autouse=True)
def _still_answers(server):
    """After each test, a request is answered as before."""
    yield
    for url in (server.rest, server.grpc):
        with connect(url, timeout=10) as client:
            assert client.predict("echo", [{"text": "after"}])[0]["label"] == "1:after"


@pytest.fixture(params=["rest", "grpc"])
def client(request, server):
    with connect(getattr(server, request.param), timeout=10) as client:
        yield client


@pytest.fixture
def held(monkeypatch):
    """The text "held" has no answer before `may` is set; `begun` counts its computations.

    `texts` are all those that were given to the model.
    """
    compute = ModelVersion.compute
    held = types.SimpleNamespace(begun=threading.Semaphore(0), may=threading.Event(), texts=[])

    def hold(self, signature, inputs):
        held.texts += inputs["text"].tolist()
        if b"held" in inputs["text"].tolist():
            held.begun.release()
            held.may.wait(60)
        return compute(self, signature, inputs)

    monkeypatch.setattr(ModelVersion, "compute", hold)
    yield held
    held.may.set()


@pytest.fixture
def set_timeout(server, monkeypatch):
    """Sets the time-out of what comes from now on."""
    return lambda seconds: monkeypatch.setattr(server._server, "timeout", seconds)


@pytest.fixture
def cancelled(server, monkeypatch):
    """Is set when a request is cancelled because its client has disconnected."""
    metrics, cancelled = server._server.metrics, threading.Event()
    count = metrics.count_request

    def counted(model, *, status, **others):
        count(model, status=status, **others)
        if status == "CANCELLED":
            cancelled.set()

    monkeypatch.setattr(metrics, "count_request", counted)
    return cancelled


@contextlib.contextmanager
def ask(server, protocol, text):
    """Asks for `text`, and leaves at the end of the block."""
    if protocol == "rest":
        body = json.dumps({"instances": [text]}).encode()
        length = f"Content-Length: {len(body)}\r\n\r\n".encode()
        with raw(server) as connection:
            connection.sendall(sent(f"POST {PATH}", length + body))
            yield
        return
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "echo"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([text]))
    with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        call = stub.Predict.future(request, timeout=60)
        yield
        call.cancel()


def until(holds):
    """Waits until `holds()`, which another thread brings about."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def raw(server):
    return socket.create_connection(("127.0.0.1", server.rest_port), timeout=10)


def sent(head, body=b""):
    return f"{head} HTTP/1.1\r\nHost: localhost\r\n".encode() + body


def everything(connection):
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


def test_a_body_without_end_is_cut_off(server):
    with raw(server) as connection:
        connection.sendall(sent(f"POST {PATH}", b"Content-Length: 99999999999\r\n\r\n"))
        with pytest.raises(OSError):
            for _ in range(10_000):
                connection.sendall(b"x" * 65536)
            assert connection.recv(1) == b"", "the server keeps reading"


def test_the_shape_of_a_tensor_is_limited(server):
    """A proto of a few bytes may say that it has the shape (1, 10^12)."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "echo"
    request.model_spec.signature_name = "two"
    request.inputs["text_a"].CopyFrom(tf.make_tensor_proto(["a"]))
    numbers = request.inputs["numbers"]
    numbers.dtype = tf.int32.as_datatype_enum
    numbers.int_val.append(1)
    for sizes in ((1, 10**12), (1, -1), (10**9, 10**9)):
        del numbers.tensor_shape.dim[:]
        for size in sizes:
            numbers.tensor_shape.dim.add(size=size)
        with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            with pytest.raises(grpc.RpcError) as rejected:
                stub.Predict(request, timeout=10)
        assert rejected.value.code() is grpc.StatusCode.INVALID_ARGUMENT, sizes


def test_an_output_is_requested_once(server, monkeypatch):
    """A request has room for half a million names; each would be a copy of the output."""
    made = []
    make = tf.make_tensor_proto
    request = predict_pb2.PredictRequest(output_filter=["score"] * 20_000)
    request.model_spec.name = "echo"
    request.inputs["text"].CopyFrom(make(["a"]))
    monkeypatch.setattr(tf, "make_tensor_proto", lambda array: made.append(1) or make(array))
    with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        with pytest.raises(grpc.RpcError) as rejected:
            stub.Predict(request, timeout=10)
    monkeypatch.undo()
    assert rejected.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert rejected.value.details() == "duplicate output tensor alias: score" and not made


def test_inputs_that_the_model_does_not_have_are_not_read(server, monkeypatch):
    """Each tensor may be as large as a request; of unknown ones there may be thousands."""
    read = []
    monkeypatch.setattr(grpc_services, "array_of_proto", lambda name, *_, **__: read.append(name))
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "echo"
    for number in range(3):
        request.inputs[f"unknown{number}"].CopyFrom(tf.make_tensor_proto(["a"]))
    with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        with pytest.raises(grpc.RpcError) as rejected:
            stub.Predict(request, timeout=10)
    monkeypatch.undo()
    assert rejected.value.code() is grpc.StatusCode.INVALID_ARGUMENT and read == []


def test_a_version_of_thousands_of_digits_is_rejected(server):
    answer = requests.get(f"{server.rest}/v1/models/echo/versions/{'9' * 5000}", timeout=10)
    assert answer.status_code == 400 and answer.json()["error"]


def test_an_invalid_tensor_is_rejected(server):
    """Of values that its type has no room for, and of a type that is no data."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "echo"
    text = request.inputs["text"]
    text.tensor_shape.dim.add(size=1)
    text.int_val.append(300)
    with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        for dtype in (tf.uint8, tf.resource):
            text.dtype = dtype.as_datatype_enum
            with pytest.raises(grpc.RpcError) as rejected:
                stub.Predict(request, timeout=10)
            assert rejected.value.code() is grpc.StatusCode.INVALID_ARGUMENT, dtype


def test_slow_clients_are_not_waited_for(server, monkeypatch, set_timeout):
    set_timeout(0.2)
    monkeypatch.setattr(server._http.config, "timeout_keep_alive", 0.2)
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
            found = everything(connection)
            assert answer in found and (found == b"") == (answer == b"")


def test_a_client_that_does_not_read_its_response_is_disconnected(server, monkeypatch):
    """Its connection would keep the response, and a place of the capacity."""

    def large(
        self, signature, inputs
    ):  # more than the system takes for a client that reads nothing
        return {"label": np.array([b"x" * 2**26], object)}

    monkeypatch.setattr(ModelVersion, "compute", large)
    hasty = functools.partial(PromptProtocol, timeout=0.2, most=9)
    monkeypatch.setattr(server._http.config, "http_protocol_class", hasty)
    with raw(server) as connection:

        def is_there():
            clients = [other.client for other in server._http.server_state.connections.copy()]
            return connection.getsockname() in clients

        body = b'{"instances": ["a"]}'
        length = f"Content-Length: {len(body)}\r\n\r\n".encode()
        connection.sendall(sent(f"POST {PATH}", length + body))
        until(is_there)
        until(lambda: not is_there())


def test_incomplete_calls_are_ended(server, set_timeout):
    """As many as the capacity, so that the next one would be rejected."""
    set_timeout(0.2)
    over = threading.Event()

    def unsent():
        over.wait(60)
        yield from ()

    with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
        predict = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        calls = [predict.future(unsent(), timeout=10) for _ in range(MAX_REQUESTS)]
        assert {call.code() for call in calls} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        message = "The request took longer than 0.2 s to arrive, or made room for others."
        assert {call.details() for call in calls} == {message}
        over.set()


@pytest.mark.parametrize(
    "requests, message", [([], "no request"), ([b"\xff\xff"], "PredictRequest")]
)
def test_a_call_without_a_valid_request_is_rejected(server, requests, message):
    with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
        predict = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        call = predict.future(iter(requests), timeout=10)
        assert call.code() is grpc.StatusCode.INVALID_ARGUMENT and message in call.details()


def test_requests_beyond_the_capacity_are_rejected(server, held):
    places = server._http.config.app._capacity
    with contextlib.ExitStack() as waiting:
        for _ in range(MAX_REQUESTS):
            waiting.enter_context(ask(server, "rest", "held"))
        until(lambda: places._answering == MAX_REQUESTS)
        answer = requests.get(f"{server.rest}/v1/models/echo", timeout=10)
        assert answer.status_code == 503
        assert str(MAX_REQUESTS) in answer.json()["error"]
    until(lambda: places._answering == 0)


def test_slow_clients_do_not_block_others(server):
    """The one that has been arriving longest yields to each that comes."""
    with contextlib.ExitStack() as connections:
        slow = []
        for _ in range(3 * MAX_REQUESTS):
            slow.append(connections.enter_context(raw(server)))
            slow[-1].sendall(sent(f"POST {PATH}", b"Content-Length: 100\r\n\r\n{"))
        assert all(b" 408 " in everything(one) for one in slow[:-MAX_REQUESTS])
        for _ in range(2 * MAX_REQUESTS):
            answer = requests.post(server.rest + PATH, json={"instances": ["a"]}, timeout=10)
            assert answer.status_code == 200


def test_idle_connections_do_not_block_others(server):
    with contextlib.ExitStack() as connections:
        idle = [connections.enter_context(raw(server)) for _ in range(10 * MAX_REQUESTS)]
        for _ in range(2 * MAX_REQUESTS):
            answer = requests.post(server.rest + PATH, json={"instances": ["a"]}, timeout=10)
            assert answer.status_code == 200
        assert len(server._http.server_state.connections) <= 4 * MAX_REQUESTS
        with contextlib.suppress(ConnectionResetError):
            assert everything(idle[0]) == b""


def test_slow_calls_do_not_block_others(server):
    over = threading.Event()

    def unsent():
        over.wait(60)
        yield from ()

    with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
        predict = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        calls = [predict.future(unsent(), timeout=30) for _ in range(2 * MAX_REQUESTS)]
        until(lambda: sum(call.done() for call in calls) >= MAX_REQUESTS)
        with connect(server.grpc, timeout=10) as client:
            assert client.predict("echo", [{"text": "a"}])[0]["label"] == "1:a"
        over.set()


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_as_many_clients_as_the_capacity_are_never_rejected(server, protocol):
    """Whose next request comes as soon as they have an answer."""

    def ask_again_and_again(number):
        with connect(getattr(server, protocol), timeout=30) as client:
            return [client.predict("echo", [{"text": f"{number}"}]) for _ in range(40)]

    with concurrent.futures.ThreadPoolExecutor(MAX_REQUESTS) as threads:
        answers = list(threads.map(ask_again_and_again, range(MAX_REQUESTS)))
    for number, answered in enumerate(answers):
        assert {row["label"] for (row,) in answered} == {f"1:{number}"}


def test_calls_beyond_the_capacity_are_rejected(server, held):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "echo"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["held"]))

    def all_are_there():
        return len(held.texts) + len(server._server._batchers["echo"]._waiting) == MAX_REQUESTS

    with grpc.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        calls = [stub.Predict.future(request, timeout=60) for _ in range(MAX_REQUESTS)]
        until(all_are_there)
        beyond = stub.Predict.future(request, timeout=60)
        assert beyond.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        held.may.set()
        assert {call.code() for call in calls} == {grpc.StatusCode.OK}


def test_a_client_that_disconnects_while_waiting_is_not_computed(server, held, cancelled):
    """Two held requests use both slots; the third disconnects before its turn."""
    with contextlib.ExitStack() as slots:
        for _ in range(2):
            slots.enter_context(ask(server, "rest", "held"))
            assert held.begun.acquire(timeout=10)
        with ask(server, "rest", "left"):
            until(lambda: server._server._batchers["echo"]._waiting)
        assert cancelled.wait(10)
        held.may.set()
        answer = requests.post(server.rest + PATH, json={"instances": ["last"]}, timeout=10)
    assert answer.json()["predictions"][0]["label"] == "1:last"
    assert b"left" not in held.texts and b"last" in held.texts


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_a_request_is_cancelled_when_its_client_disconnects(server, held, cancelled, protocol):
    with ask(server, protocol, "held"):
        assert held.begun.acquire(timeout=10)
    assert cancelled.wait(10), "the server waits for a response without a client"
    held.may.set()


def test_a_failure_of_the_server_is_counted_as_one(server, monkeypatch):
    counted = []
    monkeypatch.setattr(
        server._server.metrics, "count_request", lambda *_, status, **__: counted.append(status)
    )
    monkeypatch.setattr(tensors, "write_outputs", lambda *_: 1 / 0)
    answer = requests.post(server.rest + PATH, json={"instances": ["a"]}, timeout=10)
    monkeypatch.undo()
    assert answer.status_code == 500 and "ZeroDivisionError" in answer.json()["error"]
    assert counted == ["INTERNAL"]


def test_a_request_that_takes_too_long_times_out(server, held, set_timeout):
    set_timeout(0.1)
    for url in (server.rest, server.grpc):
        with connect(url, timeout=10) as client, pytest.raises(ServerError) as rejected:
            client.predict("echo", [{"text": "held"}])
        assert rejected.value.code == "DEADLINE_EXCEEDED"


def test_others_time_out_while_long_computations_use_all_slots(server, held, set_timeout):
    """A computation cannot be cancelled; requests that wait for it time out."""
    body = {"instances": ["held"]}
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        long = []
        for _ in range(2):  # one after the other: two that come at once are one computation
            long.append(threads.submit(requests.post, server.rest + PATH, json=body, timeout=60))
            assert held.begun.acquire(timeout=10)
        set_timeout(0.1)
        answer = requests.post(server.rest + PATH, json={"instances": ["short"]}, timeout=10)
        assert answer.status_code == 504 and "within 0.1 s" in answer.json()["error"]
        with connect(server.grpc, timeout=10) as client, pytest.raises(ServerError) as rejected:
            client.predict("echo", [{"text": "short"}])
        assert rejected.value.code == "DEADLINE_EXCEEDED"
        held.may.set()
        answers = [asked.result().json()["predictions"][0]["label"] for asked in long]
    assert answers == ["1:held"] * 2, "without the errors of the others"


@pytest.mark.parametrize(
    "protocol, module, writes",
    [("rest", tensors, "write_outputs"), ("grpc", grpc_services, "_response")],
)
def test_others_are_answered_while_a_response_is_written(
    server, monkeypatch, protocol, module, writes
):
    """The vectors of a batch are millions of numbers as text, and take seconds."""
    write, begun, may = getattr(module, writes), threading.Event(), threading.Event()

    def hold(*arguments):
        begun.set()
        may.wait(20)
        return write(*arguments)

    monkeypatch.setattr(module, writes, hold)
    with (
        connect(getattr(server, protocol), timeout=60) as client,
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
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Host": "192.0.2.1"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Origin": "http://localhost:8888"}, 200),
        ({"Origin": "https://proxy.example"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
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
def test_pages_of_other_sites_are_rejected(server, monkeypatch, headers, status):
    """A page can give an address of this machine its own name, and send plain text anywhere."""
    monkeypatch.setattr(
        server._http.config.app, "_hosts", bounds.Hosts("127.0.0.1", ["proxy.example"])
    )
    headers = {"Content-Type": "application/json", **headers}
    answer = requests.post(
        server.rest + PATH, data=b'{"instances": ["a"]}', headers=headers, timeout=10
    )
    assert answer.status_code == status
    assert status == 200 or answer.json()["error"]
    if "Host" in headers:
        found = requests.get(f"{server.rest}/v1/models/echo", headers=headers, timeout=10)
        assert found.status_code == status


@pytest.mark.parametrize(
    "host, allowed, rejected",
    [
        ("127.0.0.1", ["127.0.0.1", "127.8.8.8:80", "[::1]"], ["0.0.0.0", "10.0.0.1", "box", ""]),
        ("box", ["box:8501", "localhost"], ["10.0.0.1", "other", "box.other"]),
        ("10.0.0.1", ["10.0.0.1", "127.0.0.1"], ["10.0.0.2"]),
        ("0.0.0.0", ["0.0.0.0", "10.0.0.1:1", "[fe80::1]", socket.gethostname()], ["other", ""]),
        ("::", ["[::]", "10.0.0.1"], ["other"]),
        ("", ["10.0.0.1"], ["other", ""]),
    ],
)
def test_the_host_names_of_a_server(host, allowed, rejected):
    hosts = bounds.Hosts(host)
    assert [name for name in allowed if not hosts.allows(name)] == []
    assert [name for name in rejected if hosts.allows(name)] == []


def test_responses_do_not_wait_for_the_acknowledgement_of_their_headers(server):
    with requests.Session() as session:
        session.get(f"{server.rest}/v1/models/echo", timeout=10)
        for connection in server._http.server_state.connections.copy():
            sent_from = connection.transport.get_extra_info("socket")
            assert sent_from.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_other_sites_cannot_show_the_page_in_a_frame(server):
    for path in ("/", "/v1/models/echo", "/nowhere"):
        headers = requests.get(server.rest + path, timeout=10).headers
        assert headers["X-Frame-Options"] == "SAMEORIGIN"
        policy = headers["Content-Security-Policy"]
        assert "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*" in policy


def test_unanswered_requests_are_rejected_when_the_server_stops(echo_folder, held, monkeypatch):
    """The server does not wait for running computations, which cannot be cancelled."""
    monkeypatch.setattr(development_server, "_LAST_ANSWERS", 0.5)
    with contextlib.ExitStack() as stack:
        ending = stack.enter_context(running(models=[echo_folder]))
        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(6))
        clients = [connect(url, timeout=60) for url in 3 * [ending.rest, ending.grpc]]
        asked = [
            threads.submit(stack.enter_context(client).predict, "echo", [{"text": "held"}])
            for client in clients
        ]
        places = (ending._http.config.app._capacity, ending._grpc_capacity)
        until(lambda: sum(one._answering for one in places) == 6)
        slow = stack.enter_context(raw(ending))
        slow.sendall(sent(f"POST {PATH}", b"Content-Length: 100\r\n\r\n{"))
        until(lambda: places[0]._arriving)
        start = time.monotonic()
        ending.stop()
        for one in asked:
            rejected = one.exception(timeout=10)
            assert isinstance(rejected, ServerError) and rejected.code == "UNAVAILABLE"
            assert "was stopped before" in str(rejected)
        assert b"503" in everything(slow)
        until(lambda: not ending.thread.is_alive())
        assert time.monotonic() - start < 5 and not held.may.is_set()
        assert ending.last_words() == "Stopped. 7 requests could not be answered in 0.5 s."
        held.may.set()


def test_a_second_signal_stops_the_server_at_once(echo_folder, held):
    with contextlib.ExitStack() as stack:
        ending = stack.enter_context(running(models=[echo_folder]))
        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        client = stack.enter_context(connect(ending.grpc, timeout=60))
        asked = threads.submit(client.predict, "echo", [{"text": "held"}])
        assert held.begun.acquire(timeout=10)
        start = time.monotonic()
        for _ in range(2):
            ending._http.handle_exit(signal.SIGTERM, None)
            time.sleep(0.5)
        assert asked.exception(timeout=10).code == "UNAVAILABLE"
        until(lambda: not ending.thread.is_alive())
        assert time.monotonic() - start < development_server._LAST_ANSWERS / 2
        held.may.set()


def test_an_address_that_is_not_available_is_rejected(server, echo_folder):
    for ports, message in (
        ({"rest_port": server.rest_port}, "Cannot listen on 127.0.0.1"),
        ({"grpc_port": server.grpc_port}, "gRPC cannot listen on ... Choose another `grpc_port`"),
        ({"host": "a..b"}, "Cannot listen on a..b"),
    ):
        settings = {"rest_port": 0, "grpc_port": 0, **ports}
        second = DevelopmentServer(models=[echo_folder], report=lambda line: None, **settings)
        with says(message):
            asyncio.run(second.run())
