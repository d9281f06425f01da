"""What a user sees as a sentence: the error instead of a traceback, and the warning."""

import contextlib


class InputError(ValueError):
    """Something that the user gave is wrong: a file, a flag, a folder.

    The message is one plain sentence that says what is wrong, where (file and line where there is
    one) and what would be right. The command line prints it and exits with 2; a notebook shows it
    without the traceback, whose lines are all ours.
    """

    def _render_traceback_(self):
        """What IPython asks an exception for: the lines to show in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class InputWarning(UserWarning):
    """Something that the user gave is unusual and is used all the same: a note of one line.

    The command line prints it to standard error, each once.
    """


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
