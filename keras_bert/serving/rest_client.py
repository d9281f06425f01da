"""A client of TensorFlow Serving's REST interface. Needs no TensorFlow."""

import json
from urllib.parse import quote

import requests

from keras_bert.serving.client_errors import ServerError
from keras_bert.serving.refusal import HTTP_STATUS

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
        found = answer["metadata"]["signature_def"]["signature_def"]
        if signature not in found:
            raise ServerError(
                f"The model {model} has no signature {signature}; it has {', '.join(found)}.",
                code="INVALID_ARGUMENT",
            )
        return {part: _described(found[signature][part]) for part in ("inputs", "outputs")}

    def versions(self, model):
        """[(version, state)], such as (3, "AVAILABLE")."""
        found = self._ask("GET", _path(model, None))["model_version_status"]
        return [(int(status["version"]), status["state"]) for status in found]

    def predict(self, model, examples, *, signature="serving_default", version=None):
        """The answers: a dictionary of outputs an example.

        `examples` are dictionaries of inputs by name.
        """
        asked = {"signature_name": signature, "instances": list(examples)}
        answer = self._ask("POST", f"{_path(model, version)}:predict", asked)
        rows = answer["predictions"]
        if rows and not isinstance(rows[0], dict):  # one output, whose name is left out
            (name,) = self.signature(model, signature, version=version)["outputs"]
            rows = [{name: row} for row in rows]
        return rows

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
            answer = response.json()
        except ValueError:
            answer = None
        if response.ok and isinstance(answer, dict):
            return answer
        said = answer.get("error") if isinstance(answer, dict) else response.text[:200]
        status = response.status_code
        raise ServerError(
            f"{self._url} refused ({status} {response.reason}): {said}",
            code=_MORE_CODES.get(status) or _CODES.get(status, "INTERNAL"),
        )


def _path(model, version):
    path = f"/v1/models/{quote(model, safe='')}"
    return path if version is None else f"{path}/versions/{version}"


def _described(tensors):
    return {
        name: {
            "dtype": info["dtype"],
            "shape": [int(dim["size"]) for dim in info["tensor_shape"]["dim"]],
        }
        for name, info in sorted(tensors.items())
    }


def _reason(error):
    """The innermost cause of an error of `requests`, which quotes all of them."""
    while error.__context__ is not None or error.args and isinstance(error.args[0], Exception):
        error = error.__context__ or error.args[0]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
