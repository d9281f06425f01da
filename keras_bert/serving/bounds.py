"""What every request over HTTP is held to: its size, its time, how many there are at once."""

import asyncio
import json

from uvicorn.protocols.http.h11_impl import H11Protocol


class Bounds:
    """An ASGI application around another, which sees whole requests only.

    * More than `max_requests` at a time: 503.
    * A body over `max_body` bytes: 413. The rest of it is read and thrown away, up to four times as
      much, so that whoever sends it gets to read the answer.
    * A body that is not there within `timeout` seconds: 408.
    * The client leaves: what is done for it is cancelled.
    """

    def __init__(self, app, *, max_body, max_requests, timeout):
        self._app = app
        self._max_body = max_body
        self._max_requests = max_requests
        self._timeout = timeout
        self._under_way = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":  # start-up and shut-down
            await self._app(scope, receive, send)
            return
        if self._under_way >= self._max_requests:
            await _refuse(send, 503, f"This server takes {self._max_requests} requests at a time.")
            return
        self._under_way += 1
        try:
            await self._bounded(scope, receive, send)
        finally:
            self._under_way -= 1

    async def _bounded(self, scope, receive, send):
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._body(receive)
        except TimeoutError:
            await _refuse(send, 408, f"The request was not here within {self._timeout:g} s.")
            return
        except _TooLarge:
            await _refuse(send, 413, f"A request has at most {self._max_body:,} bytes.")
            return
        if body is None:  # the client has left
            return
        leaving = asyncio.create_task(receive())
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole():
            return messages.pop() if messages else await asyncio.shield(leaving)

        answer = asyncio.create_task(self._app(scope, receive_whole, send))
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
    """

    def __init__(self, *, timeout, **kwargs):
        super().__init__(**kwargs)
        self._timeout = timeout
        self._headers_due = self._taken_due = None

    def connection_made(self, transport):
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # what is not taken at once makes writing pause
        self._expect_headers()

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


async def _refuse(send, status, message):
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
