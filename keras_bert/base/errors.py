"""The errors and warnings that a user sees as a message, without a traceback."""

import contextlib
import re


class InputError(ValueError):
    """Something that the user passed is invalid: a file, a flag, a folder.

    The message is one sentence: what is wrong, where (file and line where there is one) and what
    was expected. The command line prints it and exits with 2; a notebook shows it without the
    traceback.
    """

    def _render_traceback_(self):
        """IPython's hook: the lines to show in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class InputWarning(UserWarning):
    """Something that the user passed is unusual and is used all the same: a note of one line.

    The command line prints each once, to standard error.
    """


def reason_of(error):
    """What another library's error says, for the middle of a sentence: its first line.

    Without the names of nodes that TensorFlow puts around it.
    """
    lines = str(getattr(error, "message", None) or error).splitlines() or [type(error).__name__]
    return re.sub(r"\{\{.*?\}\} | \[Op:.*", "", lines[0])[:200].rstrip(".:")


@contextlib.contextmanager
def input_errors(message_for):
    """Turns expected errors of other libraries into `InputError`s.

    Args:
        message_for: a function from an exception to the message; None lets the exception pass.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        message = message_for(error)
        if message is None:
            raise
        raise InputError(message) from error
