"""What TensorFlow Serving reads beside the models: their list, batching and monitoring.

A model's own folder has its batching parameters, which the server reads with
`--enable_batching --enable_per_model_batching_parameters`. The folder of all models has
`models.config` and `monitoring.config`; docs/serving.md has the command. The formats are those of
tensorflow.org/tfx/serving/serving_config.

Warm-up requests are those that TensorFlow Serving runs through a model before it answers anybody.
Their format is `assets.extra/tf_serving_warmup_requests` of a SavedModel, a TFRecord file of at
most 1,000 serialized `PredictionLog` (tensorflow.org/tfx/serving/saved_model_warmup).
"""

import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog, PredictLog
from tensorflow_serving.config import model_server_config_pb2

from keras_bert.base.files import held_names, write_text

BATCHING_FILE = "batching_params.pbtxt"
MODELS_FILE = "models.config"
MONITORING_FILE = "monitoring.config"
# Where the official image has the folder of all models.
_MODELS_ROOT = "/models"

# A request of more than `max_batch_size` examples is refused; fewer wait together for 2 ms.
_BATCHING = """\
max_batch_size { value: 128 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 256 }
pad_variable_length_inputs: true
"""
_MONITORING = """\
prometheus_config {
  enable: true
  path: "/monitoring/prometheus/metrics"
}
"""
# What may lie in a folder of models beside them; it is then taken for one. So may files for LiteRT,
# which an export writes there, folders without a version, which a killed one leaves, and what is
# hidden.
_BESIDE_MODELS = {MODELS_FILE, MONITORING_FILE, "README.md", "compose.yaml"}


def write_batching(folder, inputs):
    """Writes the batching parameters of a version, unless its requests must not be joined.

    Joined are requests of one string an example each. A server gives other inputs the same size by
    repeating a request's first value, which would be one more choice among several; and where the
    graph refuses an example, as it does spans without a word, all that were joined would fail.

    Args:
        folder: the `Path` of the version.
        inputs: the `tf.TensorSpec`s of the signature `serving_default`.
    """
    if all(spec.dtype == tf.string and spec.shape.rank == 1 for spec in inputs):
        (folder / BATCHING_FILE).write_text(_BATCHING, encoding="utf-8")


def write_server_files(models):
    """Writes the list of all models in a folder, and how they are monitored.

    Only into a folder of nothing but models: where other things lie, nobody serves from it.
    Returns None, or the sentence for the user that says why they were not written.

    Exports of several models may write the list at once. Each looks again after it has written, so
    that the last one has seen what all others have exported.
    """
    written = None
    while True:
        names = held_names(models)
        folders = [name for name in names if is_model(models / name)]
        others = [n for n in names if n not in folders and not _may_lie_beside(models / n)]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            return (
                f"TensorFlow Serving's {MODELS_FILE} and {MONITORING_FILE} were not written: "
                f"{models} holds something else than models ({others[0]}{more})."
            )
        if folders == written:
            return None
        write_text(models / MONITORING_FILE, _MONITORING)
        write_text(models / MODELS_FILE, _list_of(folders))
        written = folders


def _list_of(folders):
    """The text of `models.config` for models by the names of their folders."""
    config = model_server_config_pb2.ModelServerConfig()
    for name in folders:
        config.model_config_list.config.add(
            name=name, base_path=f"{_MODELS_ROOT}/{name}", model_platform="tensorflow"
        )
    return text_format.MessageToString(config)


def _may_lie_beside(path):
    return (
        path.name in _BESIDE_MODELS
        or path.name.startswith(".")
        or (path.suffix == ".tflite" and path.is_file())
        or (path.is_dir() and not held_names(path))
    )


def is_model(folder):
    """Whether a folder holds versions of a SavedModel, and nothing else."""
    names = held_names(folder) if folder.is_dir() else []
    return bool(names) and all(is_version(folder / name) for name in names)


def is_version(folder):
    """Whether a folder is one version of a SavedModel."""
    return folder.name.isdigit() and (folder / "saved_model.pb").is_file()


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
