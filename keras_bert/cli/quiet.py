"""Keeps what TensorFlow, Abseil and Beam print at start out of the user's sight."""

import contextlib
import faulthandler
import io
import logging
import os
import platform
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


_X86 = ("x86_64", "AMD64")


def settle_cpu():
    """Settles for TensorFlow what it leaves to the environment; call before it is imported.

    What the user's environment says stays so.

    Products are oneDNN's on every x86 processor. By itself TensorFlow takes them only where there
    are AVX-512's instructions for neural networks; but with AVX2 alone the products of a gradient
    are a tenth to a half faster, and a fine-tuning step by an eighth.

    Memory that a step has freed is kept. A step makes the tensors anew that the step before it has
    freed. Where TensorFlow does not use oneDNN, with which it keeps them, it leaves them to the C
    library, which gives large ones back to the system, and the system clears every page that is
    asked for again: a tenth of the processor's time of a fine-tuning step.
    """
    if platform.machine() in _X86:
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
