"""The program of local workers: it loads what the steps need, and is forked for each worker.

    python -m data_gen.worker           # for each message on its standard input, a worker
    python -m data_gen.worker --alone   # one worker, as Beam itself starts it

`data_gen.runner.WorkerPool` starts it and describes the messages. TensorFlow takes longer to load
than anything else in a small job, and is loaded once here. Nothing of it runs before the fork: the
only threads until then are those of numpy's and Arrow's allocators and pools, which may be forked.
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

_MESSAGE_BYTES = 1 << 20
_PR_SET_PDEATHSIG = 1
_SECONDS = 0.5


def main():
    _end_with_parent()
    if "--alone" in sys.argv:
        load()
        work()
    else:
        _serve(socket.socket(fileno=os.dup(sys.stdin.fileno())))


def load():
    """Imports what steps import when they begin."""
    import apache_beam.runners.worker.sdk_worker_main  # noqa: F401

    import data_gen.example_builder
    import data_gen.shards
    import data_gen.vocabulary  # noqa: F401


def work():
    """Runs Beam's worker, whose runner the environment names, until the runner is done."""
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main([])


def _serve(requests):
    """Forks a worker for each message, until the other side of the socket is closed."""
    load()
    warnings.simplefilter("ignore", DeprecationWarning)  # of a fork in a process with threads
    while True:
        message, [*connections], _, _ = socket.recv_fds(requests, _MESSAGE_BYTES, 1)
        if not message:
            break
        parent = os.getpid()
        if os.fork() == 0:
            requests.close()
            _run_worker(json.loads(message), parent)
        # Only the worker keeps its connection, so that its end is noticed on the other side.
        for connection in connections:
            os.close(connection)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _run_worker(environment, parent):
    status = 1
    try:
        _end_with_parent(parent)
        os.environ.update(environment)
        work()
        status = 0
    except BaseException:  # the process ends, whatever it is
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # The system frees at once what TensorFlow and grpc would free step by step.
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
