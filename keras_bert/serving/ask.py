"""`keras-bert ask`: a client of served models, over REST or gRPC."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes_of_model
from keras_bert.readers.sources import TextFile
from keras_bert.readers.tables import json_objects
from keras_bert.serving import AskSettings, ask_settings, given_names
from keras_bert.serving.errors import needs_extra

# Seconds; sockets and gRPC do not take much larger numbers.
_LONGEST = 1_000_000
_TABLES = {".csv", ".tsv", ".parquet", ".txt"}


@takes_of_model(AskSettings, ask_settings())
def ask(**settings) -> Iterator[dict[str, Any]]:
    """Yields the predictions of a served model: one dictionary per example, in order.

    The server is TensorFlow Serving (REST or gRPC) or `keras_bert.serve` (REST). A prediction has
    the outputs of the model's signature. If one of them is `lengths`, the number of words or spans,
    lists are cut to that length, without the padding to the other examples in the batch, and
    `lengths` is left out.

    With `metadata`, yields one dictionary: `versions`, and the `inputs` and `outputs` of the
    signature.

    Args:
        **settings: the fields of `AskSettings`, and the texts of an example.

    Raises:
        InputError: the address or an example is invalid, or (`ServerError`) the server cannot be
            reached or rejects a request; at the latest when that example is reached.
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
        while batch := list(itertools.islice(examples, settings.batch_size)):
            predictions = client.predict(
                settings.model, batch, signature=settings.signature, version=settings.version
            )
            yield from map(_without_padding, predictions)


def connect(url, *, timeout):
    """The `RestClient` or `GrpcClient` of an address."""
    timeout = min(timeout, _LONGEST)
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an incomplete IPv6 address
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
        f"Invalid address {url!r} of a server. Expected http://HOST:PORT for REST (the usual port "
        "is 8501) or grpc://HOST:PORT for gRPC (8500)."
    )


def _examples(settings):
    """An iterator over the examples, as dictionaries of inputs by name."""
    if settings.data is not None:
        if Path(settings.data).suffix in _TABLES:
            raise InputError(
                f"{settings.data} is a table, and a server takes JSON Lines: one object per line, "
                'such as {"text": "a text"}. `keras-bert predict` reads tables.'
            )
        return (example for _, example in json_objects(TextFile(settings.data)))
    texts = {name: getattr(settings, name) for name in given_names()}
    texts = {name: given for name, given in texts.items() if given is not None}
    return (dict(zip(texts, example, strict=True)) for example in zip(*texts.values(), strict=True))


def _without_padding(prediction):
    length = prediction.get("lengths")
    if not isinstance(length, int):
        return prediction
    return {
        name: value[:length] if isinstance(value, list) else value
        for name, value in prediction.items()
        if name != "lengths"
    }
