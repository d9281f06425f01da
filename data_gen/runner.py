"""Runs a Beam job: with which runner, options and worker processes, and how it fails.

Local workers are forked from one process that has loaded everything: Beam's own way starts a
program per worker when the first stage needs it, and each then loads TensorFlow for itself.
"""

import contextlib
import io
import json
import logging
import math
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.portability.api import endpoints_pb2
from apache_beam.runners import create_runner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    GrpcWorkerHandler,
    WorkerHandler,
)
from apache_beam.transforms.environments import Environment, SubprocessSDKEnvironment
from google.protobuf import json_format, text_format

from data_gen.files import is_local
from data_gen.remote_runners import (
    REFUSED,
    News,
    RemoteRunner,
    silent_beam,
    without_lost_connections,
)
from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.formatting import counted
from keras_bert.base.progress import ProgressBar

# What Beam adds to a worker's error: in this process, and in another one.
_WHERE = re.compile(r" \[while running '[^']*'\]")
_FROM_WORKER = re.compile(
    rf"^{re.escape(InputError.__module__)}\.InputError: (.+?)(?: \[while running|$)", re.M
)
_NOTE_LINES = 40
_LOST = (
    "A worker process was killed, perhaps by the system for lack of memory. Run the command again, "
    "with fewer workers (direct_num_workers) if it happens again."
)
_RUNNERS = (
    "FnApiRunner (the default), PrismRunner, FlinkRunner, SparkRunner, DataflowRunner, "
    "PortableRunner"
)
_PROGRAM = [sys.executable, "-m", "data_gen.worker"]
_URN = "keras_bert:environment:worker_pool:v1"
_POLL_SECONDS = 0.2
_EXIT_SECONDS = 2.0


class Progress:
    """Progress of a running job: a bar on a terminal, and lines about a job elsewhere.

        with Progress("Listing the input") as progress:
            progress.follow(folder, files=…)
            run(build, options, progress=progress)

    Workers are other processes, or on other machines: finished shards are counted in the folder.

    Args:
        description: what is done first; None draws no bar.

    Attributes:
        folder: the `OutputFolder` whose shards are counted; None before `follow`.
    """

    def __init__(self, description):
        self.folder = None
        self._bar = ProgressBar(
            description or "", unit="shards", transient=True, poll=self._poll,
            enabled=description is not None,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._bar.close()

    def follow(self, folder, *, files):
        """Counts the shards of a folder from here on, for so many files of input."""
        self.folder = folder
        self._bar.update(description=f"Reading {counted(files, 'file')}")

    def write(self, line):
        """Writes a line that stays."""
        self._bar.write(line)

    def shards(self):
        """The numbers of finished shards and of all (None: not known); None without a folder."""
        if self.folder is None:
            return None
        with contextlib.suppress(OSError, InputError):  # the folder may be deleted meanwhile
            return self.folder.shards()
        return None

    def show(self, shards):
        """Shows on the bar what `shards` returned."""
        if shards is not None:
            finished, total = shards
            description = "Writing shards" if total else None
            self._bar.update(finished, total=total, description=description)

    def _poll(self, bar):
        # Listing a folder of another file system takes long: remote_runners.News does it.
        if self.folder is not None and is_local(self.folder.path):
            self.show(self.shards())


# What the errors of a step name; of an error in another process only the text is known.
_NAMED_BY_STEPS = ("text_field", 'bad_lines="skip"')


def _error_of_step(message):
    """The `InputError` of a step, which names its arguments again."""
    template = message.replace("{", "{{").replace("}", "}}")
    for named in _NAMED_BY_STEPS:
        template = template.replace(f"`{named}`", f"{{{named}}}")
    return InputError.naming(template)


def run(build, beam_options=(), *, meanwhile=None, progress=None):
    """Builds and runs a pipeline, and waits for its end.

    Args:
        build: function that adds the job's steps to a `beam.Pipeline`.
        beam_options: Beam's own flags as a list of strings; a later one overrides an earlier one.
            Without `--runner` the job runs here, on `FnApiRunner`, since Beam's `DirectRunner`
            downloads another runner if it can. Several workers (`--direct_num_workers`) are
            processes unless `--direct_running_mode` is set.
        meanwhile: function that is called while such processes load TensorFlow; not called with
            other workers.
        progress: a `Progress` for what a job elsewhere does.

    Returns the job's counters, name -> number.

    Raises `InputError` for an option that Beam does not have, a job server that does not answer, a
    job that fails elsewhere, and the `InputError` of a step, in whatever process it ran. If
    Beam's log is quiet (a level above WARNING), the output of workers is hidden, and its end is
    added to other exceptions.
    """
    parsed = options(beam_options)
    place = RemoteRunner.of(parsed)
    if place:
        place.check()
    with (
        _quiet() as log,
        _workers(parsed, log) as pool,
        _not_interactive(),
    ):
        runner = FnApiRunner(pool.environment) if pool else None
        if pool and meanwhile:
            meanwhile()
        pipeline = beam.Pipeline(runner=runner, options=parsed)
        # It is for steps in other languages, which this job has none of.
        os.rmdir(pipeline.local_tempdir)
        build(pipeline)
        try:
            result = pipeline.run()
            shown = place and progress and News(result, place=place, progress=progress)
            with shown or contextlib.nullcontext(), _cancelled_if_interrupted(result, place):
                result.wait_until_finish()
        except InputError as error:
            raise _error_of_step(_WHERE.sub("", str(error))) from None
        except Exception as error:
            raised = _FROM_WORKER.search(str(error))
            if raised:
                raise _error_of_step(raised.group(1)) from None
            if place:
                raise place.failure(error) from error
            if not isinstance(error, RuntimeError):
                raise
            if pool and pool.has_lost_a_worker:
                raise InputError(_LOST) from None
            if log:
                log.seek(0)
                lines = log.read().decode("utf-8", "replace").splitlines()
                error.add_note("\n".join(lines[-_NOTE_LINES:]))
            raise
        counters = result.metrics().query()["counters"]
    return {counter.key.metric.name: counter.result for counter in counters}


@contextlib.contextmanager
def _cancelled_if_interrupted(result, place):
    """Cancels a job elsewhere, which would continue, when this process is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if place:
            with contextlib.suppress(Exception):  # of any runner's client: it may be gone
                result.cancel()
        raise


def workers(work, *, bytes_per_worker):
    """Beam's flag for one worker per so many bytes of work, at most one per processor."""
    number = min(math.ceil(work / bytes_per_worker), os.cpu_count() or 1)
    return f"--direct_num_workers={max(1, number)}"


def options(beam_options):
    """Beam's flags as `PipelineOptions`; `InputError` for an unknown one."""
    flags = ["--runner=FnApiRunner", *beam_options]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            parsed = PipelineOptions(flags)
            every = parsed.get_all_options(retain_unknown_options=True)
            known_options = parsed.get_all_options()
    except SystemExit:  # argparse has printed all options of Beam, and then the error
        message = printed.getvalue().rstrip().rpartition("error: ")[2]
        raise InputError(f"Apache Beam rejects an option: {message}.") from None
    _check_runner(parsed.view_as(StandardOptions).runner)
    unknown = every.keys() - known_options.keys()
    if unknown:
        # Beam reads "-4" after an unknown option as another option.
        names = [flag.split("=")[0] for flag in beam_options if flag.startswith("--")]
        first = next((name for name in names if name[2:] in unknown), f"--{min(unknown)}")
        raise InputError(
            f"Unknown option {first}: neither this command nor Apache Beam has it. See --help for "
            "this command's options."
        )
    workers = parsed.view_as(DirectOptions).direct_num_workers
    if workers < 0:
        raise InputError(
            f"--direct_num_workers is {workers}. It must be 1 or more, or 0 for one per processor."
        )
    return parsed


def _check_runner(name):
    """Raises `InputError` for a runner that Beam does not have or cannot load, or that fails."""
    short = name.rpartition(".")[2]
    if short in REFUSED:
        raise InputError(f"Invalid --runner {name!r}: {REFUSED[short]}. Expected {_RUNNERS}.")
    try:
        create_runner(name)
    except ImportError as error:
        raise InputError(
            f"Invalid --runner {name!r}. Apache Beam cannot load it: {reason_of(error)}."
        ) from error
    except (ValueError, AttributeError) as error:
        raise InputError(
            f"Invalid --runner {name!r}. Expected {_RUNNERS}, or the full name of a class."
        ) from error


@contextlib.contextmanager
def _workers(parsed, log):
    """A `WorkerPool`, or None if other workers are asked for."""
    direct = parsed.view_as(DirectOptions)
    has_mode = "direct_running_mode" in parsed.get_all_options(drop_default=True)
    if (
        parsed.view_as(StandardOptions).runner != "FnApiRunner"
        or (has_mode and direct.direct_running_mode != "multi_processing")
        or direct.direct_num_workers == 1
    ):
        yield None
        return
    direct.direct_running_mode = "in_memory"  # or the runner would start processes of its own
    with WorkerPool(log) as pool:
        yield pool


@contextlib.contextmanager
def _not_interactive():
    """Has Beam name steps in a notebook as it does elsewhere, without the number of the cell.

    For that number it would import its interactive runner, which needs pandas, for every step.
    """
    alter_label = beam.pipeline.alter_label_if_ipython
    beam.pipeline.alter_label_if_ipython = lambda transform, pvalueish: None
    try:
        yield
    finally:
        beam.pipeline.alter_label_if_ipython = alter_label


@contextlib.contextmanager
def _quiet():
    """Silences Beam's log if it is to be quiet, and yields a file for the output of workers."""
    logger = logging.getLogger("apache_beam")
    level = logger.level
    if logger.getEffectiveLevel() <= logging.WARNING:
        yield None
        return
    with tempfile.TemporaryFile() as log:  # without a name: an interruption leaves nothing
        logger.setLevel(logging.CRITICAL)  # it also logs every error that is raised here
        try:
            with silent_beam():
                yield log
        finally:
            logger.setLevel(level)


class WorkerPool:
    """Makes the workers of one job; give `environment` to the runner.

        with WorkerPool(log) as pool:
            beam.Pipeline(runner=FnApiRunner(pool.environment), …)

    Its program (`data_gen.worker`) begins to load at once, while the pipeline is built. For each
    worker it receives a message, the worker's environment variables, with one end of a new socket,
    the liveness socket. Nothing is ever written into it: the worker's end is closed when the worker
    ends, and then the job fails instead of waiting for it forever.

    The output of workers goes to the open file `log` (nowhere if a fork is not safe), or to
    this process's own output if that is None. When the pool is left by an exception, or this
    process ends, workers that are not done are killed. `has_lost_a_worker` is whether one was ended
    by something else.
    """

    _open = {}  # the pools of this process by their ids, which their environments have

    def __init__(self, log=None):
        self._program = None
        self.has_lost_a_worker = False
        if sys.platform != "linux":  # a fork is not safe there
            command = f"exec {shlex.join([*_PROGRAM, '--alone'])}"
            if log:
                command += " >/dev/null 2>&1"
            self.environment = SubprocessSDKEnvironment.from_command_string(command_string=command)
            return
        self._requests, program_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._program = subprocess.Popen(
            _PROGRAM,
            stdin=program_end,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is handled by this process
        )
        program_end.close()
        self.environment = _PoolEnvironment(id(self))

    def __enter__(self):
        self._open[id(self)] = self
        self._excepthook = threading.excepthook
        threading.excepthook = without_lost_connections(self._excepthook)
        return self

    def __exit__(self, failure, *_):
        threading.excepthook = self._excepthook
        del self._open[id(self)]
        if self._program is None:
            return
        self._requests.close()
        if failure is None:  # the workers are done, and it waits for them
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._program.wait(_EXIT_SECONDS)
        self._program.kill()
        self._program.wait()

    def start(self, environment):
        """Starts a worker with these environment variables; returns its liveness socket."""
        connection, worker_end = socket.socketpair()
        with worker_end:
            message = json.dumps(environment).encode()
            socket.send_fds(self._requests, [message], [worker_end.fileno()])
        return connection

    def fail(self):
        """Ends the others after a worker has died: their work is useless."""
        self.has_lost_a_worker = True
        self._program.kill()


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
        self._pool = WorkerPool._open[int(payload)]
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
        while not self._is_done.wait(_POLL_SECONDS):
            self._pool.fail()
            self.control_conn.abort(RuntimeError("A worker process ended before its work."))
