"""The development server beside other work of a process, such as a notebook's."""

import asyncio
import threading
from typing import Any, Self

from keras_bert.serving.settings import ServeSettings, needs_extra


class BackgroundServer:
    """A development server (see `serve`) in a thread of this process, until `stop`.

        with kb.BackgroundServer(models="savedmodels") as server:
            next(kb.ask(url=server.rest, model="spam", text=["Win cash prizes"]))

    Args:
        models: an exported model, or a folder of several; or a list of such.
        **settings: those of `serve`; `rest_port=0` and `grpc_port=0` take any free ports.

    Attributes: `rest` (also the address of the page) and `grpc`, its addresses as `ask` takes them;
    `told`, the lines that it has told so far.

    Raises:
        InputError: as `serve`.
    """

    def __init__(self, *, models: Any, **settings: Any):
        with needs_extra("The server"):
            from keras_bert.serving.development_server import DevelopmentServer

        self.told = []
        settings = ServeSettings.of({"models": models, **settings})
        self._server = DevelopmentServer(
            **settings.part(ServeSettings), report=lambda line: self.told.append(line)
        )
        self._failed = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._server.started.wait()
        if self._failed is not None:
            raise self._failed
        self.rest, self.grpc = self._server.rest, self._server.grpc

    def stop(self) -> None:
        """Ends the server when it has answered what was asked; a second call does nothing."""
        self._server.stop()
        self._thread.join()

    def _serve(self):
        try:
            asyncio.run(self._server.run())
        except BaseException as error:
            self._failed = error
            self._server.started.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def __repr__(self):
        state = "answers" if self._thread.is_alive() else "stopped"
        return f"BackgroundServer({state}: {self.rest}, {self.grpc})"
