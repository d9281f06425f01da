"""The REST interface of TensorFlow Serving, over a `ModelServer`."""

import asyncio
import functools
import json

from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, StringConvertor, register_url_convertor
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from keras_bert.serving import model_protos, rest_json
from keras_bert.serving.request_error import HTTP_STATUS, RequestError

METRICS_PATH = "/monitoring/prometheus/metrics"
_MODELS = ("/v1/models/{name:model}/versions/{version:version}", "/v1/models/{name:model}")


class _Model(StringConvertor):
    regex = "[^/:]+"


class _Version(IntegerConvertor):
    regex = "[0-9]{1,19}"  # a longer one has no place in 64 bits


register_url_convertor("model", _Model())
register_url_convertor("version", _Version())


def rest_application(server, more_routes=()):
    """The ASGI application of a `ModelServer`; `more_routes` are Starlette's, behind its own."""

    def routes(ending, answer, method):
        endpoint = functools.partial(answer, server)
        return [Route(path + ending, endpoint, methods=[method]) for path in _MODELS]

    return Starlette(
        routes=[
            *routes(":predict", _predict, "POST"),
            *routes(":classify", functools.partial(_other_method, "classify"), "POST"),
            *routes(":regress", functools.partial(_other_method, "regress"), "POST"),
            *routes("/metadata", _metadata, "GET"),
            *routes("", _status, "GET"),
            Route(METRICS_PATH, functools.partial(_metrics, server), methods=["GET"]),
            *more_routes,
        ],
        exception_handlers={
            RequestError: _rejected,
            404: _malformed,
            405: _malformed,
            500: _broken,
        },
    )


async def _predict(server, request):
    name = request.path_params["name"]
    async with server.request(name, entrypoint="REST"):
        asked = rest_json.read_object(await request.body())
        form = None

        def read_inputs(infos):
            nonlocal form
            form, inputs = rest_json.read_inputs(asked, infos)
            return inputs

        signature = rest_json.read_signature(asked)
        number = request.path_params.get("version")
        _, outputs = await server.predict(name, number, signature, read_inputs)
        body = await asyncio.to_thread(rest_json.write_outputs, outputs, form)
    return Response(body, media_type="application/json")


async def _other_method(method, server, request):
    version = server.model(request.path_params["name"]).version(request.path_params.get("version"))
    asked = rest_json.read_object(await request.body())
    model_protos.check_method(version, asked.get("signature_name", ""), method)


async def _metadata(server, request):
    model = server.model(request.path_params["name"])
    return _pretty(model_protos.metadata_json(model, request.path_params.get("version")))


async def _status(server, request):
    model = server.model(request.path_params["name"])
    return _pretty(model_protos.status_json(model, request.path_params.get("version")))


async def _metrics(server, request):
    return PlainTextResponse(server.metrics.text())


async def _rejected(request, request_error):
    return JSONResponse({"error": request_error.message}, HTTP_STATUS[request_error.code])


async def _malformed(request, error):
    path = request.url.path
    message = f"Malformed request: {request.method} {path}"
    # TensorFlow Serving's own status of all that it does not know under this path.
    return JSONResponse({"error": message}, 400 if path.startswith("/v1/") else error.status_code)


async def _broken(request, error):
    return JSONResponse({"error": f"The server failed: {type(error).__name__}"}, 500)


def _pretty(value):
    return Response(json.dumps(value, indent=1), media_type="application/json")
