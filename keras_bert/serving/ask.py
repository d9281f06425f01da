"""`keras-bert ask`: a model that is served, asked over REST or gRPC."""

import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.readers.sources import TextFile
from keras_bert.serving.settings import ask_settings, given_names, needs_extra


class AskedExamples(TextFile):
    """The objects of a file of JSON Lines, as they stand there; to be gone through once.

    Raises `InputError` where the file cannot be read or a line is no object.
    """

    def __iter__(self):
        for _, example in self.json_objects(self.lines()):
            yield example


# Seconds; many more have no place in the numbers of sockets and of gRPC.
_LONGEST = 1_000_000


@takes(ask_settings())
def ask(**settings) -> Iterator[dict[str, Any]]:
    """Yields one dictionary an example, in order: what the model on the server says of it.

    The server is TensorFlow Serving or `keras_bert.serve`. An answer has the outputs of the model's
    signature. Where one of them is `lengths`, how many words or spans there are, lists of the
    example that are padded for the company it was computed in are cut to that length, and
    `lengths` is left out.

    With `metadata`, yields one dictionary: `versions`, and the `inputs` and `outputs` of the
    signature.

    Args:
        {settings}

    Raises:
        InputError: the address is none, an example is wrong, or (`ServerError`) the server cannot
            be reached or refuses; at the latest when that example is reached.
    """
    settings = ask_settings().of(settings)
    with connect(settings.url, timeout=settings.timeout) as client:
        if settings.metadata:
            signature = client.signature(
                settings.model, settings.signature, version=settings.version
            )
            yield {"versions": dict(client.versions(settings.model)), **signature}
            return
        examples = _examples(settings)
        while some := list(itertools.islice(examples, settings.batch_size)):
            answers = client.predict(
                settings.model, some, signature=settings.signature, version=settings.version
            )
            yield from map(_without_padding, answers)


def connect(url, *, timeout):
    """The `RestClient` or `GrpcClient` of an address."""
    timeout = min(timeout, _LONGEST)
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an address of IPv6 without its end
        parts = urlsplit("")
    if parts.scheme in ("http", "https") and parts.hostname:
        with needs_extra("The client"):
            from keras_bert.serving.rest_client import RestClient

        return RestClient(f"{parts.scheme}://{parts.netloc}{parts.path}", timeout=timeout)
    if parts.scheme == "grpc" and parts.hostname:
        with needs_extra("The client"):
            from keras_bert.serving.grpc_client import GrpcClient

        return GrpcClient(parts.netloc, timeout=timeout)
    raise InputError(
        f"{url!r} is no address of a server; write http://HOST:PORT for REST (8501 is usual), or "
        "grpc://HOST:PORT for gRPC (8500)."
    )


def _examples(settings):
    """The examples, as dictionaries of inputs by name."""
    given = {name: getattr(settings, name) for name in given_names()}
    given = {name: values for name, values in given.items() if values is not None}
    if given:
        yield from (dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True))
        return
    yield from AskedExamples(settings.data)


def _without_padding(answer):
    length = answer.get("lengths")
    if not isinstance(length, int):
        return answer
    return {
        name: value[:length] if isinstance(value, list) else value
        for name, value in answer.items()
        if name != "lengths"
    }
