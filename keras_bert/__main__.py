"""`keras-bert` and `python -m keras_bert`: `main`, with one line wherever a signal ends it."""

import contextlib
import os
import signal
import sys

from keras_bert.base.signals import SIGNALS, STOPPED
from keras_bert.base.terminal import escape_output
from keras_bert.cli.cpu import configure_cpu

ENDED = "Interrupted. Run the same command again to resume, or to start over."
_IMPORTS = "<frozen importlib._bootstrap>"


def run():
    """Runs the command of this process, and ends the process with its status.

    A signal raises an interrupt in the main thread, which `main` reports. While a module is
    imported or an object is destroyed, C code may lose the exception: there, and for a second
    signal, the process ends at once, which all our writers survive. It also ends when Python
    reports that it lost the exception, as in the callback of a weak reference.
    """
    if sys.getfilesystemencoding() != "utf-8":
        # Texts and paths are UTF-8, whatever the locale is (LC_ALL=C with PYTHONUTF8=0).
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    escape_output()
    received = []
    report_lost = sys.unraisablehook

    def end(number):
        with contextlib.suppress(Exception):
            os.write(sys.stderr.fileno(), f"keras-bert: {ENDED}\n".encode())
        os._exit(128 + number)

    def handle(number, frame):
        if received or not _can_raise(frame):
            end(number)
        received.append(number)
        raise SIGNALS[number]

    def lost(unraisable):
        if received and isinstance(unraisable.exc_value, KeyboardInterrupt):
            end(received[0])
        report_lost(unraisable)

    sys.unraisablehook = lost
    for number in SIGNALS:
        signal.signal(number, handle)
    configure_cpu()
    try:
        from keras_bert.cli.main import main

        status = main()
    except BaseException:
        if not received:
            raise
        # It came before the command began, or a library raised another error instead.
        print(f"keras-bert: {STOPPED}", file=sys.stderr)
        status = 128 + received[0]
    if received:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)  # an ordinary exit would wait for running threads
    for number in SIGNALS:  # from here on the process only exits, which may be cut short
        signal.signal(number, lambda *_: os._exit(status))
    sys.exit(status)


def _can_raise(frame):
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTS or frame.f_code.co_name == "__del__":
            return False
        frame = frame.f_back
    return True


if __name__ == "__main__":
    run()
