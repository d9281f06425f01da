"""Ctrl-C and SIGTERM: what they raise, and how work that has a better moment to end waits for it.

Whoever lets an interrupt through and knows what state was reached gives it a sentence (`says`): how
far it came, and how to go on. The command line prints it.
"""

import contextlib
import signal
import threading


class Terminated(KeyboardInterrupt):
    """SIGTERM, which a command takes as it takes Ctrl-C."""


# Of a command that was stopped where nobody knows more.
STOPPED = "stopped; nothing was left half written, and the same command begins anew."

SIGNALS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


class StopRequest:
    """Whether somebody asked that the work should end; `stop_later` gives one."""

    def __init__(self):
        self._number = None

    def __bool__(self):
        return self._number is not None

    def raise_if_requested(self):
        """Raises what the signal stands for, if there was one: the moment has come."""
        if self:
            raise SIGNALS[self._number]

    def fraction(self):
        """Takes over the request of another process, where there was none here."""
        if not self:
            self.note(signal.SIGTERM)

    def note(self, number):
        self._number = number


@contextlib.contextmanager
def stop_later():
    """Within it a signal is only noted, in the `StopRequest` given; a second one acts at once.

    Signals come to the main thread: in another one there is never a request.
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
        stop_request.note(number)

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield stop_request
    finally:
        restore()


@contextlib.contextmanager
def says(sentence):
    """Gives an interrupt that ends the body the sentence that the function `sentence` returns.

    The outermost one stays: it knows what the user called.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.args = (sentence(),)
        raise
