"""The development server: its models, its REST and gRPC endpoints, and new versions."""

import asyncio
import contextlib
import functools
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import uvicorn

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.serving.bounds import Bounds, Capacity, Hosts, PromptProtocol
from keras_bert.serving.grpc_services import grpc_server
from keras_bert.serving.model_server import ModelServer
from keras_bert.serving.model_version import ServedModel, model_folders
from keras_bert.serving.rest import http_application
from keras_bert.serving.settings import ServeSettings

# Seconds for running requests to be answered, and for others to be rejected, when the server stops;
# together less than the ten seconds that `docker stop` waits.
_LAST_ANSWERS, _LAST_REJECTIONS = 8, 1
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
        rest_port, grpc_port: the ports.
        rest, grpc: the addresses, as `ask` takes them.
    """

    def __init__(self, *, report=print, **settings):
        self._settings = settings = ServeSettings.of(settings)
        self._report = report
        self._models = [
            ServedModel(name, folder) for name, folder in model_folders(settings.models).items()
        ]
        for model in self._models:
            _load(model, report)
        self._server = ModelServer(
            self._models, max_batch=settings.max_batch, timeout=settings.timeout
        )
        self._grpc_capacity = Capacity(self._server, settings.max_requests)
        self._http = None
        self.rest_port = self.grpc_port = self.rest = self.grpc = None
        self.started = threading.Event()

    async def run(self):
        """Serves until `stop`, or a signal in the main thread."""
        settings = self._settings
        asyncio.get_running_loop().set_default_executor(_Threads())
        with contextlib.closing(_listen(settings.host, settings.rest_port)) as listening:
            grpc = grpc_server(
                self._server, max_body=settings.max_body, capacity=self._grpc_capacity
            )
            self.rest_port = listening.getsockname()[1]
            self.grpc_port = _add_port(grpc, settings.host, settings.grpc_port)
            self.rest = f"http://{_with_port(settings.host, self.rest_port)}"
            self.grpc = f"grpc://{_with_port(settings.host, self.grpc_port)}"
            self._http = _HttpServer(self._http_config(), grpc=grpc, server=self._server)
            self._server.open()
            await grpc.start()
            polling = asyncio.create_task(self._poll_versions())
            self._report("This server is for development. For production, use TensorFlow Serving.")
            self._report(f"REST   {self.rest}/v1/models/{self._models[0].name}")
            self._report(f"gRPC   {self.grpc}")
            self._report(f"Page   {self.rest}/")
            self.started.set()
            try:
                await self._http.serve(sockets=[listening])
            finally:
                polling.cancel()
                await asyncio.gather(polling, grpc.stop(0), return_exceptions=True)
                await self._server.close()

    def stop(self):
        """Stops the server; may be called from any thread."""
        self._http.should_exit = True

    def last_words(self):
        """Whether the requests that were running when the server was stopped were answered."""
        unanswered = self._server.unanswered
        if unanswered == 0:
            return "Stopped. All running requests were answered."
        return (
            f"Stopped. {counted(unanswered, 'request')} could not be answered in {_LAST_ANSWERS} s."
        )

    def _http_config(self):
        settings = self._settings
        application = Bounds(
            http_application(self._server, attention=settings.attention),
            hosts=Hosts(settings.host, settings.allowed_hosts or ()),
            capacity=Capacity(self._server, settings.max_requests),
            max_body=settings.max_body,
        )
        return uvicorn.Config(
            application,
            # Most connections may be idle, but their number is bounded too.
            http=functools.partial(
                PromptProtocol, timeout=settings.timeout, most=4 * settings.max_requests
            ),
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            headers=_HEADERS,
            timeout_graceful_shutdown=_LAST_ANSWERS + _LAST_REJECTIONS,
        )

    async def _poll_versions(self):
        while True:
            await asyncio.sleep(self._settings.poll)
            for model in self._models:
                line = await asyncio.to_thread(model.refresh)
                if line is not None:
                    # The output may be closed, or in an encoding without these characters.
                    with contextlib.suppress(OSError, ValueError):
                        self._report(line)


class _HttpServer(uvicorn.Server):
    """Uvicorn's server, which stops the gRPC server too.

    Requests without an answer in time are rejected with a status. Uvicorn alone would cancel them
    and respond with status 500.
    """

    def __init__(self, config, *, grpc, server):
        super().__init__(config)
        self._grpc = grpc
        self._server = server
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig, frame):
        if self.should_exit:  # a second signal
            self.force_exit = True
            self._loop.call_soon_threadsafe(self._server.give_up)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets=None):
        giving_up = self._loop.call_later(_LAST_ANSWERS, self._server.give_up)
        stopping = asyncio.create_task(self._grpc.stop(_LAST_ANSWERS + _LAST_REJECTIONS))
        await super().shutdown(sockets)
        await stopping
        giving_up.cancel()


class _Threads(ThreadPoolExecutor):
    """Threads that an event loop does not wait for: a computation cannot be cancelled."""

    def shutdown(self, wait=True, *, cancel_futures=False):
        super().shutdown(wait=False, cancel_futures=True)


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


def _add_port(grpc, host, port):
    address = _with_port(host, port)
    try:
        return grpc.add_insecure_port(address)
    except RuntimeError:
        raise InputError(
            f"gRPC cannot listen on {address}: it is in use or not an address of this machine. "
            "Choose another `grpc_port`."
        ) from None


def _with_port(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
