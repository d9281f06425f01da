"""Measures a program as a whole process, from outside."""

import os
import subprocess
import sys
import time

_MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)
"""


def measured(command, status=0):
    """Runs a command; returns (lines it printed, seconds, seconds of processor, MiB).

    The last is the highest memory of any one process of it. Raises `CalledProcessError` when it
    ends with another status than this.
    """
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": os.getcwd()}
    start = time.perf_counter()
    # A process of its own counts its children, so that two measurements do not mix.
    result = subprocess.run(
        [sys.executable, "-c", _MEASURE, *map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if result.returncode != status:
        raise subprocess.CalledProcessError(result.returncode, command)
    *output, last = result.stdout.splitlines()
    processor, kibibytes = last.split()
    return output, seconds, float(processor), int(kibibytes) / 1024
