"""The library's errors about bad input, for the tests' tables of (input, message)."""

import contextlib
import re

import pytest

from keras_bert.base.errors import InputError


@contextlib.contextmanager
def raises_input_error(message):
    """Expects an `InputError` of one line with this text in it; "..." stands for any text."""
    with pytest.raises(InputError) as error:
        yield error
    pattern = ".*".join(re.escape(part) for part in ["", *message.split("..."), ""])
    if not re.fullmatch(pattern, str(error.value)):
        pytest.fail(f"Expected a message with {message!r}. Received: {str(error.value)!r}")
