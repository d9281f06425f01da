"""A development server in a thread of the test's process."""

import asyncio
import contextlib
import threading

from keras_bert.serving import ServeSettings
from keras_bert.serving.development_server import DevelopmentServer


@contextlib.contextmanager
def running(**settings):
    """Serves on a free port; gives the server, with its address as `rest`."""
    settings = ServeSettings.of({"rest_port": 0, "poll": 0.1, **settings})
    lines, errors = [], []
    server = DevelopmentServer(settings, report=lines.append)
    server.report_addresses()

    def serve():
        try:
            asyncio.run(server.run())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    server.lines, server.thread = lines, thread
    try:
        yield server
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive() and not errors, errors
