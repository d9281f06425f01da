"""Keeps what TensorFlow, Abseil and Beam print at start out of the user's sight."""

import contextlib
import faulthandler
import io
import logging
import os
import sys
import warnings

from keras_bert.base.errors import InputWarning
from keras_bert.base.terminal import EscapingStream

_STDERR = 2
_LOUD = ("", "tensorflow", "absl", "apache_beam", "h5py")


@contextlib.contextmanager
def quiet_libraries():
    """Within it, of standard error only Python's own part is seen, and no log below an error.

    Of warnings only `InputWarning` is seen, as a note of one line.

    TensorFlow's C++ code logs before it reads TF_CPP_MIN_LOG_LEVEL, and it writes to the file
    descriptor. So the descriptor is turned away, and `sys.stderr` keeps the terminal: progress
    bars, our own sentences, tracebacks. Must be entered before TensorFlow is imported.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    with contextlib.ExitStack() as stack:
        for name in _LOUD:
            stack.enter_context(_errors_only(logging.getLogger(name)))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        warnings.simplefilter("once", InputWarning)
        warnings.showwarning = _show_note
        if _is_descriptor_2(sys.stderr):
            stack.enter_context(_descriptor_2_turned_away())
        yield


def _show_note(message, category, filename, lineno, file=None, line=None):
    print(f"Note: {message}", file=sys.stderr)


@contextlib.contextmanager
def _errors_only(logger):
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _descriptor_2_turned_away():
    before = sys.stderr
    before.flush()
    terminal = os.fdopen(
        os.dup(_STDERR), "w", buffering=1, encoding=before.encoding, errors=before.errors
    )
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDERR)
    os.close(nowhere)
    sys.stderr = EscapingStream(terminal, what="standard error")
    # A crash in C++ must not be silent: it leaves at least where Python stood.
    faulthandler.enable(terminal)
    try:
        yield
    finally:
        faulthandler.disable()
        terminal.flush()
        os.dup2(terminal.fileno(), _STDERR)
        sys.stderr = before
        terminal.close()


def _is_descriptor_2(stream):
    """Whether a stream writes where C++ does; a notebook's or a test's own stream does not."""
    try:
        return stream.fileno() == _STDERR
    except (AttributeError, io.UnsupportedOperation, ValueError):
        return False
