"""What goes wrong between a client and a server, as the user is told."""

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted


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
