"""The development server: its models, its REST endpoint, and new versions and models."""

import asyncio
import contextlib
import functools
import socket
from errno import EADDRINUSE

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.serving.errors import needs_extra

with needs_extra("The server"):
    import uvicorn
    from starlette.concurrency import iterate_in_threadpool

    from keras_bert.search.reranking import Reranker
    from keras_bert.serving.bounds import ANY_ADDRESS, TimedProtocol, host_names
    from keras_bert.serving.indexes import ServedIndex, index_folders
    from keras_bert.serving.model_version import ServedModel, model_folders
    from keras_bert.serving.rest import http_application

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
    """The server: it listens from the start, and answers in the event loop of `run`; see `serve`.

    Attributes:
        rest_port: the port.
        rest: the address, as `ask` takes it.
    """

    def __init__(self, settings, *, report):
        self._report = report
        self._settings = settings
        folders, host = model_folders(settings.models), settings.host
        indexes = index_folders(settings.index, settings.models)
        self._host_names = host_names(host, settings.allowed_hosts or ())
        # A port that is in use is found before the models are loaded, which takes seconds.
        self._listening = _listen(host, settings.rest_port)
        with contextlib.ExitStack() as stack:
            stack.callback(self._listening.close)
            self._load(folders)
            reranker = None if settings.rerank is None else Reranker(settings.rerank)
            if reranker is not None and not indexes:
                raise InputError.naming("{rerank} is for an index. Leave it out.")
            self._indexes = {
                name: ServedIndex(name, path, reranker) for name, path in indexes.items()
            }
            for index in self._indexes.values():
                self._report(index.line)
            stack.pop_all()
        self._application = http_application(
            self._models, self._indexes, settings, self._host_names
        )
        config = uvicorn.Config(
            self._application,
            http=functools.partial(TimedProtocol, timeout=settings.timeout),
            limit_concurrency=settings.max_requests + 1,  # uvicorn rejects at its limit
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            headers=_HEADERS,
            timeout_graceful_shutdown=_LAST_ANSWERS,
        )
        self._uvicorn = uvicorn.Server(config)
        self.rest_port = self._listening.getsockname()[1]
        self.rest = f"http://{f'[{host}]' if ':' in host else host}:{self.rest_port}"

    def _load(self, folders):
        """Loads the models in folders by name, and reports what was loaded."""
        self._models = {name: ServedModel(name, folder) for name, folder in folders.items()}
        for model in self._models.values():
            lines = list(iter(model.refresh, None))
            if "AVAILABLE" not in {state["state"] for state in model.states.values()}:
                raise InputError(" ".join(lines))
            for line in lines:
                self._report(line)

    def report_addresses(self):
        self._report("This server is for development. For production, use TensorFlow Serving.")
        for name in [*self._models][:1]:
            self._report(f"REST   {self.rest}/v1/models/{name}")
        for name in self._indexes:
            self._report(f"REST   {self.rest}/v1/indexes/{name}:search")
        self._report(f"Page   {self.rest}/")
        if self._settings.host in ANY_ADDRESS:
            names = ", ".join(self._host_names)
            self._report(f"Hosts  {names}. Name others with --allowed-hosts.")

    async def run(self):
        """Serves until `stop`, or a signal in the main thread."""
        beside = [asyncio.create_task(task) for task in (self._poll_versions(), self._force_exit())]
        try:
            await self._uvicorn.serve(sockets=[self._listening])
        finally:
            for task in beside:
                task.cancel()
            self._listening.close()
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

    async def _force_exit(self):
        """Rejects what is running at a second interrupt.

        uvicorn would wait for it all the same from Python 3.12 on, where `wait_closed` does.
        """
        while not self._uvicorn.force_exit:
            await asyncio.sleep(0.1)
        for task in self._uvicorn.server_state.tasks:
            task.cancel()

    async def _poll_versions(self):
        while True:
            await asyncio.sleep(self._settings.poll)
            async for line in iterate_in_threadpool(self._refreshed()):
                # The output may be closed, or in an encoding without these characters.
                with contextlib.suppress(OSError, ValueError):
                    self._report(line)

    def _refreshed(self):
        """Loads new versions and models; yields the lines for the log."""
        with contextlib.suppress(InputError):  # such as of two with one name: the others are served
            for name, folder in model_folders(self._settings.models).items():
                if name not in self._models:
                    self._models[name] = ServedModel(name, folder)
        yield from filter(None, map(ServedModel.refresh, self._models.values()))
        yield from filter(None, map(ServedIndex.refresh, self._indexes.values()))


def _listen(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        message = f"Cannot listen on {host}, port {port}: {reason}."
        if getattr(error, "errno", None) == EADDRINUSE:
            raise InputError.naming("{} Choose another {rest_port}.", message) from None
        raise InputError(message) from None
    # For its connections too. A response is written in two parts, and the second would wait up to
    # 40 ms for the client's acknowledgement. asyncio sets this only for sockets with a protocol.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
