"""`keras-bert serve`: exported models behind TensorFlow Serving's interfaces, for development."""

import asyncio
from collections.abc import Callable

from keras_bert.base.settings import takes
from keras_bert.base.signals import says
from keras_bert.serving.extra import needs_extra
from keras_bert.serving.settings import ServeSettings


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
