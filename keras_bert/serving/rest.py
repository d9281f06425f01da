"""HTTP: the REST interface of TensorFlow Serving over a `ModelServer`, and the page to try models.

The page uses the REST interface as other clients do; only what that lacks is under /try.
"""

import asyncio
import functools
import json
from pathlib import Path

import numpy as np
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, StringConvertor, register_url_convertor
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from tensorflow_serving.apis import get_model_metadata_pb2

from keras_bert.base.errors import InputError
from keras_bert.inference.embed import open_model
from keras_bert.pictures.tokens import attention_reader
from keras_bert.serving import tensors
from keras_bert.serving.errors import HTTP_STATUS, RequestError
from keras_bert.serving.model_version import SIGNATURES

METRICS_PATH = "/monitoring/prometheus/metrics"
_MODELS = ("/v1/models/{name:model}/versions/{version:version}", "/v1/models/{name:model}")
_PAGE_FILES = Path(__file__).parent / "page_files"
_VECTOR = "sentence"  # the output of an exported encoder with one vector per text


class _Model(StringConvertor):
    regex = "[^/:]+"


class _Version(IntegerConvertor):
    regex = "[0-9]{1,19}"  # at most 64 bits


register_url_convertor("model", _Model())
register_url_convertor("version", _Version())


def http_application(server, *, attention=None):
    """The ASGI application of a `ModelServer`.

    `attention` is the folder of the model whose attention the page shows; `InputError` if it is not
    a model folder.
    """
    routes = [
        *_routes(":predict", _predict, "POST"),
        *_routes(":classify", functools.partial(_reject_method, "classify"), "POST"),
        *_routes(":regress", functools.partial(_reject_method, "regress"), "POST"),
        *_routes("/metadata", _metadata, "GET"),
        *_routes("", _status, "GET"),
        Route(METRICS_PATH, _metrics, methods=["GET"]),
        Route("/try/models", _page_models, methods=["GET"]),
        Route("/try/vectors", _page_vectors, methods=["POST"]),
        Route("/try/attention", _page_attention, methods=["POST"]),
        Mount("/", StaticFiles(directory=_PAGE_FILES, html=True)),
    ]
    handlers = {RequestError: _rejected, 404: _malformed, 405: _malformed, 500: _failed}
    application = Starlette(routes=routes, exception_handlers=handlers)
    application.state.server = server
    application.state.read_attention = (
        None if attention is None else attention_reader(*open_model(attention))
    )
    return application


def _routes(ending, endpoint, method):
    return [Route(path + ending, endpoint, methods=[method]) for path in _MODELS]


def _model_of(request):
    """(the `ServedModel`, the number of the version or None) in a path."""
    parameters = request.path_params
    return request.app.state.server.model(parameters["name"]), parameters.get("version")


async def _predict(request):
    server, name = request.app.state.server, request.path_params["name"]
    async with server.request(name, entrypoint="REST"):
        asked = tensors.read_object(await request.body())
        form = None

        def read_inputs(infos):
            nonlocal form
            form, inputs = tensors.read_inputs(asked, infos)
            return inputs

        signature, number = tensors.read_signature(asked), request.path_params.get("version")
        _, outputs = await server.predict(name, number, signature, read_inputs)
        body = await asyncio.to_thread(tensors.write_outputs, outputs, form)
    return Response(body, media_type="application/json")


async def _reject_method(method, request):
    model, number = _model_of(request)
    version = model.version(number)
    asked = tensors.read_object(await request.body())
    version.reject_method(asked.get("signature_name", ""), method)


async def _metadata(request):
    model, number = _model_of(request)
    response = model.metadata(number)
    # As TensorFlow Serving's REST writes it: without the type of the protobuf `Any`.
    signatures = get_model_metadata_pb2.SignatureDefMap()
    response.metadata[SIGNATURES].Unpack(signatures)
    version = str(response.model_spec.version.value)
    spec = {"name": model.name, "signature_name": "", "version": version}
    return _indented({"model_spec": spec, "metadata": {SIGNATURES: _json_of(signatures)}})


async def _status(request):
    model, number = _model_of(request)
    return _indented(_json_of(model.status(number)))


async def _metrics(request):
    return PlainTextResponse(request.app.state.server.metrics.text())


async def _page_models(request):
    """The names of the models, and the number of texts to send in one request."""
    state = request.app.state
    names, batch = sorted(state.server.models), min(32, state.server.max_batch)
    has_attention = state.read_attention is not None
    return JSONResponse({"models": names, "attention": has_attention, "batch": batch})


async def _page_vectors(request):
    """{model, texts} -> vectors of length 1, one per text.

    The REST interface would also return the vectors of all tokens, a hundred times as many numbers.
    """
    server = request.app.state.server
    asked = tensors.read_object(await request.body())
    name, texts = asked.get("model"), asked.get("texts")
    if not (isinstance(name, str) and isinstance(texts, list)):
        raise RequestError("Pass 'model', a name, and 'texts', a list of strings.")

    def read_inputs(infos):
        return tensors.read_inputs({tensors.ROWS: texts}, infos)[1]

    async with server.request(name, entrypoint="REST"):
        _, outputs = await server.predict(name, None, "", read_inputs)
    if _VECTOR not in outputs:
        raise RequestError(f"The model {name} has no output {_VECTOR!r}, the vector of a text.")
    vectors = outputs[_VECTOR].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return JSONResponse({"vectors": _rounded(vectors / np.maximum(lengths, 1e-12), 5)})


async def _page_attention(request):
    """{text} -> tokens (S), and attention (L, N, S, S): layer, head, from, to."""
    server, read = request.app.state.server, request.app.state.read_attention
    if read is None:
        raise RequestError("The server was started without --attention.", "NOT_FOUND")
    text = tensors.read_object(await request.body()).get("text")
    if not isinstance(text, str):
        raise RequestError("Pass 'text', a string.")
    tensors.utf8_of("text", text)
    try:
        async with server.time_limit(f"There was no response within {server.timeout:g} s."):
            tokens, weights = await asyncio.to_thread(read, text)
    except InputError as error:
        raise RequestError(str(error)) from None
    return JSONResponse({"tokens": tokens, "attention": _rounded(weights, 4)})


async def _rejected(request, error):
    return JSONResponse({"error": error.message}, HTTP_STATUS[error.code])


async def _malformed(request, error):
    path = request.url.path
    message = f"Malformed request: {request.method} {path}"
    # TensorFlow Serving's status for all unknown paths there.
    return JSONResponse({"error": message}, 400 if path.startswith("/v1/") else error.status_code)


async def _failed(request, error):
    return JSONResponse({"error": f"The server failed: {type(error).__name__}"}, 500)


def _json_of(message):
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def _indented(value):
    return Response(json.dumps(value, indent=1), media_type="application/json")


def _rounded(array, decimals):
    if not np.isfinite(array).all():
        raise RequestError("The model's outputs are not finite (NaN or infinite).", "INTERNAL")
    return np.round(array, decimals).tolist()
