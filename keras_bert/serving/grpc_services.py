"""The gRPC interface of TensorFlow Serving, over a `ModelServer`."""

import asyncio

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_bert.serving.errors import RequestError
from keras_bert.serving.model_version import DEFAULT_SIGNATURE, SIGNATURES
from keras_bert.serving.tensors import array_of_proto, check_names

# In milliseconds: gRPC's numbers have 32 bits, and the grace is three times as long.
_LONGEST = 2**31 // 4


class _CapacityInterceptor(grpc.aio.ServerInterceptor):
    """Limits the calls that arrive and that are answered at a time to a `Capacity`.

    For a method with one request, gRPC waits for the request before it calls any of our code, and
    without a time limit. A method with a stream of requests looks the same to a client and reads
    them itself: so each method becomes one that reads its first request.
    """

    def __init__(self, capacity):
        self._capacity = capacity

    async def intercept_service(self, continuation, handler_call_details):
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler

        async def answer(requests, context):
            try:
                async with self._capacity.arriving():
                    request = await anext(aiter(requests), None)
                if request is None:
                    raise RequestError("The call has no request.")
                with self._capacity.answering():
                    return await handler.unary_unary(request, context)
            except DecodeError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{error}.")
            except RequestError as error:
                await context.abort(grpc.StatusCode[error.code], error.message)

        return grpc.stream_unary_rpc_method_handler(
            answer, handler.request_deserializer, handler.response_serializer
        )


def grpc_server(server, *, max_body, capacity):
    """A `grpc.aio.Server` of a `ModelServer`, which has no port yet."""
    timeout = int(min(1000 * server.timeout, _LONGEST))
    grpc_server = grpc.aio.server(
        interceptors=[_CapacityInterceptor(capacity)],
        # As many arrive and as many are answered; the others are being rejected.
        maximum_concurrent_rpcs=4 * capacity.most,
        options=[
            ("grpc.max_receive_message_length", max_body),
            # Detects clients that vanished; others connect again without noticing.
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            # A response that the client does not read cannot be cancelled; its connection can be
            # closed. The grace is for a request to arrive, to be computed, and for its response.
            ("grpc.max_connection_age_ms", timeout),
            ("grpc.max_connection_age_grace_ms", 3 * timeout),
            # A second server on the same port fails; otherwise it would get half of the requests.
            ("grpc.so_reuseport", 0),
        ],
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        _PredictionService(server, max_values=max_body), grpc_server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(_ModelService(server), grpc_server)
    return grpc_server


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, server, *, max_values):
        self._server = server
        self._max_values = max_values

    async def Predict(self, request, context):
        spec = request.model_spec

        def read_inputs(infos):
            # Names first: each array may have `max_values`, whatever the request's own size.
            check_names(request.inputs, infos)
            return {
                name: array_of_proto(name, proto, max_values=self._max_values)
                for name, proto in request.inputs.items()
            }

        async with self._server.request(spec.name, entrypoint="GRPC"):
            version, outputs = await self._server.predict(
                spec.name, _number(spec), spec.signature_name, read_inputs
            )
            # In a thread, so that other requests are answered meanwhile.
            return await asyncio.to_thread(_response, request, version, outputs)

    async def GetModelMetadata(self, request, context):
        if set(request.metadata_field) != {SIGNATURES}:
            raise RequestError(f"metadata_field must be {SIGNATURES}.")
        spec = request.model_spec
        return self._server.model(spec.name).metadata(_number(spec))

    async def Classify(self, request, context):
        self._reject_method(request.model_spec, "classify")

    async def Regress(self, request, context):
        self._reject_method(request.model_spec, "regress")

    async def MultiInference(self, request, context):
        for task in request.tasks:
            self._reject_method(task.model_spec, task.method_name.rpartition("/")[2] or "classify")
        raise RequestError("Inference request contains no tasks.")

    def _reject_method(self, spec, method):
        version = self._server.model(spec.name).version(_number(spec))
        version.reject_method(spec.signature_name, method)


class _ModelService(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, server):
        self._server = server

    async def GetModelStatus(self, request, context):
        spec = request.model_spec
        return self._server.model(spec.name).status(_number(spec))

    async def HandleReloadConfigRequest(self, request, context):
        raise RequestError(
            "The development server cannot reload its configuration. Start it again.",
            "UNIMPLEMENTED",
        )


def _number(spec):
    """The version in a `ModelSpec`, or None."""
    choice = spec.WhichOneof("version_choice")
    if choice == "version_label":
        raise RequestError(f"Unrecognized servable version label: {spec.version_label}")
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
    """The names of the outputs in a filter, or all names without a filter.

    Raises `RequestError` at the first name that is unknown or repeated, with TensorFlow Serving's
    message: a request may have half a million names, each of which would be a copy of an output.
    """
    chosen = {}
    for name in output_filter:
        if name not in outputs:
            raise RequestError(
                f"output tensor alias not found in signature: {name} Outputs expected to be in "
                f"the set {{{','.join(sorted(outputs))}}}."
            )
        if name in chosen:
            raise RequestError(f"duplicate output tensor alias: {name}")
        chosen[name] = True
    return chosen or outputs
