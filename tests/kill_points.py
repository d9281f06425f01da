"""Ends a process at its n-th system call that changes files, for tests of what a kill leaves.

Python tells its audit hooks of every file that is opened, made, renamed or deleted, before it is:
so nothing in the library has to know of these tests.
"""

import os
import sys

_EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "fcntl.flock"}
_KILLED, _FAILED = 77, 78


def end_at(step, under):
    """Ends this process, as a kill would, before its call number `step` (from 0) below `under`."""
    calls = iter(range(step))

    def hook(event, arguments):
        if event not in _EVENTS:
            return
        path = arguments[0]
        # A number is an open file, and what is not absolute lies in an open folder.
        is_known = not isinstance(path, int) and os.path.isabs(path)
        if is_known and not os.fsdecode(path).startswith(str(under)):
            return
        if next(calls, None) is None:
            os._exit(_KILLED)

    sys.addaudithook(hook)


def killed_at(step, under, action):
    """Runs `action` in a forked process that is killed at call `step`; False if it ended before."""
    process = os.fork()
    if not process:
        status = _FAILED
        try:
            end_at(step, under)
            action()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in (0, _KILLED), f"the process failed at call {step}"
    return status == _KILLED


def kill_at_every_call(under, *, prepare, action, check):
    """`prepare`, `action` killed at call n, `check`, for n = 0, 1, … until it is not killed.

    Returns how many kills there were.
    """
    step = 0
    while True:
        prepare()
        killed = killed_at(step, under, action)
        check(killed)
        if not killed:
            return step
        step += 1
