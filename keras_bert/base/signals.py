"""Ctrl-C and SIGTERM: what they raise, and how work delays them to a better moment.

Code that knows what state was reached gives an interrupt its message (`interruption_message`): how
far the work came, and how to resume it. The command line prints it.
"""

import contextlib
import signal
import threading


class Terminated(KeyboardInterrupt):
    """SIGTERM, which a command takes as it takes Ctrl-C."""


# For a command that has no message of its own.
STOPPED = "Interrupted. Nothing was left half written. Run the same command again to start over."

SIGNALS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


class StopRequest:
    """Whether a signal asked that the work should end; `stop_later` gives one."""

    def __init__(self):
        self._number = None

    def __bool__(self):
        return self._number is not None

    def raise_if_requested(self):
        """Raises what the signal stands for, if there was one."""
        if self:
            raise SIGNALS[self._number]

    def request(self, number=signal.SIGTERM):
        """Notes a signal, such as one that another process received, if there was none before."""
        if not self:
            self._number = number


@contextlib.contextmanager
def stop_later():
    """Notes a signal in a `StopRequest` instead of raising it; a second signal acts at once.

    Signals reach the main thread alone, so that other threads never have a request.
    """
    stop_request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop_request
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def restore():
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def note(number, frame):
        restore()
        stop_request.request(number)

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield stop_request
    finally:
        restore()


@contextlib.contextmanager
def interruption_message(sentence):
    """Gives an interrupt that ends the body the message that the function `sentence` returns.

    The outermost message stays, which is about what the user called.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.args = (sentence(),)
        raise
