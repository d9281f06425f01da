"""The program that local workers are: it loads what the steps need, and is forked for each worker.

    python -m data_gen.worker           # for each message on its standard input, a worker
    python -m data_gen.worker --alone   # one worker, as Beam itself starts it

`data_gen.worker_pool` starts it and says what the messages are. TensorFlow takes longest to load of
all that a small job does, and is loaded once here, however many workers there are. Nothing of it
runs before the fork: the only threads until then are those of numpy's and Arrow's allocators and
pools, which are made to be forked.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
import warnings

MESSAGE_BYTES = 1 << 20  # the most that an environment may take
_PR_SET_PDEATHSIG = 1
_SECONDS = 0.5


def main():
    if "--alone" in sys.argv:
        _end_with_parent()
        load()
        work()
    else:
        _end_with_parent()
        _serve(socket.socket(fileno=os.dup(sys.stdin.fileno())))


def load():
    """Imports what steps import when they begin."""
    import apache_beam.runners.worker.sdk_worker_main  # noqa: F401

    import data_gen.example_builder
    import data_gen.shards
    import data_gen.vocabulary  # noqa: F401


def work():
    """Is a worker of Beam's, whose runner the environment names, until the runner is done."""
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main([])


def _serve(requests):
    """Forks a worker for each message, until the other side of the socket is closed."""
    load()
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside those threads
    while True:
        message, [*connections], _, _ = socket.recv_fds(requests, MESSAGE_BYTES, 1)
        if not message:
            break
        parent = os.getpid()
        if os.fork() == 0:
            requests.close()
            _be_worker(json.loads(message), parent)
        # From here on the worker alone holds its connection: when it ends, the other side knows.
        for connection in connections:
            os.close(connection)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _be_worker(environment, parent):
    status = 1
    try:
        _end_with_parent(parent)
        os.environ.update(environment)
        work()
        status = 0
    except BaseException:  # the end of the process, whatever it is
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # What TensorFlow and grpc would take down piece by piece, the system takes at once.
        os._exit(status)


def _end_with_parent(parent=None):
    """From here on this process is killed when its parent ends, however that ends."""
    parent = parent or os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent):
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
