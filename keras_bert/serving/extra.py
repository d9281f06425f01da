"""What the server and the client need beyond what every installation has."""

import contextlib

from keras_bert.base.errors import InputError

_BROUGHT = ("grpc", "requests", "starlette", "tensorflow_serving", "uvicorn")


@contextlib.contextmanager
def needs_extra(who):
    """Around imports: `InputError` where one is missing that the extra `serve` brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _BROUGHT:
            raise
        raise InputError(
            f"{who} needs {missing}, which is not installed; "
            "pip install 'keras-bert-toolkit[serve]' brings it."
        ) from None
