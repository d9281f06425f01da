"""JSON that somebody else wrote: whatever is wrong with it is one kind of error."""

import json


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
        NotJson: it is none, or Python cannot read it: nested too deep for its stack, or a number
            of thousands of digits.
    """
    try:
        return json.loads(text, parse_constant=parse_constant)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, line=error.lineno) from None
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start + 1} is not UTF-8") from None
    except RecursionError:
        raise NotJson("it is nested too deep") from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise NotJson("it holds a number of thousands of digits") from None
