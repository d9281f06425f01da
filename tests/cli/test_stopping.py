"""Ctrl-C and SIGTERM: one line and the signal's status, whatever the command is doing."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keras_bert.__main__ import ENDED
from keras_bert.base.signals import STOPPED, Terminated, interruption_message, stop_later
from keras_bert.cli.main import COMMANDS, main

REPOSITORY = Path(__file__).resolve().parents[2]
ENDINGS = {f"keras-bert: {message}\n" for message in (STOPPED, ENDED)}
VOCAB = ["vocab", "--input", "x", "--output", "y", "--size", "9"]

# The signal comes while a module is imported, which loses the exception.
LOADING = """
import os, sys
from keras_bert import __main__ as console

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            try:
                os.kill(os.getpid(), number)
            except BaseException:
                pass

number, module = int(sys.argv.pop(1)), sys.argv.pop(1)
sys.meta_path.insert(0, Finder())
console.run()
"""

# The command loses the exception in several ways, while one of its threads is running.
LOSING = """
import atexit, os, sys, threading, time, weakref
from keras_bert import __main__ as console
from keras_bert.cli import data_commands

class Held:
    def __del__(self):
        os.kill(os.getpid(), NUMBER)

def raises_it(arguments):
    threading.Thread(target=time.sleep, args=(60,)).start()
    os.kill(os.getpid(), NUMBER)

def raises_another(arguments):
    try:
        raises_it(arguments)
    except BaseException as error:
        raise RuntimeError("a worker failed") from error

def loses_it(arguments):
    try:
        raises_it(arguments)
    except BaseException:
        os.kill(os.getpid(), NUMBER)

def destroys(arguments):
    Held()
    time.sleep(60)

def is_called_back(arguments):
    event = threading.Event()
    reference = weakref.ref(event, lambda reference: os.kill(os.getpid(), NUMBER))
    del event
    time.sleep(60)

def is_done(arguments):
    atexit.register(raises_it, arguments)

NUMBER, name = int(sys.argv.pop(1)), sys.argv.pop(1)
data_commands.vocab.run = globals()[name]
console.run()
"""


def run(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=50)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["keras_bert.cli.command", "data_gen.settings"])
def test_a_signal_while_modules_are_loaded(number, module):
    result = run(LOADING, int(number), module, *VOCAB)
    assert result.returncode == 128 + number
    assert result.stderr in ENDINGS


@pytest.mark.parametrize(
    "name", ["raises_it", "raises_another", "loses_it", "destroys", "is_called_back"]
)
def test_a_signal_is_not_lost_and_nobody_waits_for_threads(name):
    result = run(LOSING, int(signal.SIGTERM), name, *VOCAB)
    assert result.returncode == 143
    assert result.stderr in ENDINGS


def test_a_signal_during_exit_changes_nothing():
    result = run(LOSING, int(signal.SIGTERM), "is_done", *VOCAB)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "raised, status", [(KeyboardInterrupt("so far"), 130), (Terminated("so far"), 143)]
)
def test_the_message_of_an_interrupt_is_printed(monkeypatch, capsys, raised, status):
    def stop(arguments):
        raise raised

    monkeypatch.setattr(COMMANDS["vocab"], "run", stop)
    assert main(VOCAB) == status
    assert capsys.readouterr().err == "keras-bert: so far\n"


def test_a_stop_request_is_noted_in_the_main_thread_and_the_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM)
    with stop_later() as stop_request:
        stop_request.raise_if_requested()
        signal.raise_signal(signal.SIGTERM)
        assert stop_request and signal.getsignal(signal.SIGTERM) is before
        with pytest.raises(Terminated):
            stop_request.raise_if_requested()
    with ThreadPoolExecutor(1) as threads, stop_later():
        noting = signal.getsignal(signal.SIGINT)
        threads.submit(lambda: stop_later().__enter__()).result()
        assert signal.getsignal(signal.SIGINT) is noting
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_outermost_message_stays():
    with (
        pytest.raises(Terminated, match="outer"),
        interruption_message(lambda: "outer"),
        interruption_message(lambda: "inner"),
    ):
        raise Terminated
