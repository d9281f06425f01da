"""A development server in a thread of the test's process."""

import asyncio
import contextlib
import threading

from keras_bert.serving.development_server import DevelopmentServer


@contextlib.contextmanager
def running(**settings):
    """Serves on free ports; gives the server, with its addresses as `rest` and `grpc`."""
    lines = []
    server = DevelopmentServer(
        **{"rest_port": 0, "grpc_port": 0, "poll": 0.1, **settings}, report=lines.append
    )
    failed = []

    def serve():
        try:
            asyncio.run(server.run())
        except BaseException as error:
            failed.append(error)
            server.started.set()

    thread = threading.Thread(target=serve)
    thread.start()
    assert server.started.wait(30) and not failed, failed
    server.lines, server.thread = lines, thread
    try:
        yield server
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive() and not failed, failed
