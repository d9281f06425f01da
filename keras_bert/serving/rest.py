"""HTTP: the REST interface of TensorFlow Serving over `ServedModel`s, and the page to try models.

The page uses the REST interface as other clients do; only what that lacks is under /try.
"""

import asyncio
import contextlib
import json
from pathlib import Path

import numpy as np
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keras_bert.base.errors import InputError
from keras_bert.inference.embed import open_model
from keras_bert.pictures.tokens import attention_reader
from keras_bert.serving import tensors
from keras_bert.serving.bounds import reject_other_sites
from keras_bert.serving.errors import HTTP_STATUS, RequestError
from keras_bert.serving.model_version import model_named

_MODELS = ("/v1/models/{name:model}/versions/{version:version}", "/v1/models/{name:model}")
_METRICS = "/monitoring/prometheus/metrics"
_PAGE_FILES = Path(__file__).parent / "page_files"
_VECTOR = "sentence"  # the output of an exported encoder with one vector per text


class _Model(StringConvertor):
    regex = "[^/:]+"


class _Version(IntegerConvertor):
    regex = "[0-9]{1,19}"  # at most 64 bits


register_url_convertor("model", _Model())
register_url_convertor("version", _Version())


def http_application(models, settings, host_names):
    """The Starlette application of a server.

    Args:
        models: the `ServedModel`s by name.
        settings: `ServeSettings`; `InputError` if `attention` is not a model folder.
        host_names: see `bounds.host_names`.

    `state.unanswered` is the number of requests that were not answered when the server stopped.
    """
    routes = [
        *_routes(":predict", _predict, "POST"),
        *_routes(":classify", _no_method, "POST"),
        *_routes(":regress", _no_method, "POST"),
        *_routes("/metadata", _metadata, "GET"),
        *_routes("", _status, "GET"),
        Route(_METRICS, _no_metrics, methods=["GET"]),
        Route("/try/models", _page_models, methods=["GET"]),
        Route("/try/vectors", _page_vectors, methods=["POST"]),
        Route("/try/attention", _page_attention, methods=["POST"]),
        Mount("/", StaticFiles(directory=_PAGE_FILES, html=True)),
    ]
    application = Starlette(
        routes=routes,
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=host_names, www_redirect=False),
            Middleware(reject_other_sites, host_names=host_names),
        ],
        exception_handlers={RequestError: _rejected, HTTPException: _http_error, 500: _failed},
        max_body_size=settings.max_body,
    )
    state = application.state
    state.models, state.timeout, state.max_batch = models, settings.timeout, settings.max_batch
    state.unanswered = 0
    state.read_attention = (
        None if settings.attention is None else attention_reader(*open_model(settings.attention))
    )
    return application


def _routes(ending, endpoint, method):
    return [Route(path + ending, endpoint, methods=[method]) for path in _MODELS]


async def _predict(request):
    asked = await _read_object(request)
    model, number = _model_of(request)
    async with _time_limit(request):
        form, outputs = await _compute(request, model, number, asked)
        body = await run_in_threadpool(tensors.write_outputs, outputs, form)
    return Response(body, media_type="application/json")


async def _no_method(request):
    raise RequestError("Exports have no signature with this method_name. Use :predict.")


async def _metadata(request):
    model, number = _model_of(request)
    version = model.version(number)
    spec = {"name": model.name, "signature_name": "", "version": str(version.number)}
    signatures = {name: _json_of(definition) for name, definition in version.signature_defs.items()}
    metadata = {"signature_def": {"signature_def": signatures}}
    return _indented({"model_spec": spec, "metadata": metadata})


async def _status(request):
    model, number = _model_of(request)
    return _indented(model.status(number))


async def _no_metrics(request):
    raise RequestError("Metrics were removed. Use TensorFlow Serving, which has them.", "NOT_FOUND")


async def _page_models(request):
    """The names of the models, and the number of texts to send in one request."""
    state = request.app.state
    names, batch = sorted(state.models), min(32, state.max_batch)
    has_attention = state.read_attention is not None
    return JSONResponse({"models": names, "attention": has_attention, "batch": batch})


async def _page_vectors(request):
    """{model, texts} -> vectors of length 1, one per text.

    The REST interface would also return the vectors of all tokens, a hundred times as many numbers.
    """
    asked = await _read_object(request)
    name, texts = asked.get("model"), asked.get("texts")
    if not (isinstance(name, str) and isinstance(texts, list)):
        raise RequestError("Pass 'model', a name, and 'texts', a list of strings.")
    model = model_named(request.app.state.models, name)
    async with _time_limit(request):
        _, outputs = await _compute(request, model, None, {tensors.ROWS: texts})
    if _VECTOR not in outputs:
        raise RequestError(f"The model {name} has no output {_VECTOR!r}, the vector of a text.")
    vectors = outputs[_VECTOR].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return JSONResponse({"vectors": _rounded(vectors / np.maximum(lengths, 1e-12), 5)})


async def _page_attention(request):
    """{text} -> tokens (S), and attention (L, N, S, S): layer, head, from, to."""
    read = request.app.state.read_attention
    if read is None:
        raise RequestError("The server was started without --attention.", "NOT_FOUND")
    text = (await _read_object(request)).get("text")
    if not isinstance(text, str):
        raise RequestError("Pass 'text', a string.")
    tensors.utf8_of("text", text)
    try:
        async with _time_limit(request):
            tokens, weights = await run_in_threadpool(read, text)
    except InputError as error:
        raise RequestError(str(error)) from None
    return JSONResponse({"tokens": tokens, "attention": _rounded(weights, 4)})


async def _read_object(request):
    """The object in a request's body.

    Raises `RequestError` if it is not one, `HTTPException` (408) if it takes too long to arrive.
    """
    late = f"The request took longer than {request.app.state.timeout:g} s to arrive."
    async with _time_limit(request, HTTPException(408, late, {"connection": "close"})):
        body = await request.body()
    return await run_in_threadpool(tensors.read_object, body)


async def _compute(request, model, number, asked):
    """Parses the object of a request and computes its outputs: (form, arrays by name)."""
    signature = tensors.read_signature(asked)
    version = model.version(number)
    infos = version.signature_def(signature).inputs
    max_batch = request.app.state.max_batch
    form, inputs = await run_in_threadpool(tensors.read_inputs, asked, infos, max_batch=max_batch)
    return form, await model.compute(version, signature, inputs)


@contextlib.asynccontextmanager
async def _time_limit(request, error=None):
    """A context that raises an error after `timeout`, by default a `RequestError`."""
    state = request.app.state
    try:
        async with asyncio.timeout(state.timeout):
            yield
    except TimeoutError:
        late = f"There was no response within {state.timeout:g} s."
        raise error or RequestError(late, "DEADLINE_EXCEEDED") from None
    except asyncio.CancelledError:  # by uvicorn, because the server stops
        state.unanswered += 1
        message = "The server was stopped before it could answer the request."
        raise RequestError(message, "UNAVAILABLE") from None


def _model_of(request):
    """(the `ServedModel`, the number of the version or None) in a path."""
    parameters = request.path_params
    model = model_named(request.app.state.models, parameters["name"])
    return model, parameters.get("version")


async def _rejected(request, error):
    return JSONResponse({"error": error.message}, HTTP_STATUS[error.code])


async def _http_error(request, error):
    path, status, message = request.url.path, error.status_code, error.detail
    if status in (404, 405):
        message = f"Malformed request: {request.method} {path}"
        if path.startswith("/v1/"):
            status = 400  # TensorFlow Serving's status for all unknown paths there
    return JSONResponse({"error": message}, status, error.headers)


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
