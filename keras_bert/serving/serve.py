"""`keras-bert serve`, and the same server beside other work of a process."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any, Self

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.base.signals import says
from keras_bert.serving.model_version import check_files, model_folders, version_folders
from keras_bert.serving.settings import ServeSettings, needs_extra


def lay_kernels_out_once(folders):
    """Has it done once and not for each request, where all models are in bfloat16.

    A processor multiplies bfloat16s in pairs, and kernels have to lie in memory so. TensorFlow does
    not know that a variable stays what it is, and lays it out for each product anew, which with few
    rows takes as long as the product. It can be told so of all variables of the process; hence only
    where the process serves and nothing else, and before its first product. What the user's
    environment says of it stays so.

    In float32 the layout depends on the number of rows: that of the first request would stay, and
    slow down requests of other lengths.

    `folders` are those that `serve` is given. What is wrong with them is for the server to say.
    """
    with contextlib.suppress(InputError):
        newest = [version_folders(folder)[-1] for folder in model_folders(folders).values()]
        if all(map(_is_in_bfloat16, newest)):
            os.environ.setdefault("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "true")


def _is_in_bfloat16(version):
    import tensorflow as tf

    try:
        check_files(version)
        stored = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    except (OSError, tf.errors.OpError, ValueError):
        return False
    return tf.bfloat16 in stored.get_variable_to_dtype_map().values()


@takes(ServeSettings)
def serve(*, report: Callable[[str], None] = print, **settings) -> None:
    """Serves exported models over REST and gRPC, with a page to try them, until it is interrupted.

    It is for development: one process, no encryption, nobody is asked who they are. TensorFlow
    Serving takes the same folders, and answers the same requests.

    Args:
        {settings}
        report: a function that is told in a line what the server does.

    Raises:
        InputError: a folder has no model that loads, two have the same name, or a port is taken.
    """
    with needs_extra("The server"):
        from keras_bert.serving.development_server import DevelopmentServer

    with says(lambda: "Stopped while the models were loaded."):
        server = DevelopmentServer(**settings, report=report)
    with says(server.last_words):
        asyncio.run(server.run())


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
