"""TensorFlow Serving's gRPC over SavedModels, for the tests of the client.

The development server has no gRPC. This service answers with the codes that TensorFlow Serving has.
"""

import concurrent.futures
import contextlib

import grpc
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)


@contextlib.contextmanager
def serving_models(models):
    """Serves version 1 of each model of a folder; gives the address, as `ask` takes it."""
    with serving(_Predictions(models), _Versions(models)) as address:
        yield address


@contextlib.contextmanager
def serving(predictions, versions=None):
    """Serves a PredictionService, and a ModelService if there is one; gives the address."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(predictions, server)
    if versions is not None:
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(versions, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        server.stop(0)


def _check_model(models, spec, context):
    """Ends the call if a `ModelSpec` names no model, or another version than 1."""
    number = spec.version.value if spec.HasField("version") else 1
    if number != 1 or not (models / spec.name / "1").is_dir():
        asked = f"Specific({spec.name}, {number})"
        context.abort(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {asked}")


class _Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, models):
        self._models = models
        self._loaded = {}

    def Predict(self, request, context):
        spec = request.model_spec
        _check_model(self._models, spec, context)
        if spec.name not in self._loaded:
            self._loaded[spec.name] = tf.saved_model.load(str(self._models / spec.name / "1"))
        signatures = self._loaded[spec.name].signatures
        name = spec.signature_name or "serving_default"
        if name not in signatures:
            message = f'Serving signature name: "{name}" not found in signature def'
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)
        inputs = {name: tf.constant(tf.make_ndarray(p)) for name, p in request.inputs.items()}
        try:
            outputs = signatures[name](**inputs)
        except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        response = predict_pb2.PredictResponse()
        for name, tensor in outputs.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
        return response

    def GetModelMetadata(self, request, context):
        _check_model(self._models, request.model_spec, context)
        file = saved_model_pb2.SavedModel()
        path = self._models / request.model_spec.name / "1" / "saved_model.pb"
        file.ParseFromString(path.read_bytes())
        signatures = get_model_metadata_pb2.SignatureDefMap(
            signature_def=dict(file.meta_graphs[0].signature_def)
        )
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.metadata["signature_def"].Pack(signatures)
        return response


class _Versions(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, models):
        self._models = models

    def GetModelStatus(self, request, context):
        _check_model(self._models, request.model_spec, context)
        response = get_model_status_pb2.GetModelStatusResponse()
        available = get_model_status_pb2.ModelVersionStatus.AVAILABLE
        response.model_version_status.add(version=1, state=available)
        return response
