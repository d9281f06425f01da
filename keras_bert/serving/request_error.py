"""Why a request has no answer, in the words that REST and gRPC share."""

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted

# The codes of google.rpc.Code that occur here, and the status that each has in REST.
HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class RequestError(Exception):
    """One request cannot be answered; others can.

    Attributes:
        code: a key of HTTP_STATUS.
        message: a sentence for whoever asked.
    """

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


class ServerError(InputError):
    """A server cannot be reached, or refused a request; the message says which and why.

    `code` is a name of google.rpc.Code, such as NOT_FOUND or UNAVAILABLE.
    """

    def __init__(self, message, *, code):
        super().__init__(message)
        self.code = code


def wrong_count(server, answers, examples):
    """The error of a server that answered more or fewer examples than it was asked."""
    return ServerError(
        f"{server} does not answer as TensorFlow Serving does: expected "
        f"{counted(examples, 'prediction')}, received {answers:,}.",
        code="INTERNAL",
    )
