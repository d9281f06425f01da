"""Bounds how long the request of a call over gRPC may take to arrive."""

import asyncio

import grpc
from google.protobuf.message import DecodeError


class ArrivalBound(grpc.aio.ServerInterceptor):
    """Ends calls whose request is not there within the time-out of a `ModelServer`.

    Where a method takes one request, gRPC waits for it before anything of ours runs, and without
    end. A method that takes several looks the same to a client, and waits for them itself: so every
    method is made such a one, which reads the first request.
    """

    def __init__(self, server):
        self._server = server

    async def intercept_service(self, continuation, handler_call_details):
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler

        async def answer(requests, context):
            try:
                async with asyncio.timeout(self._server.timeout):
                    request = await anext(aiter(requests), None)
            except TimeoutError:
                said = f"The request was not here within {self._server.timeout:g} s."
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, said)
            except DecodeError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{error}.")
            if request is None:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call has no request.")
            return await handler.unary_unary(request, context)

        return grpc.stream_unary_rpc_method_handler(
            answer, handler.request_deserializer, handler.response_serializer
        )
