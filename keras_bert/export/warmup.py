"""Warm-up requests that TensorFlow Serving runs through a model before it answers anybody.

Format: `assets.extra/tf_serving_warmup_requests` of a SavedModel, a TFRecord file of at most 1,000
serialized `PredictionLog` (tensorflow.org/tfx/serving/saved_model_warmup).
"""

import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog, PredictLog

WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"


def write_warmup_requests(folder, requests, *, model_name):
    """Writes the requests into the SavedModel in `folder`.

    `requests` are pairs of a signature's name and a dictionary of its inputs, each anything that
    `tf.make_tensor_proto` takes.
    """
    path = folder / WARMUP_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests:
            log = prediction_log(signature, inputs, model_name=model_name)
            writer.write(log.SerializeToString(deterministic=True))


def prediction_log(signature, inputs, *, model_name):
    """The `PredictionLog` of one request."""
    request = PredictRequest()
    request.model_spec.name = model_name
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return PredictionLog(predict_log=PredictLog(request=request))
