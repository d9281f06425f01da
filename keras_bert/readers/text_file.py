"""The lines of a text file, each with the place where it stands.

A line ends at a line feed (with or without a carriage return before it) and nowhere else: U+2028
and the like stay in the text.
"""

import codecs
import contextlib
import sys
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json

STANDARD_INPUT = "-"
# A whole SQuAD may stand in one; a file without line ends must not fill the memory.
_LONGEST_LINE = 256 << 20


class TextFile:
    """A file, a pipe or standard input (`-`), opened; what reads a format is made of it.

    Attributes: `name`, the path, or "standard input"; every error begins with it.

    Raises:
        InputError: the file is missing or may not be read.
    """

    def __init__(self, path):
        self._closer = contextlib.ExitStack()
        self.name, self._stream = self._open(path)

    @contextlib.contextmanager
    def closed_on_error(self):
        """A context that closes the file when it is left by an exception."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._closer)
            yield
            stack.pop_all()

    def error(self, line, message):
        """The InputError that names this file and the line."""
        return InputError(f"{self.name}, line {line}: {message}")

    def _json_object(self, number, line):
        """The object of a line of JSON Lines, a dictionary; InputError where it is none."""
        try:
            row = parse_json(line)
        except NotJson as error:
            raise self.error(
                number, f"not JSON ({error}); JSON Lines have one object a line."
            ) from None
        if not isinstance(row, dict):
            raise self.error(number, "not a JSON object; write it as {…} on one line.")
        return row

    def _open(self, path):
        if str(path) == STANDARD_INPUT:
            return "standard input", sys.stdin.buffer
        path = Path(path)
        try:
            return str(path), self._closer.enter_context(path.open("rb"))
        except FileNotFoundError:
            raise InputError(f"{path} does not exist; give the path of a text file.") from None
        except IsADirectoryError:
            raise InputError(f"{path} is a folder; give the path of a text file.") from None
        except PermissionError:
            raise InputError(f"{path} may not be read by this user.") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None

    def _lines(self):
        """Yields (line number from 1, text without line end); InputError at one that is no text."""
        lines = iter(lambda: self._stream.readline(_LONGEST_LINE + 1), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) > _LONGEST_LINE:
                raise self.error(
                    number, f"more than {_LONGEST_LINE >> 20} MiB without a line end are too many."
                )
            if number == 1:
                if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise self.error(number, "this is UTF-16; convert the file to UTF-8.")
                line = line.removeprefix(codecs.BOM_UTF8)
            if b"\0" in line:
                raise self.error(number, "holds a NUL byte; this is not a text file.")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise self.error(
                    number, f"byte {error.start + 1} is not UTF-8; convert the file to UTF-8."
                ) from None
            yield number, text.removesuffix("\n").removesuffix("\r")
