"""The development server: its models, its REST endpoint, and new versions."""

import asyncio
import contextlib
import functools
import socket
import threading

import uvicorn
from starlette.concurrency import run_in_threadpool

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.serving.bounds import ANY_ADDRESS, TimedProtocol, host_names
from keras_bert.serving.model_version import ServedModel, model_folders
from keras_bert.serving.rest import http_application
from keras_bert.serving.settings import ServeSettings

# Seconds for running requests to be answered when the server stops; less than the ten seconds that
# `docker stop` waits.
_LAST_ANSWERS = 8
# Pages of this machine may show the server's page in a frame, as a notebook does.
_FRAMES = "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"
_HEADERS = [
    ("Content-Security-Policy", f"default-src 'self'; img-src data:; {_FRAMES}"),
    ("X-Frame-Options", "SAMEORIGIN"),  # for browsers without frame-ancestors
]


class DevelopmentServer:
    """The server, in the caller's event loop; see `serve`.

    Attributes:
        started: a `threading.Event`, after which the others are set.
        rest_port: the port.
        rest: the address, as `ask` takes it.
    """

    def __init__(self, *, report=print, **settings):
        self._settings = ServeSettings.of(settings)
        self._report = report
        folders = model_folders(self._settings.models)
        self._models = {name: ServedModel(name, folder) for name, folder in folders.items()}
        for model in self._models.values():
            _load(model, report)
        self._host_names = host_names(self._settings.host, self._settings.allowed_hosts or ())
        self._application = http_application(self._models, self._settings, self._host_names)
        self._uvicorn = None
        self.rest_port = self.rest = None
        self.started = threading.Event()

    async def run(self):
        """Serves until `stop`, or a signal in the main thread."""
        host = self._settings.host
        with contextlib.closing(_listen(host, self._settings.rest_port)) as listening:
            self.rest_port = listening.getsockname()[1]
            self.rest = f"http://{f'[{host}]' if ':' in host else host}:{self.rest_port}"
            self._uvicorn = uvicorn.Server(self._uvicorn_config())
            polling = asyncio.create_task(self._poll_versions())
            self._report("This server is for development. For production, use TensorFlow Serving.")
            self._report(f"REST   {self.rest}/v1/models/{next(iter(self._models))}")
            self._report(f"Page   {self.rest}/")
            if host in ANY_ADDRESS:
                names = ", ".join(self._host_names)
                self._report(f"Hosts  {names}. Name others with --allowed-hosts.")
            self.started.set()
            try:
                await self._uvicorn.serve(sockets=[listening])
            finally:
                polling.cancel()
                for model in self._models.values():
                    model.close()

    def stop(self):
        """Stops the server; may be called from any thread."""
        self._uvicorn.should_exit = True

    def last_words(self):
        """Whether the requests that were running when the server was stopped were answered."""
        unanswered = self._application.state.unanswered
        if unanswered == 0:
            return "Stopped. All running requests were answered."
        return f"Stopped. {counted(unanswered, 'request')} could not be answered."

    def _uvicorn_config(self):
        return uvicorn.Config(
            self._application,
            http=functools.partial(TimedProtocol, timeout=self._settings.timeout),
            limit_concurrency=self._settings.max_requests + 1,  # uvicorn rejects at its limit
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            headers=_HEADERS,
            timeout_graceful_shutdown=_LAST_ANSWERS,
        )

    async def _poll_versions(self):
        while True:
            await asyncio.sleep(self._settings.poll)
            for model in self._models.values():
                line = await run_in_threadpool(model.refresh)
                if line is not None:
                    # The output may be closed, or in an encoding without these characters.
                    with contextlib.suppress(OSError, ValueError):
                        self._report(line)


def _load(model, report):
    """Loads the newest version that loads; `InputError` if none does."""
    lines = list(iter(model.refresh, None))
    if "AVAILABLE" not in {state.state for state in model.states.values()}:
        raise InputError(" ".join(lines))
    for line in lines:
        report(line)


def _listen(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(f"Cannot listen on {host}, port {port}: {error}.") from None
