"""Bounds how many calls over gRPC there are at once, and how long the request of one may take."""

import grpc
from google.protobuf.message import DecodeError

from keras_bert.serving.refusal import Refusal


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
                    raise Refusal("INVALID_ARGUMENT", "The call has no request.")
                with self._places.answering():
                    return await handler.unary_unary(request, context)
            except DecodeError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{error}.")
            except Refusal as refusal:
                await context.abort(grpc.StatusCode[refusal.code], refusal.message)

        return grpc.stream_unary_rpc_method_handler(
            answer, handler.request_deserializer, handler.response_serializer
        )
