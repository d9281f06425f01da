"""A job on a runner elsewhere: whether it can be reached, how far it is, and why it failed."""

import atexit
import contextlib
import dataclasses
import logging
import re
import threading
import time
from typing import Self

import grpc
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.runners.runner import PipelineResult
from apache_beam.runners.worker import sdk_worker

from data_gen.files import is_local
from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.formatting import counted

ANSWER_SECONDS = 10.0  # for a job server to answer
QUIET_SECONDS = 60.0  # without news, until it is said what the job may be waiting for
_LINE_SECONDS = 30.0
_POLL_SECONDS = 1.0
_LISTING_SECONDS = 10.0  # a folder of another file system is listed less often

# Java's exceptions around the one that says why, and Python's around a worker's.
_WRAPPERS = re.compile(
    r"^(?:Pipeline \S+ failed in state [A-Z]+: )?(?:[\w.$]+(?:Exception|Error): )*"
)
_UNREACHABLE = re.compile(r"Connection refused|UNAVAILABLE|UnknownHost")
_NO_DOWNLOAD = re.compile(r"^(Unable to fetch .*?) at http")
_DOWNLOADS = {  # what Beam downloads if the option does not name it
    "FlinkRunner": "--flink_job_server_jar=FILE",
    "SparkRunner": "--spark_job_server_jar=FILE",
    "PrismRunner": "--prism_location=FILE",
}
_LOGGERS = ("apache_beam", "PrismJobServer")
_IS_HERE = re.compile(r"FnApi|Direct")

# Beam has these names too, and they were tried.
REFUSED = {
    "DaskRunner": "it has no counters, and computes the last step alone",
    "InteractiveRunner": "it keeps what the cells of a notebook compute, and runs no whole job",
    "KafkaStreamsRunner": "no release of Beam has its job server",
    "PythonRPCDirectRunner": "Beam has its name alone",
    "RayRunner": "Beam has no such module",
    "RenderRunner": "it draws the steps and runs none",
}


@dataclasses.dataclass(frozen=True)
class RemoteRunner:
    """A runner that computes a job elsewhere; in a sentence "PortableRunner at HOST:8099".

    Attributes:
        runner: its name.
        endpoints: `--job_endpoint` and `--artifact_endpoint`, as far as they are given.
        pool: where the workers' pools listen (`--environment_config`); None for other workers.
        project, region: of a job on Google Cloud; None elsewhere.
    """

    runner: str
    endpoints: dict[str, str]
    pool: str | None
    project: str | None
    region: str | None

    @classmethod
    def of(cls, options: PipelineOptions) -> Self | None:
        """The place that options name; None for runners that compute in this process.

        It is read before Beam runs the job, since Beam changes the options.
        """
        runner = options.view_as(StandardOptions).runner
        if _IS_HERE.search(runner):
            return None
        portable = options.view_as(PortableOptions)
        cloud = options.view_as(GoogleCloudOptions)
        names = ("job_endpoint", "artifact_endpoint")
        has_pool = portable.environment_type == "EXTERNAL"
        return cls(
            runner=runner,
            endpoints={name: getattr(portable, name) for name in names if getattr(portable, name)},
            pool=portable.environment_config if has_pool else None,
            project=cloud.project,
            region=cloud.region,
        )

    def __str__(self):
        address = self.endpoints.get("job_endpoint")
        return f"{self.runner} at {address}" if address else self.runner

    def check(self):
        """Raises `InputError` if an endpoint is missing, or does not answer.

        Beam itself would wait for more than a minute, and then raise what gRPC says.
        """
        if self.runner == "PortableRunner" and "job_endpoint" not in self.endpoints:
            raise InputError(
                "--runner=PortableRunner requires --job_endpoint=HOST:PORT, where a job server "
                "listens."
            )
        for name, address in self.endpoints.items():
            if address == "embed":  # Beam's own job service, in this process
                continue
            with grpc.insecure_channel(address) as channel:
                try:
                    grpc.channel_ready_future(channel).result(ANSWER_SECONDS)
                except grpc.FutureTimeoutError:
                    raise InputError(
                        f"No job server answers at {address} within {ANSWER_SECONDS:.0f} s. Start "
                        f"it, or correct --{name}."
                    ) from None

    def failure(self, error: Exception) -> InputError:
        """The error of a job that could not begin, or failed, for Beam's exception."""
        text = _WRAPPERS.sub("", str(error))
        reason = reason_of(text) if text else type(error).__name__
        not_downloaded = _NO_DOWNLOAD.match(reason)
        if self.pool and _UNREACHABLE.search(reason):
            hint = (
                f"Expected a worker pool at {self.pool} (--environment_config) on every machine of "
                "the cluster, and the cluster where the job server looks for it."
            )
        elif not_downloaded:
            reason = not_downloaded[1]
            hint = (
                f"Download it and give {_DOWNLOADS.get(self.runner, 'its file')}, or start a job "
                "server and give --runner=PortableRunner --job_endpoint=HOST:PORT."
            )
        else:
            hint = "The logs of the job server and of the workers say more."
        return InputError(f"The job failed on {self}: {reason}. {hint}")

    def page(self, result: PipelineResult) -> str | None:
        """The address of the job's page; None if the runner is not Dataflow."""
        if "Dataflow" not in self.runner:
            return None
        return (
            f"https://console.cloud.google.com/dataflow/jobs/{self.region}/{result.job_id()}"
            f"?project={self.project}"
        )


class News(threading.Thread):
    """Writes what a job elsewhere does, while another thread waits for its end.

        with News(result, place=place, progress=progress):
            result.wait_until_finish()

    Args:
        result: Beam's `PipelineResult`.
        place: the `RemoteRunner` that computes it.
        progress: a `data_gen.runner.Progress`.
    """

    def __init__(self, result, *, place, progress):
        super().__init__(daemon=True)
        self._result, self._place, self._progress = result, place, progress
        self._is_done = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self._is_done.set()
        self.join(_POLL_SECONDS)

    def run(self):
        page = self._place.page(self._result)
        self._progress.write(f"The job runs on {self._place}{f': {page}' if page else '.'}")
        latest, moved, written = None, time.monotonic(), time.monotonic()
        while not self._is_done.wait(self._poll_seconds()):
            state, shards = self._state(), self._progress.shards()
            self._progress.show(shards)
            now = time.monotonic()
            if (state, shards) != latest:
                latest, moved = (state, shards), now
                if shards and shards[0] and now - written >= _LINE_SECONDS:
                    written = now
                    finished, total = shards
                    self._progress.write(f"{finished} of {total or '?'} shards are written.")
            elif now - moved >= QUIET_SECONDS:
                moved = now
                self._progress.write(self._waiting(state, shards))

    def _poll_seconds(self):
        folder = self._progress.folder
        is_far = folder is not None and not is_local(folder.path)
        return _LISTING_SECONDS if is_far else _POLL_SECONDS

    def _state(self):
        """The state's name; None if it cannot be had now."""
        with contextlib.suppress(Exception):  # of any runner's client: the wait raises its own
            return self._result.state

    def _waiting(self, state, shards):
        """The sentence for a job in which nothing has moved."""
        progress = f" and {counted(shards[0], 'shard')} written" if shards else ""
        workers = "the logs of the job server and of its workers say which"
        if self._place.pool:
            workers = (
                f"the log of the worker pool at {self._place.pool} says which. The first `python` "
                "on the pool's PATH must be the one that has this library"
            )
        return (
            f"Nothing has changed for {QUIET_SECONDS:.0f} s: {self._place} has the job as "
            f"{state or 'unknown'}{progress}. It reads, tries a step again, or waits for workers: "
            f"{workers}."
        )


@contextlib.contextmanager
def silent_beam():
    """Drops Beam's log, also what it writes without a level or through the root logger.

    It is dropped at the exit of the process as well, when Beam stops the servers that it started.
    Workers in this process, as of Prism, print the traceback of every error that they report, some
    after the job has failed: from now on they do not.
    """
    sdk_worker.print = lambda *_, **__: None

    def is_of_others(record):
        return "apache_beam" not in record.pathname

    root, loggers = logging.getLogger(), [logging.getLogger(name) for name in _LOGGERS]
    excepthook = threading.excepthook
    root.addFilter(is_of_others)
    _silence(loggers)
    try:
        yield
    finally:
        root.removeFilter(is_of_others)
        for logger in loggers:
            logger.propagate = True
        threading.excepthook = excepthook
        atexit.register(_silence, loggers)  # before Beam's, since the last one runs first


def _silence(loggers):
    threading.excepthook = without_lost_connections(threading.excepthook)
    for logger in loggers:
        logger.propagate = False
        if not logger.handlers:  # or Python's handler of last resort would write
            logger.addHandler(logging.NullHandler())


def without_lost_connections(excepthook):
    """An excepthook for threads without Beam's that read from a worker or server that ended."""

    def report(failure):
        if not issubclass(failure.exc_type, grpc.RpcError):
            excepthook(failure)

    return report
