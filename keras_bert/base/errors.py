"""The errors and warnings that a user sees as a message, without a traceback."""

import contextlib
import re
import string
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Self

_LIBRARY = str(Path(__file__).parent.parent)
_INSTALLED = {"site-packages", "dist-packages"}  # the folders of what pip and Debian install


class Naming:
    """A text that names arguments: in Python `` `steps` ``, on the command line --steps.

        Naming("{steps} is {}. Pass {force=True}.", steps)

    Args:
        template: `{steps}` is the argument `steps`, and `{force=True}` one with a value.
        replacements: the value of each `{}`; another `Naming` or `InputError` names arguments, too.
    """

    def __init__(self, template: str, *replacements: object):
        self._template, self._values = template, replacements

    def __str__(self):
        return self.worded(lambda name, value: f"`{name}={value}`" if value else f"`{name}`")

    def worded(self, spelled):
        """The text with each argument as the function `spelled` of its name and value has it."""
        return _Formatter(spelled).format(self._template, *self._values)


class _Argument(Naming):
    """The `Naming` of one argument, with any value."""

    def worded(self, spelled):
        return spelled(self._template, *(self._values or (None,)))


def argument(name, value=None):
    """The `Naming` of an argument whose name, or value, is a variable."""
    return _Argument(name) if value is None else _Argument(name, str(value))


def arguments(names, between=", "):
    """The `Naming` of several arguments."""
    return Naming(between.join(f"{{{name}}}" for name in names))


class _Formatter(string.Formatter):
    def __init__(self, spelled):
        self._spelled = spelled

    def get_field(self, field_name, args, kwargs):
        if not field_name.isdigit():
            name, _, value = field_name.partition("=")
            return self._spelled(name, value or None), None
        value = args[int(field_name)]
        is_named = isinstance(value, Naming | InputError)
        return value.worded(self._spelled) if is_named else value, None


class InputError(ValueError):
    """Something that the user passed is invalid: a file, a flag, a folder.

    The message is one sentence: what is wrong, where (file and line if there is one) and what
    was expected. The command line prints it and exits with 2; a notebook shows it without the
    traceback.
    """

    def __init__(self, message: str | Naming = ""):
        super().__init__(str(message))
        self._message = message

    @classmethod
    def naming(cls, template: str, *replacements: object) -> Self:
        """An error whose message is a `Naming`."""
        return cls(Naming(template, *replacements))

    def worded(self, spelled: Callable[[str], str]) -> str:
        """The message, with arguments as `Naming.worded` has them."""
        message = self._message
        return message.worded(spelled) if isinstance(message, Naming) else str(self)

    def _render_traceback_(self):
        """IPython's hook: the lines to show in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class InputWarning(UserWarning):
    """Something that the user passed is unusual and is used all the same: a note of one line.

    The command line prints each once, to standard error.
    """


def warn_user(message):
    """An `InputWarning` at the user's own line: the first caller outside of installed packages."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_installed(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, InputWarning, stacklevel=level)


def _is_installed(path):
    return path.startswith(_LIBRARY) or not _INSTALLED.isdisjoint(Path(path).parts)


def reason_of(error):
    """Returns the first line of another library's error, for the middle of a sentence.

    Without the names of nodes that TensorFlow puts around it.
    """
    lines = str(getattr(error, "message", None) or error).splitlines() or [type(error).__name__]
    return re.sub(r"\{\{.*?\}\} | \[Op:.*", "", lines[0])[:200].rstrip(".:")


@contextlib.contextmanager
def damaged(path, advice):
    """Turns the errors of code that reads the content of a file of ours into `InputError`s.

    Args:
        path: the file, which has lost a key, or has another value there.
        advice: a sentence that says what to do.
    """
    expected = (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError)
    with input_errors(
        lambda error: (
            f"{path} is damaged ({reason_of(error)}). {advice}"
            if isinstance(error, expected)
            else None
        )
    ):
        yield


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
