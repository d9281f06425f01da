"""Jobs on another runner: they say where they are, what they wait for, and why they failed."""

import logging
import queue
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import apache_beam as beam
import grpc
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.worker import sdk_worker

from data_gen import remote_runners, runner
from data_gen.remote_runners import REFUSED, News, RemoteRunner
from keras_bert.base.errors import InputError

FLINK = [
    "--runner=PortableRunner", "--job_endpoint=host:8099", "--artifact_endpoint=host:8098",
    "--environment_type=EXTERNAL", "--environment_config=localhost:50000",
]  # fmt: skip


def place_of(*options):
    return RemoteRunner.of(PipelineOptions(list(options)))


@pytest.mark.parametrize("name", ["FnApiRunner", "DirectRunner", "BundleBasedDirectRunner"])
def test_runners_of_this_process_are_no_other_place(name):
    assert place_of(f"--runner={name}") is None


def test_a_place_is_named_in_messages():
    assert str(place_of(*FLINK)) == "PortableRunner at host:8099"
    assert str(place_of("--runner=PrismRunner")) == "PrismRunner"
    assert place_of(*FLINK).pool == "localhost:50000"
    assert place_of("--runner=PortableRunner", "--environment_config=x").pool is None


def test_a_portable_runner_needs_an_endpoint():
    with pytest.raises(InputError, match=r"requires --job_endpoint=HOST:PORT, where a job server"):
        place_of("--runner=PortableRunner").check()


@pytest.mark.parametrize("silent", ["job_endpoint", "artifact_endpoint"])
def test_an_endpoint_that_does_not_answer_is_named(silent, monkeypatch):
    monkeypatch.setattr(remote_runners, "ANSWER_SECONDS", 0.5)
    server = grpc.server(ThreadPoolExecutor(1))
    ports = {"job_endpoint": server.add_insecure_port("127.0.0.1:0")}
    server.start()
    with socket.socket() as closed:  # bound, and not listening
        closed.bind(("127.0.0.1", 0))
        ports["artifact_endpoint"] = closed.getsockname()[1]
        if silent == "job_endpoint":
            ports = dict(zip(ports, reversed(ports.values()), strict=True))
        options = [f"--{name}=127.0.0.1:{port}" for name, port in ports.items()]
        with pytest.raises(InputError) as raised:
            place_of("--runner=PortableRunner", *options).check()
    server.stop(None)
    assert str(raised.value) == (
        f"No job server answers at 127.0.0.1:{ports[silent]} within 0 s. Start it, or correct "
        f"--{silent}."
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            FLINK,
            "Pipeline BeamApp-root-1_2 failed in state FAILED: java.net.ConnectException: "
            "java.net.ConnectException: finishConnect(..) failed: Connection refused\n\tat x",
            "The job failed on PortableRunner at host:8099: finishConnect(..) failed: Connection "
            "refused. Expected a worker pool at localhost:50000 (--environment_config) on every "
            "machine of the cluster, and the cluster where the job server looks for it.",
        ),
        (
            FLINK,
            "Pipeline BeamApp-root-1_2 failed in state FAILED: java.lang.OutOfMemoryError: Java "
            "heap space",
            "The job failed on PortableRunner at host:8099: Java heap space. The logs of the job "
            "server and of the workers say more.",
        ),
        (
            ["--runner=FlinkRunner"],
            "Unable to fetch remote job server jar at https://an.address/a.jar: HTTP Error 404",
            "The job failed on FlinkRunner: Unable to fetch remote job server jar. Download it and "
            "give --flink_job_server_jar=FILE, or start a job server and give "
            "--runner=PortableRunner --job_endpoint=HOST:PORT.",
        ),
        (
            ["--runner=PrismRunner"],
            "",
            "The job failed on PrismRunner: RuntimeError. The logs of the job server and of the "
            "workers say more.",
        ),
    ],
)
def test_a_failed_job_is_one_sentence_and_what_to_do(options, error, message):
    assert str(place_of(*options).failure(RuntimeError(error))) == message


@pytest.mark.parametrize("name", [*REFUSED, "apache_beam.runners.dask.dask_runner.DaskRunner"])
def test_runners_that_do_not_work_are_refused_by_name(name):
    with pytest.raises(InputError, match=f"Invalid --runner '{name}': .*. Expected FnApiRunner"):
        runner.options([f"--runner={name}"])


class FakeResult:
    state = "RUNNING"

    def job_id(self):
        return "7"


class FakeProgress:
    """Returns each of `states` once, and then the last one."""

    folder = None

    def __init__(self, *states):
        self.states, self.lines, self.shown = list(states), [], []

    def write(self, line):
        self.lines.append(line)

    def shards(self):
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def show(self, shards):
        self.shown.append(shards)


def lines_of(progress, options, *, count, seconds=20):
    """The lines that `News` writes, until there are `count`."""
    with News(FakeResult(), place=place_of(*options), progress=progress):
        end = time.monotonic() + seconds
        while len(progress.lines) < count and time.monotonic() < end:
            time.sleep(0.01)
    return progress.lines[:count]


def test_a_job_elsewhere_says_where_it_is_and_how_far(monkeypatch):
    monkeypatch.setattr(remote_runners, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(remote_runners, "_LINE_SECONDS", 0)
    progress = FakeProgress(None, (0, None), (1, 3), (2, 3), (2, 3))
    assert lines_of(progress, FLINK, count=3) == [
        "The job runs on PortableRunner at host:8099.",
        "1 of 3 shards are written.",
        "2 of 3 shards are written.",
    ]
    assert progress.shown[:4] == [None, (0, None), (1, 3), (2, 3)]


def test_a_job_in_which_nothing_moves_says_what_it_may_wait_for(monkeypatch):
    monkeypatch.setattr(remote_runners, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(remote_runners, "QUIET_SECONDS", 0.1)
    assert lines_of(FakeProgress((2, 3)), FLINK, count=2)[1] == (
        "Nothing has changed for 0 s: PortableRunner at host:8099 has the job as RUNNING and "
        "2 shards written. It reads, tries a step again, or waits for workers: the log of the "
        "worker pool at localhost:50000 says which. The first `python` on the pool's PATH must be "
        "the one that has this library."
    )
    line = lines_of(FakeProgress(None), ["--runner=PrismRunner"], count=2)[1]
    assert line.endswith("the logs of the job server and of its workers say which.")


def test_a_job_on_dataflow_names_its_page():
    options = ["--runner=DataflowRunner", "--project=p", "--region=r"]
    assert lines_of(FakeProgress(None), options, count=1) == [
        "The job runs on DataflowRunner: "
        "https://console.cloud.google.com/dataflow/jobs/r/7?project=p"
    ]


def test_an_interrupt_cancels_a_job_elsewhere(monkeypatch):
    class Interrupted(FakeResult):
        is_cancelled = False

        def wait_until_finish(self):
            raise KeyboardInterrupt

        def cancel(self):
            self.is_cancelled = True
            raise RuntimeError("the job server is gone")

    result = Interrupted()
    monkeypatch.setattr(beam.Pipeline, "run", lambda pipeline: result)
    with pytest.raises(KeyboardInterrupt):
        runner.run(lambda pipeline: None, ["--runner=PrismRunner"])
    assert result.is_cancelled


def test_beams_log_is_dropped_and_others_are_not(caplog, monkeypatch):
    monkeypatch.setattr(remote_runners.atexit, "register", lambda *call: None)
    excepthook = threading.excepthook
    with remote_runners.silent_beam():
        logging.getLogger("apache_beam.some.module").error("of Beam")
        logging.getLogger("PrismJobServer").error("of Prism")
        logging.getLogger("ours").error("ours")
        assert threading.excepthook is not excepthook
    assert [record.getMessage() for record in caplog.records] == ["ours"]
    assert threading.excepthook is excepthook
    logging.getLogger("apache_beam.some.module").error("after")
    assert caplog.records[-1].getMessage() == "after"


def test_a_worker_in_this_process_reports_an_error_and_prints_nothing_also_later(capsys):
    """A worker of Prism's is a thread here."""
    harness = sdk_worker.SdkHarness.__new__(sdk_worker.SdkHarness)
    harness._responses = queue.Queue()
    with remote_runners.silent_beam():
        harness._execute(lambda: 1 / 0, beam_fn_api_pb2.InstructionRequest(instruction_id="1"))
    level = logging.getLogger("apache_beam").level
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # as it is after a quiet job
    try:
        harness._execute(lambda: 1 / 0, beam_fn_api_pb2.InstructionRequest(instruction_id="2"))
    finally:
        logging.getLogger("apache_beam").setLevel(level)
    for number in "12":
        response = harness._responses.get_nowait()
        assert response.instruction_id == number and "ZeroDivisionError" in response.error
    assert capsys.readouterr() == ("", "")
