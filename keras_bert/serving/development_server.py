"""The development server: its models, its two doors, and the look-out for new versions."""

import asyncio
import contextlib
import functools
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import uvicorn

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.serving.bounds import Bounds, Hosts, Places, PromptProtocol
from keras_bert.serving.grpc_services import grpc_server
from keras_bert.serving.model_server import ModelServer
from keras_bert.serving.model_version import ServedModel, model_folders
from keras_bert.serving.page import page_routes
from keras_bert.serving.rest import rest_application
from keras_bert.serving.settings import ServeSettings

# Seconds that requests under way have when the server ends, and that refusing the others takes;
# together less than the ten that `docker stop` waits.
_LAST_ANSWERS, _LAST_REFUSALS = 8, 1
# Pages of this machine may show ours in a frame, as a notebook does.
_FRAMES = "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"
_HEADERS = [
    ("Content-Security-Policy", f"default-src 'self'; img-src data:; {_FRAMES}"),
    ("X-Frame-Options", "SAMEORIGIN"),  # for browsers that know no frame-ancestors
]


class DevelopmentServer:
    """The server, in an event loop of the caller's; see `serve`.

    Attributes:
        rest_port, grpc_port: where it listens, once `started` is set.
        rest, grpc: its addresses then, as `ask` takes them.
        started: a `threading.Event`.
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
        self._grpc_places = Places(self._server, settings.max_requests)
        self._http = None
        self.rest_port = self.grpc_port = self.rest = self.grpc = None
        self.started = threading.Event()

    async def run(self):
        """Serves until `stop`, or a signal in the main thread."""
        settings = self._settings
        asyncio.get_running_loop().set_default_executor(_Threads())
        with contextlib.closing(_listen(settings.host, settings.rest_port)) as listening:
            grpc = grpc_server(
                self._server,
                max_body=settings.max_body,
                places=self._grpc_places,
            )
            self.rest_port = listening.getsockname()[1]
            self.grpc_port = _add_port(grpc, settings.host, settings.grpc_port)
            self.rest = f"http://{_with_port(settings.host, self.rest_port)}"
            self.grpc = f"grpc://{_with_port(settings.host, self.grpc_port)}"
            self._http = _HttpServer(self._http_config(), grpc=grpc, server=self._server)
            self._server.open()
            await grpc.start()
            looking = asyncio.create_task(self._look_for_versions())
            self._tell_where()
            self.started.set()
            try:
                await self._http.serve(sockets=[listening])
            finally:
                looking.cancel()
                await asyncio.gather(looking, grpc.stop(0), return_exceptions=True)
                await self._server.close()

    def stop(self):
        """Ends the server; may be called from any thread."""
        self._http.should_exit = True

    def last_words(self):
        """What became of the requests that were under way when the server was stopped."""
        unanswered = self._server.unanswered
        if unanswered == 0:
            return "Stopped. All requests under way were answered."
        return (
            f"Stopped. {counted(unanswered, 'request')} could not be answered in {_LAST_ANSWERS} s."
        )

    def _http_config(self):
        settings = self._settings
        application = Bounds(
            rest_application(self._server, page_routes(self._server, settings.attention)),
            hosts=Hosts(settings.host, settings.allowed_hosts or ()),
            places=Places(self._server, settings.max_requests),
            max_body=settings.max_body,
        )
        return uvicorn.Config(
            application,
            # Connections, too, are bounded: most of them may be idle.
            http=functools.partial(
                PromptProtocol, timeout=settings.timeout, most=4 * settings.max_requests
            ),
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            headers=_HEADERS,
            timeout_graceful_shutdown=_LAST_ANSWERS + _LAST_REFUSALS,
        )

    async def _look_for_versions(self):
        while True:
            await asyncio.sleep(self._settings.poll)
            for model in self._models:
                line = await asyncio.to_thread(model.refresh)
                if line is not None:
                    # Whoever read it may have gone, or cannot read its letters.
                    with contextlib.suppress(OSError, ValueError):
                        self._report(line)

    def _tell_where(self):
        self._report("This server is for development; production is TensorFlow Serving's.")
        self._report(f"REST   {self.rest}/v1/models/{self._models[0].name}")
        self._report(f"gRPC   {self.grpc}")
        self._report(f"Page   {self.rest}/")


class _HttpServer(uvicorn.Server):
    """Uvicorn's server, with which the gRPC server ends.

    Whoever has no answer in time is refused in the words of its interface. Uvicorn alone would
    cancel the requests, and answer with a status of 500.
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
        stopping = asyncio.create_task(self._grpc.stop(_LAST_ANSWERS + _LAST_REFUSALS))
        await super().shutdown(sockets)
        await stopping
        giving_up.cancel()


class _Threads(ThreadPoolExecutor):
    """The threads of an event loop that ends without them: nothing in them can be broken off."""

    def shutdown(self, wait=True, *, cancel_futures=False):
        super().shutdown(wait=False, cancel_futures=True)


def _load(model, report):
    """Loads the newest version that can be; `InputError` where there is none."""
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
        raise InputError(f"Nothing can listen on {host}, port {port}: {error}.") from None


def _add_port(grpc, host, port):
    address = _with_port(host, port)
    try:
        return grpc.add_insecure_port(address)
    except RuntimeError:
        raise InputError(
            f"gRPC cannot listen on {address}, which is taken or not this machine's; give another "
            "`grpc_port`."
        ) from None


def _with_port(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
