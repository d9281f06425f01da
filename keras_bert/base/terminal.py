"""What reaches a person's terminal: text without what a terminal would obey, and bars."""

import contextlib
import os
import re
import sys

# Control characters but for the tab and the line feed, the controls of bidirectional text, and
# surrogates, which stand for the bytes of a name that is not UTF-8 and which UTF-8 cannot hold.
_UNSAFE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_CLOSED = "standard output is closed; send it to a file, or to /dev/null"


def shows_bars():
    """Whether standard error is a terminal that can redraw a line, or a notebook's cell."""
    if type(sys.stderr).__module__.startswith("ipykernel."):
        return True
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def escaped(text):
    r"""A text with `\u001b` in place of what could move the cursor or turn the text around.

    JSON writes such characters the same way, so that a JSON text keeps its value.
    """
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escape_output():
    """Makes standard output and error of this process UTF-8, and all that they write `escaped`.

    Text of users (labels, columns, tags, names of files) reaches a terminal in any message, JSON
    line or traceback; here is the one place that all of them pass. Where standard output is closed
    the process ends with status 2: nobody would see that its result is lost.
    """
    is_closed = sys.stdout is None
    for descriptor in range(3):  # what is closed would become the next file that is opened
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stderr = EscapingStream(sys.stderr, what="standard error")
    if is_closed:
        print(f"keras-bert: {_CLOSED}.", file=sys.stderr)
        sys.exit(2)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout = EscapingStream(sys.stdout, what="standard output")


def drawn_on(stream):
    """The stream under one of `escape_output`, for bars, whose escape sequences draw them.

    What is written there is for the caller to make `escaped`.
    """
    return getattr(stream, "unescaped", stream)


class OutputError(OSError):
    """Standard output or standard error, its `filename`, cannot be written."""


class EscapingStream:
    """A text stream that writes to another what `escaped` makes of a text.

    Args:
        stream: the other one, whose methods and attributes are otherwise these.
        what: its name in messages.
        escape: False passes texts on as they are.

    Attributes:
        unescaped: a stream to the same place that does not escape.

    Raises:
        OutputError: it cannot be written, for another reason than that its reader went away.
    """

    def __init__(self, stream, *, what, escape=True):
        self._stream = stream
        self._what = what
        self._escape = escape
        self.unescaped = EscapingStream(stream, what=what, escape=False) if escape else self

    def write(self, text):
        with self._errors():
            self._stream.write(escaped(text) if self._escape else text)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        with self._errors():
            self._stream.flush()

    def __getattr__(self, name):
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _errors(self):
        try:
            yield
        except OSError as error:
            # What is still in the buffer would fail again when the process ends.
            with contextlib.suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputError(error.errno, error.strerror, self._what) from error
