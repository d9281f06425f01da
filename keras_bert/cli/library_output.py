"""The output of TensorFlow, Abseil and Beam in a command: errors alone, and warnings as notes."""

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
    """Shows only what Python writes to standard error, and no logs below an error.

    It shows no warning but `InputWarning` (see `warnings_as_notes`).

    TensorFlow's C++ code logs to the file descriptor before it reads TF_CPP_MIN_LOG_LEVEL. So the
    descriptor is redirected, and `sys.stderr` keeps the terminal: progress bars, messages,
    tracebacks. Must be entered before TensorFlow is imported.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    with contextlib.ExitStack() as stack:
        for name in _LOUD:
            stack.enter_context(_errors_only(logging.getLogger(name)))
        stack.enter_context(warnings_as_notes(others="ignore"))
        if _is_descriptor_2(sys.stderr):
            stack.enter_context(_descriptor_2_redirected())
        yield


@contextlib.contextmanager
def warnings_as_notes(*, others=None):
    """Shows every `InputWarning` as a note of one line, once.

    `others` is what is done with other warnings, as in `warnings.simplefilter`; None is Python's.
    """
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message, category, *where, **options):
            if issubclass(category, InputWarning):
                print(f"Note: {message}", file=sys.stderr)
            else:
                show_other(message, category, *where, **options)

        if others is not None:
            warnings.simplefilter(others)
        warnings.simplefilter("once", InputWarning)
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _errors_only(logger):
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _descriptor_2_redirected():
    before = sys.stderr
    before.flush()
    terminal = os.fdopen(
        os.dup(_STDERR), "w", buffering=1, encoding=before.encoding, errors=before.errors
    )
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDERR)
    os.close(nowhere)
    sys.stderr = EscapingStream(terminal, name="standard error")
    # A crash in C++ must not be silent: it prints at least Python's traceback.
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
