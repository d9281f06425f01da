"""Local worker processes: they end with the main process, and it does not wait for a dead one.

The work is sleep, and the process that workers are forked from loads nothing beforehand.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import apache_beam as beam
import pytest

from data_gen import pretraining_data, runner
from keras_bert.base.errors import InputError

PROGRAM = [sys.executable, "-c", "from data_gen import worker; worker.load = int; worker.main()"]
WORKERS = 2
PATIENCE = 120  # seconds that a busy machine may take for what needs none
ALONE = """
import sys
from pathlib import Path
from tests.data_gen import test_workers
test_workers.runner._PROGRAM = test_workers.PROGRAM
test_workers.sleep_in_workers(Path(sys.argv[1]))
"""


@pytest.fixture(autouse=True)
def quick_workers(monkeypatch):
    monkeypatch.setattr(runner, "_PROGRAM", PROGRAM)


def nap(_, folder):
    """Writes into a file that is called as its process, and goes on for much longer than a test."""
    (folder / f"{os.getpid()}").touch()
    time.sleep(10 * PATIENCE)


def sleep_in_workers(folder):
    def build(pipeline):
        _ = pipeline | beam.Create(range(8)) | beam.Reshuffle() | beam.Map(nap, folder=folder)

    runner.run(build, [f"--direct_num_workers={WORKERS}"])


def workers_of(folder):
    """The processes that have written, once all have."""
    assert becomes_true(lambda: len(list(folder.iterdir())) == WORKERS), "workers do not begin"
    return [int(path.name) for path in folder.iterdir()]


def runs(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def all_end(processes):
    """Whether they end, whose work would take much longer."""
    return becomes_true(lambda: not any(map(runs, processes)))


def becomes_true(asked):
    end = time.monotonic() + PATIENCE
    while not asked():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def meanwhile(act, folder):
    """Does `act(workers)` in a thread once the workers are at work; a list that they are put in."""
    workers = []

    def wait():
        workers.extend(workers_of(folder))
        act(workers)

    threading.Thread(target=wait, daemon=True).start()
    return workers


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal is Linux's")
def test_workers_end_at_once_when_the_main_process_is_killed(tmp_path):
    root = Path(__file__).resolve().parents[2]
    main = subprocess.Popen([sys.executable, "-c", ALONE, tmp_path], cwd=root)
    workers = workers_of(tmp_path)
    main.kill()
    assert all_end(workers)
    main.wait()


def test_an_interrupt_is_passed_on_at_once_and_ends_the_workers(tmp_path, capfd, interrupts):
    started = meanwhile(lambda _: os.kill(os.getpid(), signal.SIGINT), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        sleep_in_workers(tmp_path)
    assert all_end(started) and len(started) == WORKERS
    assert "Traceback" not in capfd.readouterr().err


def test_a_killed_worker_is_one_sentence_and_nobody_waits(tmp_path, capfd):
    started = meanwhile(lambda workers: os.kill(workers[0], signal.SIGKILL), tmp_path)
    with pytest.raises(InputError, match="A worker process was killed, perhaps by the system"):
        sleep_in_workers(tmp_path)
    assert all_end(started) and len(started) == WORKERS
    assert "Traceback" not in capfd.readouterr().err


def test_an_error_in_another_process_is_one_sentence(corpus, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(logging.getLogger("apache_beam"), "level", logging.ERROR)
    path = tmp_path / "a.txt"
    path.write_bytes(b"Fine.\nOne.\n\nCaf\xe9.\nx.\n")
    with pytest.raises(InputError, match='a.txt, line 4 is not UTF-8.*`bad_lines="skip"`.$'):
        pretraining_data.pretraining_data(
            input=path, vocab=corpus.vocabulary, output=tmp_path / "data",
            beam_options=["--direct_num_workers=2"],
        )  # fmt: skip
    assert capfd.readouterr() == ("", "")  # Beam's own report is kept from the user


def test_an_interrupted_job_says_how_far_it_was(corpus, corpus_files, tmp_path, monkeypatch):
    def interrupted(build, options, **more):
        (tmp_path / "data" / "pretraining_data-train.tfrecord-00000-of-00004").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(pretraining_data.runner, "run", interrupted)
    with pytest.raises(KeyboardInterrupt, match="with 1 of 4 shards written to .*/data. Run"):
        pretraining_data.pretraining_data(
            input=corpus_files, vocab=corpus.vocabulary, output=tmp_path / "data"
        )
