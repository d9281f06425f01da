"""A client of TensorFlow Serving's REST interface. Needs no TensorFlow."""

import json
from urllib.parse import quote

import requests

from keras_bert.base.files import NotJson, parse_json
from keras_bert.serving.errors import (
    HTTP_STATUS,
    ServerError,
    unexpected_response,
    unknown_signature,
    wrong_count,
)

_CODES = {
    **{status: code for code, status in HTTP_STATUS.items()},
    403: "PERMISSION_DENIED",
    408: "DEADLINE_EXCEEDED",
    413: "RESOURCE_EXHAUSTED",
    415: "INVALID_ARGUMENT",
}


class RestClient:
    """Sends requests to `http://HOST:PORT` or `https://…`; a context manager.

    Raises `ServerError` from every method.
    """

    def __init__(self, url, *, timeout):
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy between a machine and itself

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._session.close()

    def signature(self, model, signature, *, version=None):
        """{"inputs": {name: {"dtype": "DT_STRING", "shape": [-1]}}, "outputs": …}."""
        metadata = self._send("GET", f"{_path(model, version)}/metadata")
        signatures = self._part(metadata, "metadata", "signature_def", "signature_def", kind=dict)
        if signature not in signatures:
            raise unknown_signature(model, signature, signatures)
        return {
            part: self._described(self._part(signatures, signature, part, kind=dict))
            for part in ("inputs", "outputs")
        }

    def versions(self, model):
        """[(version, state)], such as (3, "AVAILABLE")."""
        response = self._send("GET", _path(model, None))
        return [
            (self._integer(status, "version"), self._part(status, "state", kind=str))
            for status in self._part(response, "model_version_status", kind=list)
        ]

    def predict(self, model, examples, *, signature="serving_default", version=None):
        """The predictions: one dictionary of outputs per example.

        `examples` are dictionaries of inputs by name.
        """
        examples = list(examples)
        body = {"signature_name": signature, "instances": examples}
        response = self._send("POST", f"{_path(model, version)}:predict", body)
        rows = self._part(response, "predictions", kind=list)
        if len(rows) != len(examples):
            raise wrong_count(self._url, len(rows), len(examples))
        named = [isinstance(row, dict) and list(row) != ["b64"] for row in rows]
        if all(named):
            return rows
        # The name of a single output is left out.
        names = list(self.signature(model, signature, version=version)["outputs"])
        if any(named) or len(names) != 1:
            expected = f"predictions with the outputs {', '.join(names)}"
            raise unexpected_response(self._url, expected)
        return [{names[0]: row} for row in rows]

    def _described(self, tensors):
        return {
            name: {
                "dtype": self._part(tensors, name, "dtype", kind=str),
                "shape": [
                    self._integer(dim, "size")
                    for dim in self._part(tensors, name, "tensor_shape", "dim", kind=list)
                ],
            }
            for name in sorted(tensors)
        }

    def _part(self, value, *keys, kind):
        """The value of a response under some keys. Raises `ServerError` if it is not a `kind`."""
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            kind_name = {dict: "an object", list: "a list"}.get(kind, "a value")
            raise unexpected_response(self._url, f"{kind_name} under {'.'.join(keys)}")
        return value

    def _integer(self, value, key):
        """A number of 64 bits, which protobuf's JSON writes as a string."""
        try:
            return int(self._part(value, key, kind=str | int))
        except ValueError:
            raise unexpected_response(self._url, f"a whole number under {key}") from None

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        try:
            response = self._session.request(
                method, self._url + path, data=data, headers=headers, timeout=self._timeout
            )
        except requests.Timeout:
            raise ServerError(
                f"{self._url} did not respond within {self._timeout:g} s.",
                code="DEADLINE_EXCEEDED",
            ) from None
        except requests.RequestException as error:
            raise ServerError(
                f"{self._url} cannot be reached: {_reason(error)}.", code="UNAVAILABLE"
            ) from None
        try:
            # TensorFlow Serving writes NaN and the infinities so, and `keras_bert.serve` as null.
            value = parse_json(response.content, parse_constant=lambda name: None)
        except NotJson:
            value = None
        if response.ok and not isinstance(value, dict):
            raise unexpected_response(self._url, "a JSON object")
        if response.ok:
            return value
        message = value.get("error") if isinstance(value, dict) else None
        message = " ".join((message if isinstance(message, str) else response.text[:200]).split())
        status = response.status_code
        raise ServerError(
            f"{self._url} rejected the request ({status} {response.reason}): "
            f"{message.rstrip('.')}.",
            code=_CODES.get(status, "INTERNAL"),
        )


def _path(model, version):
    path = f"/v1/models/{quote(model, safe='')}"
    return path if version is None else f"{path}/versions/{version}"


def _reason(error):
    """The innermost cause of an error of `requests`, which quotes all of them."""
    while error.__context__ is not None or error.args and isinstance(error.args[0], Exception):
        error = error.__context__ or error.args[0]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
