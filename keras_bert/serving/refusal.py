"""Why a request has no answer, in the words that REST and gRPC share."""

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


class Refusal(Exception):
    """One request cannot be answered; others can.

    Attributes:
        code: a key of HTTP_STATUS.
        message: a sentence for whoever asked.
    """

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message
