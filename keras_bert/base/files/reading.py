"""Reading files that somebody else wrote: small ones whole, no pipe without a writer, JSON."""

import json
import os
import re
import stat

from keras_bert.base.errors import InputError

_LARGEST = 256 << 20


def read_small(path):
    """The bytes of a file that should be small.

    Raises:
        InputError: it holds more than 256 MiB or has no end (`/dev/zero`), and no more is read; or
            it is a named pipe that no process writes to, which is not waited for.
        OSError: it cannot be opened or read.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        data = file.read(_LARGEST + 1)
        if not data and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise InputError(f"{path} is a pipe that nothing is written to, not a file.")
    if len(data) > _LARGEST:
        raise InputError(
            f"{path} holds more than {_LARGEST >> 20} MiB, which no file of its kind does."
        )
    return data


def check_regular(path):
    """Raises `InputError` for a pipe, socket or device, which a library would wait for.

    Whoever opens the path reports one that is missing or a folder.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path} is a pipe or a device. A file was expected.")


def _open_at_once(path, flags):
    """As `os.open`, without waiting for a pipe's writer."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)  # for what a writer that is there has yet to write
    return descriptor


# The escapes of a JSON text: a pair of surrogates, half of one (which is the group), any other.
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u([dD][89a-fA-F]\w\w)|.)", re.DOTALL
)
_TYPE_NAMES = {list: "a list", str: "a text", bool: "true or false", int: "a number"}


class NotJson(ValueError):
    """A text cannot be read as JSON. `line` is where, from 1; None where it is the whole."""

    def __init__(self, message, *, line=None):
        super().__init__(message)
        self.line = line


def parse_json(text, *, parse_constant=None):
    """The value of a JSON text (str, or bytes in UTF-8).

    `parse_constant` is a function of "NaN", "Infinity" and "-Infinity", which are not JSON; without
    it they are floats.

    Raises:
        NotJson: the text is not JSON, or Python cannot read it: nested too deep for its stack, or a
            number of more than 4,300 digits.
    """
    try:
        return json.loads(text, parse_constant=parse_constant)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, line=error.lineno) from None
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start + 1} is not UTF-8") from None
    except RecursionError:
        raise NotJson("it is nested too deep") from None
    except ValueError:
        raise NotJson("it holds a number of thousands of digits") from None


def read_json(path):
    """The object in a JSON file.

    Raises:
        InputError: the file is missing or cannot be read, is not UTF-8, is not JSON (with the
            line) or not an object, or holds a text that is not Unicode.
    """
    try:
        text = read_small(path).decode("utf-8")
        values = parse_json(text)
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder. A JSON file was expected.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}).") from error
    except NotJson as error:
        position = f"{path}, line {error.line}" if error.line else str(path)
        raise InputError(f"{position}: this is not JSON ({error}).") from error
    check_object(values, source=path)
    half = next((match[1] for match in _ESCAPES.finditer(text) if match[1]), None)
    if half is not None:  # which JSON can write, and UTF-8 cannot
        raise InputError(
            f"{path} contains half of a surrogate pair (\\u{half}), which is not a character."
        )
    return values


def check_object(values, *, source):
    """Raises InputError unless the value of a JSON text is an object; `source` names the file."""
    if not isinstance(values, dict):
        type_name = "null" if values is None else _TYPE_NAMES.get(type(values), "a number")
        raise InputError(f"{source} should hold a JSON object, not {type_name}.")
