"""How TensorFlow starts in a program that imports this library: without its logs.

TensorFlow's C++ code logs what it finds on the machine to the file descriptor of standard error,
some of it before it reads TF_CPP_MIN_LOG_LEVEL.
"""

import contextlib
import faulthandler
import functools
import importlib.abc
import os
import re
import sys
import tempfile

_LEVEL, _FATAL_ONLY = "TF_CPP_MIN_LOG_LEVEL", "3"
_LOG = re.compile(rb"[IWE]\d{4} \d\d:\d\d:|WARNING: All log messages before absl::InitializeLog")
_STDERR = 2


def hide_start_up_logs():
    """Hides the logs of TensorFlow's start from now on, unless the user has set their level."""
    os.environ.setdefault(_LEVEL, _FATAL_ONLY)
    if not any(isinstance(finder, _QuietImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _QuietImport())


class _QuietImport(importlib.abc.MetaPathFinder):
    """Finds TensorFlow as Python does, and runs its import within `_logs_hidden`."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "tensorflow":
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module = functools.partial(_quietly, spec.loader.exec_module)
                return spec
        return None


def _quietly(execute, module):
    with _logs_hidden():
        execute(module)


@contextlib.contextmanager
def _logs_hidden():
    """Hides logs at the level 3 of TensorFlow, below a fatal error, in standard error.

    What else is written there meanwhile is shown at the end; a crash shows Python's traceback.
    """
    try:
        before = os.dup(_STDERR) if os.environ.get(_LEVEL) == _FATAL_ONLY else None
    except OSError:  # standard error is closed
        before = None
    if before is None:
        yield
        return
    shows_crashes = not faulthandler.is_enabled()
    with tempfile.TemporaryFile() as written:
        if shows_crashes:
            faulthandler.enable(before)
        os.dup2(written.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(before, _STDERR)
            if shows_crashes:
                faulthandler.disable()
            os.close(before)
            written.seek(0)
            shown = [line for line in written if not _LOG.match(line)]
            with contextlib.suppress(OSError):
                os.write(_STDERR, b"".join(shown))
