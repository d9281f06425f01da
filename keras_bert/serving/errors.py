"""The error of a request, with the codes that REST and gRPC share, and of a missing package."""

import contextlib

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted

# The codes of google.rpc.Code that occur here -> the HTTP status of each in REST.
HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_PACKAGES = ("grpc", "requests", "starlette", "tensorflow_serving", "uvicorn")


class ServerError(InputError):
    """A server cannot be reached or rejects a request.

    `code` is a name of google.rpc.Code, such as NOT_FOUND or UNAVAILABLE; HTTP_STATUS has those of
    the development server.
    """

    def __init__(self, message, *, code="INVALID_ARGUMENT"):
        super().__init__(message)
        self.code = code


def unexpected_response(server, expected):
    return ServerError(
        f"{server} does not respond like TensorFlow Serving. Expected {expected}.", code="INTERNAL"
    )


def wrong_count(server, received, expected):
    """The `ServerError` for a wrong number of predictions."""
    predictions = counted(expected, "prediction")
    return unexpected_response(server, f"{predictions}, received {received:,}")


def unknown_signature(model, signature, signatures):
    return ServerError(
        f"The model {model} has no signature {signature}. Expected: {', '.join(signatures)}.",
        code="INVALID_ARGUMENT",
    )


@contextlib.contextmanager
def needs_extra(feature):
    """Around imports: raises `InputError` if a package of the extra `serve` is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _PACKAGES:
            raise
        raise InputError(
            f"{feature} needs {missing}, which is not installed. Run: "
            "pip install 'keras-bert-toolkit[serve]'."
        ) from None
