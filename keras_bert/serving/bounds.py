"""Who may send requests, and the time limits that Starlette and uvicorn do not have."""

import contextlib
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

ANY_ADDRESS = ("", "0.0.0.0", "::")
_FORM = "application/x-www-form-urlencoded"


def host_names(host, more=()):
    """The host names that requests may have, as Starlette's `TrustedHostMiddleware` takes them.

    Another site's page can have its own host name resolved to an address of this machine, and then
    send requests as if the server were its own (DNS rebinding); the name stays in the request. A
    server that listens on all addresses also has the machine's name and its addresses as names.

    Args:
        host: where the server listens.
        more: further names.
    """
    names = {"localhost", "*.localhost", "127.0.0.1", "::1", host, *more}
    if host in ANY_ADDRESS:
        names.add(socket.gethostname())
        with contextlib.suppress(OSError):  # a machine without an address for its name
            names |= {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
    names = {name.strip("[]").lower() for name in names if name}
    return sorted(f"[{name}]" if ":" in name else name for name in names)


def reject_other_sites(app, host_names):
    """ASGI middleware that rejects what a page of another site can send to this machine:

    * 403 for an Origin header with a host that is not among the `host_names`,
    * 415 for a body that a web page can send to any site, such as plain text.

    Starlette's `CORSMiddleware` tells browsers who may read a response. It rejects no request.
    """

    async def answer(scope, receive, send):
        headers, respond = Headers(scope=scope), app
        origin = headers.get("origin")
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Without an origin it is not a web page: curl's default, as in TensorFlow Serving's docs.
        types = ("application/json",) if origin is not None else ("application/json", "", _FORM)
        if origin is not None and not _is_allowed(origin, host_names):
            message = f"Requests from pages of {origin!r} are not allowed."
            respond = JSONResponse({"error": message}, 403)
        elif scope["method"] == "POST" and content_type not in types:
            received = content_type or "none"
            message = f"The Content-Type must be application/json. Received: {received}."
            respond = JSONResponse({"error": message}, 415)
        await respond(scope, receive, send)

    return answer


def _is_allowed(origin, host_names):
    """Whether the host of an Origin header is among the names."""
    host = ""
    with contextlib.suppress(ValueError):  # such as an incomplete IPv6 address
        host = urlsplit(origin).hostname or ""
    host = f"[{host}]" if ":" in host else host
    return any(
        name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:]))
        for name in host_names
    )


class TimedProtocol(H11Protocol):
    """Uvicorn's protocol, which also closes the connections of clients that never finish.

    Uvicorn waits for ever for the headers of a request, and for a client to read a response. Here
    a connection is closed if headers, or the rest of a request that was already rejected, take
    longer than it may be idle, or if a response is not read within `timeout` seconds.
    """

    def __init__(self, *, timeout, **kwargs):
        super().__init__(**kwargs)
        self._timeout = timeout

    def connection_made(self, transport):
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # unread output pauses writing at once
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def data_received(self, data):
        # Uvicorn would cancel it at the first byte.
        idle_timer, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self.timeout_keep_alive_task = idle_timer
        elif idle_timer is not None:
            idle_timer.cancel()

    def pause_writing(self):
        super().pause_writing()
        # `close` would wait until the output is read.
        self._response_timer = self.loop.call_later(self._timeout, self.transport.abort)

    def resume_writing(self):
        self._response_timer.cancel()
        super().resume_writing()
