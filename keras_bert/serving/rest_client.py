"""A client of TensorFlow Serving's REST interface. Needs no TensorFlow."""

import json
from urllib.parse import quote

import requests

from keras_bert.base.files import NotJson, parse_json
from keras_bert.serving.request_error import HTTP_STATUS, ServerError, wrong_count

_CODES = {status: code for code, status in HTTP_STATUS.items()}
_MORE_CODES = {
    403: "PERMISSION_DENIED",
    408: "DEADLINE_EXCEEDED",
    413: "RESOURCE_EXHAUSTED",
    415: "INVALID_ARGUMENT",
}


class RestClient:
    """Asks the models of a server at `http://HOST:PORT` or `https://…`; a context manager.

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
        answer = self._ask("GET", f"{_path(model, version)}/metadata")
        found = self._part(answer, "metadata", "signature_def", "signature_def", kind=dict)
        if signature not in found:
            raise ServerError(
                f"The model {model} has no signature {signature}; it has {', '.join(found)}.",
                code="INVALID_ARGUMENT",
            )
        return {
            part: self._described(self._part(found, signature, part, kind=dict))
            for part in ("inputs", "outputs")
        }

    def versions(self, model):
        """[(version, state)], such as (3, "AVAILABLE")."""
        answer = self._ask("GET", _path(model, None))
        return [
            (self._integer(status, "version"), self._part(status, "state", kind=str))
            for status in self._part(answer, "model_version_status", kind=list)
        ]

    def predict(self, model, examples, *, signature="serving_default", version=None):
        """The answers: a dictionary of outputs an example.

        `examples` are dictionaries of inputs by name.
        """
        examples = list(examples)
        asked = {"signature_name": signature, "instances": examples}
        answer = self._ask("POST", f"{_path(model, version)}:predict", asked)
        rows = self._part(answer, "predictions", kind=list)
        if len(rows) != len(examples):
            raise wrong_count(self._url, len(rows), len(examples))
        named = [isinstance(row, dict) and list(row) != ["b64"] for row in rows]
        if all(named):
            return rows
        # Of one output the name is left out.
        names = list(self.signature(model, signature, version=version)["outputs"])
        if any(named) or len(names) != 1:
            raise self._odd(f"predictions with the outputs {', '.join(names)}")
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

    def _part(self, answer, *keys, kind):
        """What an answer holds under some keys. Raises `ServerError` where it is not a `kind`."""
        for key in keys:
            answer = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(answer, kind):
            called = {dict: "an object", list: "a list"}.get(kind, "a value")
            raise self._odd(f"{called} under {'.'.join(keys)}")
        return answer

    def _integer(self, answer, key):
        """A number of 64 bits, which protobuf's JSON writes as a string."""
        try:
            return int(self._part(answer, key, kind=str | int))
        except ValueError:
            raise self._odd(f"a whole number under {key}") from None

    def _odd(self, expected):
        return ServerError(
            f"{self._url} does not answer as TensorFlow Serving does: expected {expected}.",
            code="INTERNAL",
        )

    def _ask(self, method, path, asked=None):
        body = None if asked is None else json.dumps(asked).encode()
        headers = {"Content-Type": "application/json"}
        try:
            response = self._session.request(
                method, self._url + path, data=body, headers=headers, timeout=self._timeout
            )
        except requests.Timeout:
            raise ServerError(
                f"{self._url} gave no answer within {self._timeout:g} s.", code="DEADLINE_EXCEEDED"
            ) from None
        except requests.RequestException as error:
            raise ServerError(
                f"{self._url} cannot be reached: {_reason(error)}.", code="UNAVAILABLE"
            ) from None
        try:
            # TensorFlow Serving writes NaN and the infinities so, and `keras_bert.serve` as null.
            answer = parse_json(response.content, parse_constant=lambda name: None)
        except NotJson:
            answer = None
        if response.ok and not isinstance(answer, dict):
            raise self._odd("an object in JSON")
        if response.ok:
            return answer
        said = answer.get("error") if isinstance(answer, dict) else None
        said = " ".join((said if isinstance(said, str) else response.text[:200]).split())
        status = response.status_code
        raise ServerError(
            f"{self._url} refused ({status} {response.reason}): {said}",
            code=_MORE_CODES.get(status) or _CODES.get(status, "INTERNAL"),
        )


def _path(model, version):
    path = f"/v1/models/{quote(model, safe='')}"
    return path if version is None else f"{path}/versions/{version}"


def _reason(error):
    """The innermost cause of an error of `requests`, which quotes all of them."""
    while error.__context__ is not None or error.args and isinstance(error.args[0], Exception):
        error = error.__context__ or error.args[0]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
