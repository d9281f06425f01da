"""Local worker processes for Beam's `FnApiRunner`, forked from one that has loaded everything.

    with WorkerPool(log) as pool:
        beam.Pipeline(runner=FnApiRunner(pool.environment), …)

Beam's own way starts a program for each worker when the first stage needs it, and each then loads
TensorFlow for itself. The program of a pool (`data_gen.worker`) begins to load at once, while the
pipeline is built. For each worker it is sent a message, the variables of its environment, with one
end of a new socket. Neither side ever writes into that: it is the thread of life between them. The
worker's end is closed when it dies, and then the job fails instead of waiting for it forever.
"""

import contextlib
import json
import logging
import shlex
import socket
import subprocess
import sys
import threading

import grpc
from apache_beam.portability.api import endpoints_pb2
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    GrpcWorkerHandler,
    WorkerHandler,
)
from apache_beam.transforms.environments import Environment, SubprocessSDKEnvironment
from google.protobuf import json_format, text_format

_PROGRAM = [sys.executable, "-m", "data_gen.worker"]
_URN = "keras_bert:environment:worker_pool:v1"
_SECONDS = 0.2
_PATIENCE = 2.0


class WorkerPool:
    """Makes the workers of one job. `environment` is what tells a runner to take them.

    What they print goes to the open file `log` (where a fork is not safe, nowhere), or to this
    process' own output where that is None. When the pool is left by an exception, or this process
    ends, workers that are not done are killed. `has_lost_a_worker` tells that one was ended by
    something else.
    """

    _open = {}  # the pools of this process by their ids, under which runners know them

    def __init__(self, log=None):
        self._program = None
        self.has_lost_a_worker = False
        if sys.platform != "linux":  # where a fork is not safe
            command = f"exec {shlex.join([*_PROGRAM, '--alone'])}"
            if log:
                command += " >/dev/null 2>&1"
            self.environment = SubprocessSDKEnvironment.from_command_string(command_string=command)
            return
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._program = subprocess.Popen(
            _PROGRAM,
            stdin=theirs,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for this process to deal with
        )
        theirs.close()
        self.environment = _PoolEnvironment(id(self))

    def __enter__(self):
        self._open[id(self)] = self
        self._report_before = threading.excepthook
        threading.excepthook = self._report
        return self

    def __exit__(self, failure, *_):
        threading.excepthook = self._report_before
        del self._open[id(self)]
        if self._program is None:
            return
        self._requests.close()
        if failure is None:  # the workers are done, and it waits for them
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._program.wait(_PATIENCE)
        self._program.kill()
        self._program.wait()

    @classmethod
    def of(cls, payload):
        """The open pool that an environment names."""
        return cls._open[int(payload)]

    def start(self, environment):
        """Starts a worker with these variables in its environment; returns its thread of life."""
        connection, theirs = socket.socketpair()
        with theirs:
            message = json.dumps(environment).encode()
            socket.send_fds(self._requests, [message], [theirs.fileno()])
        return connection

    def lose(self):
        """A worker is dead before its time: nobody needs the others' work either."""
        self.has_lost_a_worker = True
        self._program.kill()

    def _report(self, failed):
        """Keeps quiet the threads of Beam's that read from a worker which was killed."""
        if not issubclass(failed.exc_type, grpc.RpcError):
            self._report_before(failed)


class _PoolEnvironment(Environment):
    """The environment of the workers of a pool of this process."""

    def __init__(self, pool):
        super().__init__()
        self._pool = pool

    def to_runner_api_parameter(self, context):
        return _URN, str(self._pool).encode()


@WorkerHandler.register_environment(_URN, bytes)
class _PooledWorker(GrpcWorkerHandler):
    """A worker of a pool, as the runner starts and stops it."""

    def __init__(self, payload, state, provision_info, grpc_server):
        super().__init__(state, provision_info, grpc_server)
        self._pool = WorkerPool.of(payload)
        self._is_done = threading.Event()

    def start_worker(self):
        environment = {
            "WORKER_ID": self.worker_id,
            "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(
                endpoints_pb2.ApiServiceDescriptor(url=self.control_address)
            ),
            "PIPELINE_OPTIONS": json_format.MessageToJson(
                self.provision_info.provision_info.pipeline_options
            ),
        }
        if logging.getLogger("apache_beam").isEnabledFor(logging.ERROR):
            environment["LOGGING_API_SERVICE_DESCRIPTOR"] = text_format.MessageToString(
                self.logging_api_service_descriptor()
            )
        self._connection = self._pool.start(environment)
        threading.Thread(target=self._watch, daemon=True).start()

    def stop_worker(self):
        self._is_done.set()
        self._connection.close()

    def _watch(self):
        self._connection.recv(1)  # returns when the other end is closed
        while not self._is_done.wait(_SECONDS):
            self._pool.lose()
            self.control_conn.abort(RuntimeError("a worker process ended before its work"))
