"""Output to a terminal: text without control sequences, and progress bars."""

import contextlib
import os
import re
import sys

# Control characters but for the tab and the line feed, the controls of bidirectional text, and
# surrogates, which are the bytes of a name that is not UTF-8 and cannot be encoded in UTF-8.
_UNSAFE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_quiet = False
_CLOSED = "standard output is closed; send it to a file, or to /dev/null"


def set_quiet(quiet):
    """Sets whether this process shows no progress and no notes (`--quiet`)."""
    global _quiet
    _quiet = quiet


def is_quiet():
    """Whether this process shows no progress and no notes."""
    return _quiet


def shows_bars():
    """Whether standard error draws progress bars: it is a terminal, or a notebook cell."""
    return not _quiet and (
        sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
    )


def escaped(text):
    r"""A text with escapes such as `\u001b` in place of control characters.

    JSON writes such characters the same way, so that a JSON text keeps its value.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def escape_output():
    """Makes standard output and error of this process UTF-8, and all that they write `escaped`.

    Text of users (labels, columns, tags, names of files) reaches a terminal in any message, JSON
    line or traceback, all of which pass here. If standard output is closed the process ends with
    status 2, since its result would be lost unnoticed.
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
    sys.stderr = EscapingStream(sys.stderr, name="standard error")
    if is_closed:
        print(f"keras-bert: {_CLOSED}.", file=sys.stderr)
        sys.exit(2)
    # By lines, so that in one pipe they are in order with those of standard error.
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.stdout = EscapingStream(sys.stdout, name="standard output")


def drawn_on(stream):
    """The stream under one of `escape_output`, for bars, which are drawn by escape sequences.

    The caller makes all other text for it `escaped`.
    """
    return getattr(stream, "unescaped", stream)


class OutputError(OSError):
    """Standard output or standard error, its `filename`, cannot be written."""


class EscapingStream:
    """A text stream that writes `escaped` texts to another stream.

    Args:
        stream: the other one, whose methods and attributes are otherwise these.
        name: its name in messages.
        escape: False passes texts on as they are.

    Attributes:
        unescaped: the same stream without escaping.

    Raises:
        OutputError: it cannot be written, for another reason than that its reader went away.
    """

    def __init__(self, stream, *, name, escape=True):
        self._stream = stream
        self._name = name
        self._escape = escape
        self.unescaped = EscapingStream(stream, name=name, escape=False) if escape else self

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
            raise OutputError(error.errno, error.strerror, self._name) from error
