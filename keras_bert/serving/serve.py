"""`keras-bert serve`, and the same server in a thread of another program."""

import asyncio
import threading
from typing import Any, NoReturn, Self

from keras_bert.base.settings import takes
from keras_bert.base.signals import interruption_message
from keras_bert.serving import ServeSettings


@takes(ServeSettings)
def serve(*, report=print, **settings) -> None:
    """Serves exported models and indexes over REST, with a page, until it is interrupted.

    It is for development: one process, without encryption or authentication. TensorFlow Serving
    takes the same folders and answers the same requests.

    Args:
        **settings: the fields of `ServeSettings`.
        report: a function that is called with each line of the server's log.

    Raises:
        InputError: a folder has no model that loads, two have the same name, or a port is in use.
    """
    from keras_bert.serving.development_server import DevelopmentServer

    with interruption_message(lambda: "Interrupted while the models were loaded."):
        server = DevelopmentServer(ServeSettings.of(settings), report=report)

    async def run():  # it can be interrupted by all who have read the addresses
        server.report_addresses()
        await server.run()

    with interruption_message(server.last_words):
        asyncio.run(run())


class BackgroundServer:
    """A development server (see `serve`) in a thread of this process, until `stop`.

        with kb.BackgroundServer(models="savedmodels") as server:
            next(kb.ask(url=server.rest, model="spam", text=["Win cash prizes"]))

    Args:
        models: an exported model, or a folder of several; or a list of these; none with an `index`.
        **settings: those of `serve`; `rest_port=0` takes any free port.

    Attributes:
        rest: the address as `ask` takes it, and of the page.
        logs: the lines of the server's log so far.

    Raises:
        InputError: see `serve`.
    """

    def __init__(self, *, models: Any = (), **settings: Any):
        from keras_bert.serving.development_server import DevelopmentServer

        self.logs: list[str] = []
        settings = ServeSettings.of({"models": models, **settings})
        self._server = DevelopmentServer(settings, report=self.logs.append)
        self._server.report_addresses()
        self.rest = self._server.rest
        self._thread = threading.Thread(target=asyncio.run, args=[self._server.run()], daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the server after the running requests; a second call does nothing."""
        self._server.stop()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "running" if self._thread.is_alive() else "stopped"
        return f"BackgroundServer({state}: {self.rest})"

    def __getattr__(self, name: str) -> NoReturn:
        advice = ""
        if name == "grpc":
            advice = ". It was removed: use `rest`, or TensorFlow Serving, which also speaks gRPC."
        raise AttributeError(f"'BackgroundServer' object has no attribute {name!r}{advice}")
