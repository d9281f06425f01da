"""Ends work at its n-th system call that changes files, for tests of what a kill leaves.

Python tells its audit hooks of every file that is opened, made, renamed or deleted, before it is:
so nothing in the library has to know of these tests. `kill_at_every_call` forks a process for each
kill, which is slow and not safe if TensorFlow is loaded. There, `stop_at_every_call` stays in
the process: from the n-th call on, every call raises, so that nothing on the disk changes any more.
"""

import contextlib
import itertools
import os
import sys
import threading

from keras_bert.base import files

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "fcntl.flock"}
PUBLISHING = {"os.rename", "os.remove", "os.rmdir", "os.chmod"}
_KILLED, _FAILED = 77, 78


class Killed(BaseException):
    """Stands for a kill in a process that lives on."""


def end_at(step, under):
    """Ends this process, as a kill would, before its call number `step` (from 0) below `under`."""
    calls = iter(range(step))

    def hook(event, arguments):
        if event in EVENTS and is_below(under, arguments[0]) and next(calls, None) is None:
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


def kill_at_every_call(under, *, prepare, action, check, killed_at=killed_at):
    """`prepare`, `action` killed at call n, `check`, for n = 0, 1, … until it is not killed.

    Returns how many kills there were.
    """
    for step in itertools.count():
        prepare()
        killed = killed_at(step, under, action)
        check(killed)
        if not killed:
            return step


def stop_at_every_call(under, *, prepare, action, check, events=EVENTS):
    """Stops as `kill_at_every_call` kills, in this process, at the calls of some events."""

    def stopped_at(step, under, action):
        calls = itertools.count()

        def kill(event, arguments):
            if event in events and is_below(under, arguments[0]) and next(calls) >= step:
                raise Killed

        try:
            with at_every_call(kill), told_of_exchanges():
                action()
        except Killed:
            return True
        return False

    return kill_at_every_call(
        under, prepare=prepare, action=action, check=check, killed_at=stopped_at
    )


@contextlib.contextmanager
def at_every_call(function):
    """Within it `function(event, arguments)` is called before the calls of this thread."""
    global _asked
    if _hook not in _installed:
        sys.addaudithook(_hook)  # which stays for the life of the process
        _installed.append(_hook)
    _asked = threading.get_ident(), function
    try:
        yield
    finally:
        _asked = None


_asked = None
_installed = []


def _hook(event, arguments):
    if _asked is not None and event in EVENTS and threading.get_ident() == _asked[0]:
        _asked[1](event, arguments)


@contextlib.contextmanager
def told_of_exchanges():
    """Within it an exchange of two names is an event, too; Python tells nothing of the real one."""
    real = files._exchange

    def told(new, path):
        os.chmod(path, 0o755)
        return real(new, path)

    files._exchange = told
    try:
        yield
    finally:
        files._exchange = real


def is_below(under, path):
    """Whether a call is about a path below a folder: a number is an open file, and what is not
    absolute lies in an open folder.
    """
    is_known = not isinstance(path, int) and os.path.isabs(path)
    return not is_known or os.fsdecode(path).startswith(str(under))
