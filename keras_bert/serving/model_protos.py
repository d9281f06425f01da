"""What a model is and takes, in TensorFlow Serving's messages, which REST writes as JSON."""

from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from keras_bert.serving.request_error import RequestError

SIGNATURES = "signature_def"  # the one kind of metadata that there is
_State = get_model_status_pb2.ModelVersionStatus.State


def metadata_response(model, number=None):
    """The `GetModelMetadataResponse` of a `ServedModel`: its signatures."""
    version = model.version(number)
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = model.name
    response.model_spec.version.value = version.number
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name, signature in version.signature_defs.items():
        signatures.signature_def[name].CopyFrom(signature)
    response.metadata[SIGNATURES].Pack(signatures)
    return response


def metadata_json(model, number=None):
    """`metadata_response` as TensorFlow Serving's REST gives it: without the type of the `Any`."""
    version = model.version(number)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name, signature in version.signature_defs.items():
        signatures.signature_def[name].CopyFrom(signature)
    return {
        "model_spec": {
            "name": model.name,
            "signature_name": "",
            "version": str(version.number),
        },
        "metadata": {SIGNATURES: _json(signatures)},
    }


def status_response(model, number=None):
    """The `GetModelStatusResponse` of a `ServedModel`, the newest version first."""
    response = get_model_status_pb2.GetModelStatusResponse()
    for version, state in model.states_of(number):
        status = response.model_version_status.add(version=version, state=_State.Value(state.state))
        status.status.error_code = _code(state.code)
        status.status.error_message = state.message
    return response


def status_json(model, number=None):
    """`status_response` as REST gives it."""
    return _json(status_response(model, number))


def check_method(version, signature, method):
    """Raises `RequestError` always: exports have no signatures for Classify or Regress."""
    found = version.signature_def(signature).method_name
    raise RequestError(
        "INVALID_ARGUMENT",
        f"Expected {method} signature method_name to be tensorflow/serving/{method}. Was: {found}. "
        "Ask with Predict.",
    )


def _json(message):
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def _code(name):
    from tensorflow.core.protobuf import error_codes_pb2

    return error_codes_pb2.Code.Value(name)
