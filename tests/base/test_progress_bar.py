"""One bar for everything that takes long: drawn in a terminal, plain lines in a log file."""

import io
import time

import pytest

from keras_bert.base.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def show(monkeypatch):
    """A function that uses a bar on a stream and returns what was written there."""
    monkeypatch.setenv("COLUMNS", "100")

    def show(stream, **options):
        monkeypatch.setattr("sys.stderr", stream)
        with ProgressBar("Reading\x1b[31m", unit="lines", total=60, **options) as bar:
            bar.update(30, note="loss 9.500, accuracy 12.5 %, 8,412 tokens/s")
            bar.write("A line [x] \x1b")
            bar.update(advance=30, description="Writing")
        bar.close()
        return stream.getvalue()

    return show


def test_a_log_file_gets_plain_lines_and_the_last_state_once(show):
    assert show(io.StringIO(), line_seconds=0).splitlines() == [
        "Reading\\u001b[31m: 50% (30/60 lines), loss 9.500, accuracy 12.5 %, 8,412 tokens/s",
        "A line [x] \x1b",  # escaped by the command's own standard error
        "Writing: 100% (60/60 lines), loss 9.500, accuracy 12.5 %, 8,412 tokens/s",
    ]
    lines = show(io.StringIO(), line_seconds=60).splitlines()
    assert lines[1:] == ["Writing: 100% (60/60 lines), loss 9.500, accuracy 12.5 %, 8,412 tokens/s"]


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
@pytest.mark.parametrize("options", [{}, {"enabled": False, "line_seconds": 0}])
def test_nothing_is_shown_where_it_is_not_wanted(show, stream, options):
    if options or stream is io.StringIO:
        assert show(stream(), **options) == "A line [x] \x1b\n"


def test_a_terminal_gets_a_bar_below_the_lines_that_stay(show):
    shown = show(Terminal(), line_seconds=0)
    assert "\r\x1b[2KA line [x] \\u001b\n" in shown
    assert shown.count("\n") == 2 and shown.endswith("\n")
    assert "Writing" in shown and "60/60 lines" in shown and "\x1b[31m" not in shown
    assert "loss 9.500, accuracy 12.5 %, 8,412 tokens/s" in shown
    assert "\x1b[?25l" not in shown  # the cursor is never hidden


def test_the_state_is_asked_for_only_where_a_bar_is_drawn(monkeypatch):
    def poll(bar):
        bar.update(3, total=4, description="Writing")

    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        with ProgressBar("Reading", unit="shards", transient=True, poll=poll) as bar:
            deadline = time.monotonic() + 10
            while bar.is_drawn and "3/4 shards" not in stream.getvalue():
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert bool(stream.getvalue()) is bar.is_drawn is isinstance(stream, Terminal)
