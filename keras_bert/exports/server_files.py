"""Files of TensorFlow Serving besides a model: the list of models, batching, warm-up requests.

A model's own folder has its batching parameters, which the server reads with
`--enable_batching --enable_per_model_batching_parameters`. The folder of all models has
`models.config` and `monitoring.config`; docs/serving.md has the command. The formats are those of
tensorflow.org/tfx/serving/serving_config and saved_model_warmup.
"""

import os

import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog, PredictLog
from tensorflow_serving.config import model_server_config_pb2

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_small, write_text
from keras_bert.base.ownership import held_names

# A TFRecord file of at most 1,000 serialized `PredictionLog`, which a server runs before it is
# ready.
WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"

_BATCHING_FILE = "batching_params.pbtxt"
_MODELS_FILE = "models.config"
_MONITORING_FILE = "monitoring.config"
# The folder of all models in the official image.
_MODELS_ROOT = "/models"

# A request of more than `max_batch_size` examples is an error; fewer wait together for 2 ms.
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
_EXPECTED_FILES = {_MODELS_FILE, _MONITORING_FILE, "README.md", "compose.yaml"}


def write_batching(folder, inputs):
    """Writes the batching parameters of a version, if its requests may be batched.

    They may if every input is one string per example. A server pads other inputs by repeating a
    request's first value, which would add choices; and if the graph rejects one example, such as
    spans without a word, all requests of the batch would fail.

    Args:
        folder: the `Path` of the version.
        inputs: the `tf.TensorSpec`s of the signature `serving_default`.
    """
    if all(spec.dtype == tf.string and spec.shape.rank == 1 for spec in inputs):
        (folder / _BATCHING_FILE).write_text(_BATCHING, encoding="utf-8")


def write_server_files(models):
    """Writes the list of all models in a folder, and their monitoring, for a server.

    Only if the folder contains nothing but models, since nobody serves from another one, and if the
    files there are those that an earlier export wrote, for these models or fewer.
    Returns None, or the sentence for the user with the reason why they were not written.

    Exports of several models may write the list at once. Each looks again after it has written, so
    that the last one has seen what all others have exported.
    """
    written = None
    while True:
        # Read before the models are listed, which another export may add to both.
        before = {name: _text_of(models / name) for name in (_MODELS_FILE, _MONITORING_FILE)}
        names = held_names(models)
        folders = [name for name in names if _is_model(models / name)]
        others = [n for n in names if n not in folders and not _is_expected(models / n)]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            return _not_written(
                f"{models} contains something else than models ({others[0]}{more})."
            )
        if folders == written:
            return None
        expected = {
            _MODELS_FILE: _config_of(_models_in(before[_MODELS_FILE]) & {*folders}),
            _MONITORING_FILE: _MONITORING,
        }
        for name, text in before.items():
            if text not in (None, expected[name]):
                return _not_written(
                    f"{models / name} is not as an export writes it for the models there. Edit "
                    "it, or delete it and export again."
                )
        write_text(models / _MONITORING_FILE, _MONITORING)
        write_text(models / _MODELS_FILE, _config_of(folders))
        written = folders


def _not_written(reason):
    """The sentence on files that are left as they are."""
    return f"TensorFlow Serving's {_MODELS_FILE} and {_MONITORING_FILE} were not written: {reason}"


def _text_of(path):
    """The text of a file; None if there is nothing, and False for what cannot be ours."""
    if not os.path.lexists(path):
        return None
    try:
        return read_small(path).decode("utf-8")
    except (OSError, UnicodeDecodeError, InputError):
        return False


def _config_of(names):
    """The text of the list of models with these names."""
    config = model_server_config_pb2.ModelServerConfig()
    for name in sorted(names):
        config.model_config_list.config.add(
            name=name, base_path=f"{_MODELS_ROOT}/{name}", model_platform="tensorflow"
        )
    return text_format.MessageToString(config)


def _models_in(text):
    """The names in a list of models; empty if the text is not such a list."""
    try:
        config = text_format.Parse(text or "", model_server_config_pb2.ModelServerConfig())
    except text_format.ParseError:
        return set()
    return {model.name for model in config.model_config_list.config}


def _is_expected(path):
    """Whether a path may be in a folder of models: also LiteRT files, hidden and empty folders.

    An interrupted export leaves a folder without a version.
    """
    return (
        path.name in _EXPECTED_FILES
        or path.name.startswith(".")
        or (path.suffix == ".tflite" and path.is_file())
        or (path.is_dir() and not held_names(path))
    )


def _is_model(folder):
    """Whether a folder contains versions of a SavedModel, and nothing else."""
    names = held_names(folder) if folder.is_dir() else []
    return bool(names) and all(is_version(folder / name) for name in names)


def is_version(folder):
    """Whether a folder is one version of a SavedModel."""
    return folder.name.isdigit() and (folder / "saved_model.pb").is_file()


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
