"""The development server: its models, its two doors, and the look-out for new versions."""

import asyncio
import contextlib
import functools
import socket
import threading

import uvicorn

from keras_bert.errors import InputError
from keras_bert.serving.bounds import Bounds, PromptProtocol
from keras_bert.serving.grpc_services import grpc_server
from keras_bert.serving.model_folders import model_folders
from keras_bert.serving.model_server import ModelServer
from keras_bert.serving.page import page_routes
from keras_bert.serving.rest import rest_application
from keras_bert.serving.served_model import ServedModel
from keras_bert.serving.settings import ServeSettings

_LAST_ANSWERS = 10  # seconds that requests under way have when the server ends


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
        self._http = None
        self.rest_port = self.grpc_port = self.rest = self.grpc = None
        self.started = threading.Event()

    async def run(self):
        """Serves until `stop`, or a signal in the main thread."""
        settings = self._settings
        with contextlib.closing(_listen(settings.host, settings.rest_port)) as listening:
            grpc = grpc_server(
                self._server, max_body=settings.max_body, max_requests=settings.max_requests
            )
            self.rest_port = listening.getsockname()[1]
            self.grpc_port = _add_port(grpc, settings.host, settings.grpc_port)
            self.rest = f"http://{_with_port(settings.host, self.rest_port)}"
            self.grpc = f"grpc://{_with_port(settings.host, self.grpc_port)}"
            self._http = uvicorn.Server(self._http_config())
            self._server.open()
            await grpc.start()
            looking = asyncio.create_task(self._look_for_versions())
            self._tell_where()
            self.started.set()
            try:
                await self._http.serve(sockets=[listening])
            finally:
                looking.cancel()
                await asyncio.gather(looking, grpc.stop(_LAST_ANSWERS), return_exceptions=True)
                await self._server.close()

    def stop(self):
        """Ends the server; may be called from any thread."""
        self._http.should_exit = True

    def _http_config(self):
        settings = self._settings
        application = Bounds(
            rest_application(self._server, page_routes(self._server, settings.attention)),
            max_body=settings.max_body,
            max_requests=settings.max_requests,
            timeout=settings.timeout,
        )
        return uvicorn.Config(
            application,
            http=functools.partial(PromptProtocol, timeout=settings.timeout),
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            # Connections, too, are bounded: most of them may be idle.
            limit_concurrency=4 * settings.max_requests,
            timeout_graceful_shutdown=_LAST_ANSWERS,
        )

    async def _look_for_versions(self):
        while True:
            await asyncio.sleep(self._settings.poll)
            for model in self._models:
                line = await asyncio.to_thread(model.refresh)
                if line is not None:
                    with contextlib.suppress(OSError):  # whoever read it may have gone
                        self._report(line)

    def _tell_where(self):
        self._report("This server is for development; production is TensorFlow Serving's.")
        self._report(f"REST   {self.rest}/v1/models/{self._models[0].name}")
        self._report(f"gRPC   {self.grpc}")
        self._report(f"Page   {self.rest}/")


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
