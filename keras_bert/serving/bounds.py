"""Limits of requests: who may send them, their size, their time, how many there are at once."""

import asyncio
import contextlib
import ipaddress
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_bert.serving.errors import RequestError

_FORM = "application/x-www-form-urlencoded"


class Capacity:
    """How many requests an endpoint takes: `most` that arrive, and `most` that are answered.

    So a slow client does not block others: when all places are taken, a new request replaces the
    one that has been arriving longest, which is rejected. Only complete requests keep others out.
    """

    def __init__(self, server, most):
        self.most = most
        self._server = server
        self._arriving = {}  # `asyncio.Timeout`s as keys, the oldest first
        self._answering = 0

    @contextlib.asynccontextmanager
    async def arriving(self):
        """A context for the arrival of a request. Raises `RequestError` if it takes too long."""
        seconds = f"{self._server.timeout:g} s"
        late = f"The request took longer than {seconds} to arrive, or made room for others."
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
        """A context for the answer to a request. Raises `RequestError` if there are too many."""
        if self._answering >= self.most:
            raise RequestError(
                f"This server takes {self.most} requests at a time.", "RESOURCE_EXHAUSTED"
            )
        self._answering += 1
        try:
            yield
        finally:
            self._answering -= 1


class Hosts:
    """The host names that requests may have: loopback names, `host` and `more`.

    Another site's page can have its own host name resolved to an address of this machine, and then
    send requests as if the server were its own (DNS rebinding); the name stays in the request. A
    server that listens on all addresses also has each address and the machine's name as a name.

    Starlette's TrustedHostMiddleware knows names only, not addresses.
    """

    def __init__(self, host, more=()):
        self._names = {name.lower() for name in ("localhost", host, *more) if name}
        address = _address(host)
        self._any_address = host == "" or address is not None and address.is_unspecified
        if self._any_address:
            self._names.add(socket.gethostname().lower())

    def allows(self, netloc):
        """Whether a request may have the host `HOST` or `HOST:PORT`."""
        try:
            name = urlsplit(f"//{netloc}").hostname or ""
        except ValueError:  # such as an incomplete IPv6 address
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


class _Rejected(Exception):
    """A response instead of an answer: (HTTP status, message)."""


class Bounds:
    """ASGI middleware: the application gets complete requests only. Others are rejected with

    * 403 for a host name that is not among the `Hosts`, or from a page of another site,
    * 415 for a body that a web page can send to any site, such as plain text,
    * 413 for a body over `max_body` bytes; up to four times as much is read, so that the client
      reads the response,
    * 408 for a body that takes too long to arrive,
    * 503 for more requests than the `Capacity`.

    When the client disconnects, its request is cancelled.
    """

    def __init__(self, app, *, hosts, capacity, max_body):
        self._app = app
        self._hosts = hosts
        self._capacity = capacity
        self._max_body = max_body

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":  # start-up and shut-down
            await self._app(scope, receive, send)
            return
        with contextlib.ExitStack() as place:
            try:
                async with self._capacity.arriving():
                    body = await self._body(Request(scope, receive))
                # Not before: a client that is still sending would not read the response.
                self._check_headers(scope)
                place.enter_context(self._capacity.answering())
            except ClientDisconnect:
                return
            except _Rejected as rejected:
                status, message = rejected.args
            except RequestError as error:
                status = 408 if error.code == "DEADLINE_EXCEEDED" else 503
                message = error.message
            else:
                await self._answer(scope, body, receive, send, place)
                return
        response = JSONResponse({"error": message}, status, {"connection": "close"})
        await response(scope, receive, send)

    def _check_headers(self, scope):
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        if host is not None and not self._hosts.allows(host):
            raise _Rejected(
                403,
                f"The host name {host!r} is not allowed. Use localhost, or start the server with "
                "--allowed-hosts.",
            )
        if origin is not None and not self._hosts.allows(origin.partition("://")[2]):
            raise _Rejected(403, f"Requests from pages of {origin!r} are not allowed.")
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Without an origin it is not a web page: curl's default, as in TensorFlow Serving's docs.
        known = ("application/json",) if origin is not None else ("application/json", "", _FORM)
        if scope["method"] == "POST" and content_type not in known:
            raise _Rejected(
                415,
                f"The Content-Type must be application/json. Received: {content_type or 'none'}.",
            )

    async def _body(self, request):
        body = bytearray()
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > 4 * self._max_body:
                break
            if size <= self._max_body:
                body += part
        if size > self._max_body:
            raise _Rejected(413, f"The request has more than {self._max_body:,} bytes.")
        return bytes(body)

    async def _answer(self, scope, body, receive, send, place):
        disconnect = asyncio.create_task(receive())
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_complete():
            return messages.pop() if messages else await asyncio.shield(disconnect)

        async def send_and_leave(message):
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                # At once: the client may send its next request before this task ends.
                place.close()

        answer = asyncio.create_task(self._app(scope, receive_complete, send_and_leave))
        try:
            await asyncio.wait({answer, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answer, disconnect):
                task.cancel()
            await asyncio.gather(answer, disconnect, return_exceptions=True)
        if not answer.cancelled():
            answer.result()  # raises the application's error


class PromptProtocol(H11Protocol):
    """Uvicorn's protocol with time limits for headers and responses, and bounded connections.

    Uvicorn waits for ever for the headers of a request, and for a client to read a response. Here a
    connection is closed if headers take longer than a connection may be idle, or if a response is
    not read within `timeout` seconds.

    There are at most `most` connections: a new one replaces the one that has been idle longest.
    Uvicorn would reject all requests for as long as there are too many.
    """

    def __init__(self, *, timeout, most, **kwargs):
        super().__init__(**kwargs)
        self._timeout = timeout
        self._most = most
        self._headers_timer = self._response_timer = None
        self._idle_since = None

    def connection_made(self, transport):
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # unread output pauses writing at once
        # A response is written in two parts, and the second would wait up to 40 ms for the client's
        # acknowledgement. asyncio sets this only for sockets whose protocol is named.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._idle_since = self.loop.time()
        self._expect_headers()
        if len(self.connections) > self._most:
            idle = [other for other in self.connections if other._is_idle]
            # The new one itself if all others have requests.
            min(idle, key=lambda other: other._idle_since).transport.abort()

    @property
    def _is_free(self):
        return self.cycle is None or self.cycle.response_complete

    @property
    def _is_idle(self):
        return self._is_free and not self.transport.is_closing()

    def on_response_complete(self):
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def data_received(self, data):
        super().data_received(data)
        if self._is_free:
            self._expect_headers()
        else:
            self._headers_timer = _cancelled(self._headers_timer)

    def connection_lost(self, exc):
        self._headers_timer = _cancelled(self._headers_timer)
        self._response_timer = _cancelled(self._response_timer)
        super().connection_lost(exc)

    def pause_writing(self):
        super().pause_writing()
        # `close` would wait until the output is read.
        self._response_timer = self.loop.call_later(self._timeout, self.transport.abort)

    def resume_writing(self):
        self._response_timer = _cancelled(self._response_timer)
        super().resume_writing()

    def _expect_headers(self):
        if self._headers_timer is None:
            close = self.transport.close
            self._headers_timer = self.loop.call_later(self.timeout_keep_alive, close)


def _cancelled(timer):
    """Cancels a timer and returns None, its replacement."""
    if timer is not None:
        timer.cancel()
