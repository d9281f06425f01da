"""What every request is held to: who asks, its size, its time, how many there are at once."""

import asyncio
import contextlib
import ipaddress
import json
import socket
from urllib.parse import urlsplit

from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_bert.serving.request_error import RequestError

_FORM = "application/x-www-form-urlencoded"


class Places:
    """How many requests an endpoint takes at a time: `most` that arrive, and `most` that are here.

    So whoever sends slowly takes no place from the others: a new request takes the place of the one
    that has been arriving longest, which is refused. Only what is here whole keeps others out.
    """

    def __init__(self, server, most):
        self.most = most
        self._server = server
        self._arriving = {}  # `asyncio.Timeout`s as keys, in the order in which requests came
        self._answering = 0

    @contextlib.asynccontextmanager
    async def arriving(self):
        """Around the arrival of a request. Raises `RequestError` where it takes too long."""
        seconds = f"{self._server.timeout:g} s"
        late = f"The request took longer than {seconds} to arrive, or others needed its place."
        async with self._server.time_limit(late) as limit:
            if len(self._arriving) >= self.most:
                oldest = next(iter(self._arriving))
                del self._arriving[oldest]
                if not oldest.expired():
                    oldest.reschedule(asyncio.get_running_loop().time())
            self._arriving[limit] = None
            try:
                yield
            finally:
                self._arriving.pop(limit, None)

    @contextlib.contextmanager
    def answering(self):
        """Around the answer to a request. Raises `RequestError` where all places are taken."""
        if self._answering >= self.most:
            raise RequestError(
                "RESOURCE_EXHAUSTED", f"This server takes {self.most} requests at a time."
            )
        self._answering += 1
        try:
            yield
        finally:
            self._answering -= 1


class Hosts:
    """The names under which the server may be asked: loopback ones, `host` and `more`.

    A web page of somebody else's can have its own name resolved to an address of this machine, and
    then ask the server as if it were its own (DNS rebinding). The name stays in the request. Where
    the server listens on all addresses, each address is a name of it, and so is the machine's name.
    """

    def __init__(self, host, more=()):
        self._names = {name.lower() for name in ("localhost", host, *more) if name}
        address = _address(host)
        self._any_address = host == "" or address is not None and address.is_unspecified
        if self._any_address:
            self._names.add(socket.gethostname().lower())

    def allows(self, netloc):
        """Whether a request may name `HOST` or `HOST:PORT`."""
        try:
            name = urlsplit(f"//{netloc}").hostname or ""
        except ValueError:  # such as an address of IPv6 without its end
            return False
        if name in self._names or name.endswith(".localhost"):
            return True
        address = _address(name)
        return address is not None and (self._any_address or address.is_loopback)


def _address(name):
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class Bounds:
    """An ASGI application around another, which sees whole requests only.

    * Under a name of the server that is not among the `Hosts`, or from a page of another site: 403.
    * A body that a web page can send anywhere without asking, as plain text: 415.
    * A body over `max_body` bytes: 413. The rest of it is read and thrown away, up to four times as
      much, so that whoever sends it gets to read the answer.
    * A body that takes too long to arrive: 408.
    * More than there are `Places`: 503.
    * The client leaves: what is done for it is cancelled.
    """

    def __init__(self, app, *, hosts, places, max_body):
        self._app = app
        self._hosts = hosts
        self._places = places
        self._max_body = max_body

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":  # start-up and shut-down
            await self._app(scope, receive, send)
            return
        try:
            async with self._places.arriving():
                body = await self._body(receive)
        except RequestError as request_error:
            await _reject(
                send, 408 if request_error.code == "DEADLINE_EXCEEDED" else 503, str(request_error)
            )
            return
        except _TooLarge:
            await _reject(send, 413, f"A request has at most {self._max_body:,} bytes.")
            return
        if body is None:  # the client has left
            return
        rejected = self._rejected(scope)  # not before: who is still sending would not read why
        if rejected is not None:
            await _reject(send, *rejected)
            return
        with contextlib.ExitStack() as place:
            try:
                place.enter_context(self._places.answering())
            except RequestError as request_error:
                await _reject(send, 503, str(request_error))
                return
            await self._answer(scope, body, receive, send, place)

    def _rejected(self, scope):
        """(status, sentence) for a request whose headers are wrong, else None."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        host, origin = headers.get("host"), headers.get("origin")
        if host is not None and not self._hosts.allows(host):
            return 403, (
                f"The server does not answer to the name {host!r}. Use localhost, or name it with "
                "--allowed-hosts when the server is started."
            )
        if origin is not None and not self._hosts.allows(origin.partition("://")[2]):
            return 403, f"The server does not answer to pages of {origin!r}."
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Without an origin it is no web page: curl's default, as in TensorFlow Serving's examples.
        known = ("application/json",) if origin is not None else ("application/json", "", _FORM)
        if scope["method"] == "POST" and kind not in known:
            said = f"is {kind}" if kind else "is missing"
            return 415, f"The Content-Type {said}. Expected application/json."
        return None

    async def _answer(self, scope, body, receive, send, place):
        leaving = asyncio.create_task(receive())
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole():
            return messages.pop() if messages else await asyncio.shield(leaving)

        async def send_and_leave(message):
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                # At once: the client may send its next request before this one's task ends.
                place.close()

        answer = asyncio.create_task(self._app(scope, receive_whole, send_and_leave))
        try:
            await asyncio.wait({answer, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answer, leaving):
                task.cancel()
            await asyncio.gather(answer, leaving, return_exceptions=True)
        if not answer.cancelled():
            answer.result()  # raises what went wrong

    async def _body(self, receive):
        """The whole body; None where the client leaves before. Raises `_TooLarge`."""
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size <= self._max_body:
                parts.append(part)
            else:
                parts.clear()
            if size > 4 * self._max_body:
                raise _TooLarge
            if not message.get("more_body", False):
                break
        if size > self._max_body:
            raise _TooLarge
        return b"".join(parts)


class PromptProtocol(H11Protocol):
    """Uvicorn's protocol, which by itself waits for ever for headers, and for who takes an answer.

    Here headers are waited for as long as a connection may be idle between two requests, and what
    is written must be taken within `timeout` seconds; otherwise the connection ends.

    There are at most `most` connections. A new one takes the place of the one that has been idle
    longest. Uvicorn would refuse the requests of all, for as long as there are too many.
    """

    def __init__(self, *, timeout, most, **kwargs):
        super().__init__(**kwargs)
        self._timeout = timeout
        self._most = most
        self._headers_due = self._taken_due = None
        self._idle_since = None

    def connection_made(self, transport):
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # what is not taken at once makes writing pause
        # An answer is written in two parts, the second of which would wait up to 40 ms for the
        # client's acknowledgement. asyncio sets this only for sockets whose protocol is named.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._idle_since = self.loop.time()
        self._expect_headers()
        if len(self.connections) > self._most:
            idle = [other for other in self.connections if other._is_idle]
            # The new one itself where all others have requests under way.
            min(idle, key=lambda other: other._idle_since).transport.abort()

    @property
    def _is_idle(self):
        is_free = self.cycle is None or self.cycle.response_complete
        return is_free and not self.transport.is_closing()

    def on_response_complete(self):
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def data_received(self, data):
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect_headers()
        else:
            self._headers_due = _cancelled(self._headers_due)

    def connection_lost(self, exc):
        self._headers_due = _cancelled(self._headers_due)
        self._taken_due = _cancelled(self._taken_due)
        super().connection_lost(exc)

    def pause_writing(self):
        super().pause_writing()
        # To close it would wait for the rest to be taken.
        self._taken_due = self.loop.call_later(self._timeout, self.transport.abort)

    def resume_writing(self):
        self._taken_due = _cancelled(self._taken_due)
        super().resume_writing()

    def _expect_headers(self):
        if self._headers_due is None:
            close = self.transport.close
            self._headers_due = self.loop.call_later(self.timeout_keep_alive, close)


def _cancelled(timer):
    """None, in place of a timer that is there no more."""
    if timer is not None:
        timer.cancel()


class _TooLarge(Exception):
    pass


async def _reject(send, status, message):
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
