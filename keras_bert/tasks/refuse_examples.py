"""Examples, or a path, given to a method of Keras's that takes batches of rows."""

from os import PathLike

from keras_bert.base.errors import InputError


def refuse_examples(method, x, instead):
    """Raises `InputError` where `x` is a path, a list of examples, or a pair of one and its labels.

    Keras would print all of them. `method` and `instead` say what was called, and what to call.
    """
    if isinstance(x, list | tuple) and len(x):
        x = x[0]
        if isinstance(x, list | tuple | dict):
            x = next(iter(x.values() if isinstance(x, dict) else x), None)
    if isinstance(x, str | bytes | PathLike):
        raise InputError(f"`{method}` takes batches of rows, not texts or a path; {instead}.")
