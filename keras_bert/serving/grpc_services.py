"""The gRPC interface of TensorFlow Serving, over a `ModelServer`."""

import asyncio
import functools

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_bert.serving import model_protos
from keras_bert.serving.inputs import array_of_proto, check_names
from keras_bert.serving.model_version import DEFAULT_SIGNATURE
from keras_bert.serving.request_error import RequestError


class ArrivalBound(grpc.aio.ServerInterceptor):
    """Gives each call one of the `Places` to arrive in, and one to be answered in.

    Where a method takes one request, gRPC waits for it before anything of ours runs, and without
    end. A method that takes several looks the same to a client, and waits for them itself: so every
    method is made such a one, which reads the first request.
    """

    def __init__(self, places):
        self._places = places

    async def intercept_service(self, continuation, handler_call_details):
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler

        async def answer(requests, context):
            try:
                async with self._places.arriving():
                    request = await anext(aiter(requests), None)
                if request is None:
                    raise RequestError("INVALID_ARGUMENT", "The call has no request.")
                with self._places.answering():
                    return await handler.unary_unary(request, context)
            except DecodeError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{error}.")
            except RequestError as request_error:
                await context.abort(grpc.StatusCode[request_error.code], request_error.message)

        return grpc.stream_unary_rpc_method_handler(
            answer, handler.request_deserializer, handler.response_serializer
        )


# In milliseconds: gRPC's numbers have 32 bits, and the grace is three times as long.
_LONGEST = 2**31 // 4


def grpc_server(server, *, max_body, places):
    """A `grpc.aio.Server` of a `ModelServer`, which has no port yet; `places` are its `Places`."""
    timeout = int(min(1000 * server.timeout, _LONGEST))
    made = grpc.aio.server(
        interceptors=[ArrivalBound(places)],
        # As many arrive and as many are answered; some more are just being refused.
        maximum_concurrent_rpcs=4 * places.most,
        options=[
            ("grpc.max_receive_message_length", max_body),
            # Clients that vanished are found out; those that are there connect anew in passing.
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            # An answer that nobody takes cannot be taken back; its connection can be ended. The
            # grace is for a request to arrive, to be computed, and for its answer to be taken.
            ("grpc.max_connection_age_ms", timeout),
            ("grpc.max_connection_age_grace_ms", 3 * timeout),
            # A second server on the same port is told so, and does not take half of the requests.
            ("grpc.so_reuseport", 0),
        ],
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        _PredictionService(server, max_values=max_body), made
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(_ModelService(server), made)
    return made


def _refusing(answer):
    """A method whose `RequestError` is the status of the call."""

    @functools.wraps(answer)
    async def method(self, request, context):
        try:
            return await answer(self, request)
        except RequestError as request_error:
            await context.abort(grpc.StatusCode[request_error.code], request_error.message)

    return method


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, server, *, max_values):
        self._server = server
        self._max_values = max_values

    @_refusing
    async def Predict(self, request):
        spec = request.model_spec

        def read_inputs(infos):
            # First: each array may be of `max_values`, whatever the request's own size.
            check_names(request.inputs, infos)
            return {
                name: array_of_proto(name, proto, max_values=self._max_values)
                for name, proto in request.inputs.items()
            }

        async with self._server.request(spec.name, entrypoint="GRPC"):
            version, outputs = await self._server.predict(
                spec.name, _number(spec), spec.signature_name, read_inputs
            )
            # In a thread, so that others are answered while a large one is made.
            return await asyncio.to_thread(_response, request, version, outputs)

    @_refusing
    async def GetModelMetadata(self, request):
        unknown = [field for field in request.metadata_field if field != model_protos.SIGNATURES]
        if unknown or not request.metadata_field:
            raise RequestError(
                "INVALID_ARGUMENT",
                f"metadata_field must be {model_protos.SIGNATURES}, the one that there is.",
            )
        spec = request.model_spec
        return model_protos.metadata_response(self._server.model(spec.name), _number(spec))

    @_refusing
    async def Classify(self, request):
        self._check_method(request.model_spec, "classify")

    @_refusing
    async def Regress(self, request):
        self._check_method(request.model_spec, "regress")

    @_refusing
    async def MultiInference(self, request):
        for task in request.tasks:
            self._check_method(task.model_spec, task.method_name.rpartition("/")[2] or "classify")
        raise RequestError("INVALID_ARGUMENT", "Inference request contains no tasks.")

    def _check_method(self, spec, method):
        version = self._server.model(spec.name).version(_number(spec))
        model_protos.check_method(version, spec.signature_name, method)


class _ModelService(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, server):
        self._server = server

    @_refusing
    async def GetModelStatus(self, request):
        spec = request.model_spec
        return model_protos.status_response(self._server.model(spec.name), _number(spec))

    @_refusing
    async def HandleReloadConfigRequest(self, request):
        raise RequestError(
            "UNIMPLEMENTED",
            "The development server serves the folders that it was started with; start it anew.",
        )


def _number(spec):
    """The version that a `ModelSpec` asks for, or None."""
    choice = spec.WhichOneof("version_choice")
    if choice == "version_label":
        raise RequestError(
            "INVALID_ARGUMENT", f"Unrecognized servable version label: {spec.version_label}"
        )
    return spec.version.value if choice == "version" else None


def _response(request, version, outputs):
    names = _chosen(request.output_filter, outputs)
    response = predict_pb2.PredictResponse()
    response.model_spec.name = request.model_spec.name
    response.model_spec.version.value = version.number
    response.model_spec.signature_name = request.model_spec.signature_name or DEFAULT_SIGNATURE
    for name in names:
        response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name]))
    return response


def _chosen(output_filter, outputs):
    """The names of the outputs that a request wants, each once; all of them without a filter.

    Raises `RequestError` at the first name that is unknown or repeated, in TensorFlow Serving's
    words: a request has room for half a million names, each of which would be a copy of an output.
    """
    chosen = {}
    for name in output_filter:
        if name not in outputs:
            raise RequestError(
                "INVALID_ARGUMENT",
                f"output tensor alias not found in signature: {name} Outputs expected to be in "
                f"the set {{{','.join(sorted(outputs))}}}.",
            )
        if name in chosen:
            raise RequestError("INVALID_ARGUMENT", f"duplicate output tensor alias: {name}")
        chosen[name] = True
    return chosen or outputs
