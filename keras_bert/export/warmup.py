"""Warm-up requests that TensorFlow Serving runs through a model before it answers anybody.

Format: `assets.extra/tf_serving_warmup_requests` of a SavedModel, a TFRecord file of at most 1,000
serialized `tensorflow.serving.PredictionLog` (tensorflow.org/tfx/serving/saved_model_warmup). Its
Python classes come in tensorflow-serving-api, which lags behind TensorFlow and pins it; the five
fields that are needed here are written by their numbers instead.
"""

import tensorflow as tf

WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"

# Field numbers of tensorflow_serving/apis/{prediction_log,predict,model}.proto.
_PREDICTION_LOG_PREDICT_LOG = 6
_PREDICT_LOG_REQUEST = 1
_REQUEST_MODEL_SPEC = 1
_REQUEST_INPUTS = 2
_MODEL_SPEC_NAME = 1
_MODEL_SPEC_SIGNATURE = 3
_MAP_KEY, _MAP_VALUE = 1, 2


def write_warmup_requests(folder, requests, *, model_name):
    """Writes the requests into the SavedModel in `folder`.

    `requests` are pairs of a signature's name and a dictionary of its inputs, each anything that
    `tf.make_tensor_proto` takes.
    """
    path = folder / WARMUP_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests:
            writer.write(prediction_log(signature, inputs, model_name=model_name))


def prediction_log(signature, inputs, *, model_name):
    """The bytes of one PredictionLog with a PredictRequest."""
    request = _field(
        _REQUEST_MODEL_SPEC,
        _field(_MODEL_SPEC_NAME, model_name.encode())
        + _field(_MODEL_SPEC_SIGNATURE, signature.encode()),
    )
    for name, value in sorted(inputs.items()):
        tensor = tf.make_tensor_proto(value).SerializeToString(deterministic=True)
        request += _field(
            _REQUEST_INPUTS, _field(_MAP_KEY, name.encode()) + _field(_MAP_VALUE, tensor)
        )
    return _field(_PREDICTION_LOG_PREDICT_LOG, _field(_PREDICT_LOG_REQUEST, request))


def _field(number, payload):
    """A length-delimited field of the protocol buffers' wire format."""
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(value):
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
