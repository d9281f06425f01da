"""TensorFlow starts without its logs; whatever else it writes is shown."""

import os
import subprocess
import sys

import pytest

_LOGS = b"WARNING: All log messages before absl::InitializeLog()\nI0000 00:00:17.5 port.cc:1] on\n"
_TENSORFLOW = f"""
import os, sys
os.write(2, {_LOGS!r})
print("to be seen", file=sys.stderr)
os.write(2, b"E0000 00:00:17.6 cuda.cc:1] none")
"""


def started(folder, *, more="", **environment):
    """The output of a program that imports this library and a TensorFlow of three lines."""
    (folder / "tensorflow.py").write_text(_TENSORFLOW + more)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        **environment,
    }
    environment = {name: value for name, value in environment.items() if value is not None}
    program = "import keras_bert, importlib.util as u; u.find_spec('tensorflow'); import tensorflow"
    return subprocess.run(
        [sys.executable, "-c", f"{program}; print('on', file=__import__('sys').stderr)"],
        env=environment,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("level, shows", [(None, False), ("3", False), ("0", True)])
def test_logs_are_hidden_unless_their_level_is_set(level, shows, tmp_path):
    done = started(tmp_path, TF_CPP_MIN_LOG_LEVEL=level)
    assert done.returncode == 0
    assert (_LOGS in done.stderr, b"E0000" in done.stderr) == (shows, shows)
    assert b"to be seen\n" in done.stderr and done.stderr.endswith(b"on\n")


@pytest.mark.parametrize(
    "more, expected",
    [("os.abort()", b"Fatal Python error: Aborted"), ("raise OSError(7)", b"OSError: 7")],
)
def test_what_ends_the_program_is_shown(more, expected, tmp_path):
    done = started(tmp_path, more=more, TF_CPP_MIN_LOG_LEVEL=None)
    assert done.returncode != 0 and expected in done.stderr
    assert b"tensorflow.py" in done.stderr  # where it was
