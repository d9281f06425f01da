"""HTTP: the REST interface of TensorFlow Serving over `ServedModel`s, and the page to try models.

The page uses the REST interface as other clients do; only what that lacks is under /try.
"""

import asyncio
import json
from pathlib import Path

import numpy as np
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keras_bert.base.errors import InputError
from keras_bert.inference.embed import open_model
from keras_bert.inference.table_files import as_json
from keras_bert.pictures.texts import project
from keras_bert.pictures.tokens import attention_reader
from keras_bert.search.vectors import most_similar
from keras_bert.serving import tensors
from keras_bert.serving.bounds import reject_other_sites
from keras_bert.serving.errors import HTTP_STATUS, ServerError
from keras_bert.serving.model_version import model_named
from keras_bert.tasks.text_embedding.metrics import unit

_MODEL = "/v1/models/{name:model}{number:version}"
_PAGE_FILES = Path(__file__).parent / "page_files"
# The outputs with one vector per text, of an exported text embedder and of an encoder.
_VECTORS = ("embedding", "sentence")
_MOST_ON_MAP, _NEAREST, _VECTORS_KEPT = 2000, 10, 20_000  # texts


class _Model(StringConvertor):
    regex = "[^/:]+"


class _Version(Convertor):
    regex = "(/versions/[0-9]{1,19})?"  # at most 64 bits

    def convert(self, value):
        return int(value.removeprefix("/versions/")) if value else None


register_url_convertor("model", _Model())
register_url_convertor("version", _Version())


def http_application(models, indexes, settings, host_names):
    """The Starlette application of a server.

    Args:
        models: the `ServedModel`s by name.
        indexes: the `ServedIndex`es by name.
        settings: `ServeSettings`; `InputError` if `attention` is not a model folder.
        host_names: see `bounds.host_names`.

    `state.unanswered` is the number of requests that were not answered when the server stopped.
    """
    no_method = _rejecting("Exports have no signature with this method_name. Use :predict.")
    no_metrics = "Metrics were removed. Use TensorFlow Serving, which has them."
    routes = [
        Route(f"{_MODEL}:predict", _predict, methods=["POST"]),
        Route(f"{_MODEL}:classify", no_method, methods=["POST"]),
        Route(f"{_MODEL}:regress", no_method, methods=["POST"]),
        Route(f"{_MODEL}/metadata", _metadata),
        Route(_MODEL, _status),
        Route("/v1/indexes/{name:model}:search", _search, methods=["POST"]),
        Route("/v1/indexes/{name:model}", _index),
        Route("/monitoring/prometheus/metrics", _rejecting(no_metrics, "NOT_FOUND")),
        Route("/try/models", _page_models),
        Route("/try/vectors", _page_vectors, methods=["POST"]),
        Route("/try/nearest", _page_nearest, methods=["POST"]),
        Route("/try/map", _page_map, methods=["POST"]),
        Route("/try/attention", _page_attention, methods=["POST"]),
        Mount("/", StaticFiles(directory=_PAGE_FILES, html=True)),
    ]
    application = Starlette(
        routes=routes,
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=host_names, www_redirect=False),
            Middleware(reject_other_sites, host_names=host_names),
        ],
        exception_handlers={InputError: _rejected, HTTPException: _http_error, 500: _failed},
        max_body_size=settings.max_body,
    )
    state = application.state
    state.models, state.timeout, state.max_batch = models, settings.timeout, settings.max_batch
    state.unanswered, state.indexes = 0, indexes
    state.vectors = {}  # (model, version, text) -> float32 (D,), the last used last
    state.read_attention = (
        None if settings.attention is None else attention_reader(*open_model(settings.attention))
    )
    return application


def _rejecting(message, code="INVALID_ARGUMENT"):
    async def reject(request):
        raise ServerError(message, code=code)

    return reject


def _post(endpoint):
    """`endpoint(request, asked)`, which takes the object in a body, within the time limits."""

    async def timed(request):
        state = request.app.state
        late = f"The request took longer than {state.timeout:g} s to arrive."
        late = HTTPException(408, late, {"connection": "close"})
        try:
            async with asyncio.timeout(state.timeout):
                body = await request.body()
            late = f"There was no response within {state.timeout:g} s."
            late = ServerError(late, code="DEADLINE_EXCEEDED")
            async with asyncio.timeout(state.timeout):
                asked = await run_in_threadpool(tensors.read_object, body)
                return await endpoint(request, asked)
        except TimeoutError:
            raise late from None
        except asyncio.CancelledError:  # by uvicorn, because the server stops
            state.unanswered += 1
            message = "The server was stopped before it could answer the request."
            raise ServerError(message, code="UNAVAILABLE") from None

    return timed


@_post
async def _predict(request, asked):
    form, outputs = await _compute(request, asked, **request.path_params)
    body = await run_in_threadpool(tensors.write_outputs, outputs, form)
    return Response(body, media_type="application/json")


async def _metadata(request):
    name, number = request.path_params["name"], request.path_params["number"]
    version = model_named(request.app.state.models, name).version(number)
    spec = {"name": name, "signature_name": "", "version": str(version.number)}
    signatures = {name: _json_of(definition) for name, definition in version.signature_defs.items()}
    metadata = {"signature_def": {"signature_def": signatures}}
    return _indented({"model_spec": spec, "metadata": metadata})


async def _status(request):
    name, number = request.path_params["name"], request.path_params["number"]
    return _indented(model_named(request.app.state.models, name).status(number))


@_post
async def _search(request, asked):
    index, most = _index_named(request), request.app.state.max_batch
    found = await run_in_threadpool(index.search, asked, max_batch=most)
    body = await run_in_threadpool(json.dumps, as_json(found), ensure_ascii=False)
    return Response(body, media_type="application/json")


async def _index(request):
    return _indented(_index_named(request).describe())


def _index_named(request):
    indexes, name = request.app.state.indexes, request.path_params["name"]
    if name not in indexes:
        raise ServerError(f"The server has no index called {name!r}.", code="NOT_FOUND")
    return indexes[name]


async def _page_models(request):
    """The names of the models, the indexes, and the number of texts to send in one request."""
    state = request.app.state
    names, batch = sorted(state.models), min(32, state.max_batch)
    has_attention = state.read_attention is not None
    indexes = [index.describe() for index in state.indexes.values()]
    return JSONResponse(
        {"models": names, "indexes": indexes, "attention": has_attention, "batch": batch}
    )


@_post
async def _page_vectors(request, asked):
    """{model, texts} -> {}: computes the vectors of texts, for `_page_nearest` and `_page_map`.

    The page sends a batch at a time, to show how many are read, and within the time limit.
    """
    await _vectors(request, *_model_and_texts(asked))
    return JSONResponse({})


@_post
async def _page_nearest(request, asked):
    """{model, text, texts} -> {nearest: [[number of a text, cosine], ...]}, the ten nearest."""
    name, texts = _model_and_texts(asked)
    text = asked.get("text")
    if not isinstance(text, str):
        raise ServerError("Pass 'text', a string.")
    vectors = unit(await _vectors(request, name, [text, *texts]))
    best = await run_in_threadpool(most_similar, vectors[:1], [vectors[1:]], top_k=_NEAREST)
    scores = _rounded(best.scores[0], 5)
    return JSONResponse({"nearest": list(zip(best.rows[0].tolist(), scores, strict=True))})


@_post
async def _page_map(request, asked):
    """{model, texts} -> points [N, 2] in the plane of their principal components, fractions [2].

    The fractions are those of the variance that the two components have.
    """
    name, texts = _model_and_texts(asked)
    if not 2 <= len(texts) <= _MOST_ON_MAP:
        raise ServerError(
            f"A map has 2 to {_MOST_ON_MAP:,} different texts. Received: {len(texts):,}."
        )
    vectors = await _vectors(request, name, texts)
    points, fractions = await run_in_threadpool(project, vectors.astype(np.float64))
    return JSONResponse({"points": _rounded(points, 5), "fractions": _rounded(fractions, 4)})


def _model_and_texts(asked):
    name, texts = asked.get("model"), asked.get("texts")
    is_list = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    if not (isinstance(name, str) and is_list and texts):
        raise ServerError("Pass 'model', a name, and 'texts', a list of strings.")
    return name, texts


async def _vectors(request, name, texts):
    """The vectors of texts by a model, float32 (N, D); the last ones are kept for later requests.

    The REST interface would also return the vectors of all tokens, a hundred times as many numbers.
    """
    state = request.app.state
    number = model_named(state.models, name).version(None).number
    kept = {text: state.vectors.pop((name, number, text), None) for text in texts}
    missing = [text for text, vector in kept.items() if vector is None]
    batch = min(32, state.max_batch)
    for first in range(0, len(missing), batch):
        some = missing[first : first + batch]
        kept.update(zip(some, await _computed_vectors(request, name, number, some), strict=True))
    state.vectors.update({(name, number, text): vector for text, vector in kept.items()})
    while len(state.vectors) > _VECTORS_KEPT:
        del state.vectors[next(iter(state.vectors))]
    return np.stack([kept[text] for text in texts])


async def _computed_vectors(request, name, number, texts):
    _, outputs = await _compute(request, {tensors.ROWS: texts}, name, number)
    found = next((output for output in _VECTORS if output in outputs), None)
    if found is None:
        expected = " or ".join(map(repr, _VECTORS))
        raise ServerError(f"The model {name} has no output {expected}, the vector of a text.")
    vectors = outputs[found].astype(np.float32)
    if not np.isfinite(vectors).all():
        raise _not_finite()
    return vectors


@_post
async def _page_attention(request, asked):
    """{text} -> tokens (S), and attention (L, N, S, S): layer, head, from, to."""
    read, text = request.app.state.read_attention, asked.get("text")
    if read is None:
        raise ServerError("The server was started without --attention.", code="NOT_FOUND")
    if not isinstance(text, str):
        raise ServerError("Pass 'text', a string.")
    tensors.utf8_of("text", text)
    tokens, weights = await run_in_threadpool(read, text)
    return JSONResponse({"tokens": tokens, "attention": _rounded(weights, 4)})


async def _compute(request, asked, name, number=None):
    """The outputs of a model for the object of a request: (form, arrays by name)."""
    state = request.app.state
    model = model_named(state.models, name)
    signature = tensors.read_signature(asked)
    version = model.version(number)
    form, inputs = await run_in_threadpool(
        tensors.read_inputs, asked, version.inputs(signature), max_batch=state.max_batch
    )
    return form, await model.compute(version, signature, inputs)


async def _rejected(request, error):
    code = getattr(error, "code", "INVALID_ARGUMENT")
    return JSONResponse({"error": str(error)}, HTTP_STATUS[code])


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


def _not_finite():
    return ServerError("The model's outputs are not finite (NaN or infinite).", code="INTERNAL")


def _rounded(array, decimals):
    if not np.isfinite(array).all():
        raise _not_finite()
    return np.round(array, decimals).tolist()
