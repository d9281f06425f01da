"""A client of TensorFlow Serving's gRPC interface."""

import json
import math

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_bert.base.errors import reason_of
from keras_bert.serving.errors import (
    ServerError,
    unexpected_response,
    unknown_signature,
    wrong_count,
)
from keras_bert.serving.tensors import array_text, bytes_of

# Responses for many long texts are larger than gRPC's 4 MiB.
_LARGEST_RESPONSE = 256 << 20


class GrpcClient:
    """Sends requests to `HOST:PORT`; a context manager with the methods of `RestClient`."""

    def __init__(self, address, *, timeout):
        self._address = address
        self._timeout = timeout
        options = [
            ("grpc.max_receive_message_length", _LARGEST_RESPONSE),
            ("grpc.enable_http_proxy", 0),
        ]
        self._channel = grpc.insecure_channel(address, options=options)
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._channel.close()

    def signature(self, model, signature, *, version=None):
        """See `RestClient.signature`."""
        signatures = self._signatures(model, version)
        if signature not in signatures:
            raise unknown_signature(model, signature, signatures)
        definition = signatures[signature]
        return {"inputs": _described(definition.inputs), "outputs": _described(definition.outputs)}

    def versions(self, model):
        """See `RestClient.versions`."""
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = model
        response = self._call(self._models.GetModelStatus, request)
        states = get_model_status_pb2.ModelVersionStatus.State
        return [
            (status.version, _name_of(states, status.state))
            for status in response.model_version_status
        ]

    def predict(self, model, examples, *, signature="serving_default", version=None):
        """See `RestClient.predict`."""
        examples = list(examples)
        request = predict_pb2.PredictRequest()
        _fill(request.model_spec, model, version)
        request.model_spec.signature_name = signature
        infos = self._signatures(model, version)[signature].inputs if examples else {}
        for name, column in _columns(examples).items():
            dtype = infos[name].dtype if name in infos else None  # the server rejects it
            try:
                proto = tf.make_tensor_proto(_sendable(column), dtype=dtype)
            except (TypeError, ValueError) as error:
                raise ServerError(
                    f"The input {name!r} cannot be sent: {reason_of(error)}.",
                    code="INVALID_ARGUMENT",
                ) from None
            request.inputs[name].CopyFrom(proto)
        response = self._call(self._prediction.Predict, request)
        columns = {}
        for name, proto in sorted(response.outputs.items()):
            try:
                array = _array_of_proto(name, proto, max_values=_LARGEST_RESPONSE)
            except ValueError as error:
                raise unexpected_response(self._address, f"valid tensors ({error})") from None
            rows = len(array) if array.ndim else 0
            if rows != len(examples):
                raise wrong_count(self._address, rows, len(examples))
            columns[name] = json.loads(array_text(name, array))
        if examples and not columns:
            raise wrong_count(self._address, 0, len(examples))
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _signatures(self, model, version):
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        _fill(request.model_spec, model, version)
        response = self._call(self._prediction.GetModelMetadata, request)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        try:
            has_signatures = response.metadata["signature_def"].Unpack(signatures)
        except DecodeError:
            has_signatures = False
        if not has_signatures:
            raise unexpected_response(self._address, "metadata with signatures")
        return signatures.signature_def

    def _call(self, method, request):
        try:
            return method(request, timeout=self._timeout)
        except grpc.RpcError as error:
            code, details = error.code().name, error.details()
        if code == "UNAVAILABLE":
            problem = "cannot be reached, or does not take more requests"
        else:
            problem = f"rejected the request ({code})"
        raise ServerError(f"{self._address} {problem}: {details.rstrip('.')}.", code=code)


def _array_of_proto(name, proto, *, max_values):
    """The array of a `TensorProto`. Raises `ValueError` if it is not valid.

    A few bytes can hold a billion equal values or an empty shape of a billion rows: `max_values`
    bounds what is made of it.
    """
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or min(sizes, default=0) < 0:
        raise ValueError(f"The tensor {name!r} must have a fully defined shape.")
    if math.prod(sizes) > max_values:
        raise ValueError(f"The tensor {name!r} has too many values. Received the shape {sizes}.")
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise ValueError(f"The tensor {name!r} cannot be read: {reason_of(error)}.") from None


def _fill(spec, model, version):
    spec.name = model
    if version is not None:
        spec.version.value = version


def _columns(examples):
    """Examples, dictionaries of the same names, as a dictionary of lists."""
    names = examples[0] if examples else ()
    for example in examples:
        if set(example) != set(names):
            raise ServerError(
                "All examples must have the same inputs. Received: "
                f"{', '.join(names)} and {', '.join(example)}.",
                code="INVALID_ARGUMENT",
            )
    return {name: [example[name] for example in examples] for name in names}


def _described(tensors):
    return {
        name: {
            "dtype": _name_of(types_pb2.DataType, info.dtype),
            "shape": [dim.size for dim in info.tensor_shape.dim],
        }
        for name, info in sorted(tensors.items())
    }


def _name_of(enum, number):
    """The name of a value of an enumeration; its number if it has none, as in JSON."""
    return enum.Name(number) if number in enum.values() else str(number)


def _sendable(value):
    """A JSON value as `tf.make_tensor_proto` takes it: with bytes instead of their base64."""
    if isinstance(value, list):
        return [_sendable(inner) for inner in value]
    if isinstance(value, dict) and list(value) == ["b64"]:
        return bytes_of(value["b64"])
    return value
