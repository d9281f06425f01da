"""A development server in a thread of the test's process."""

import asyncio
import contextlib
import threading

from keras_bert.serving.development_server import DevelopmentServer


@contextlib.contextmanager
def running(**settings):
    """Serves on a free port; gives the server, with its address as `rest`."""
    lines = []
    server = DevelopmentServer(**{"rest_port": 0, "poll": 0.1, **settings}, report=lines.append)
    errors = []

    def serve():
        try:
            asyncio.run(server.run())
        except BaseException as error:
            errors.append(error)
            server.started.set()

    thread = threading.Thread(target=serve)
    thread.start()
    assert server.started.wait(30) and not errors, errors
    server.lines, server.thread = lines, thread
    try:
        yield server
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive() and not errors, errors
