"""The folders that exports write, and the model versions that are loaded from them."""

import asyncio
import contextlib
import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of exported tokenizers)
from tensorflow.core.protobuf import error_codes_pb2
from tensorflow.python.saved_model.loader_impl import parse_saved_model
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_bert.base.errors import InputError
from keras_bert.exports.server_files import WARMUP_FILE
from keras_bert.search.segments import is_index
from keras_bert.serving.errors import HTTP_STATUS, ServerError
from keras_bert.serving.tensors import DEFAULT_SIGNATURE

# Two, so that one long request does not delay all others.
_THREADS = 2
# Lines of an error about the graph, not about the request.
_GRAPH_LINES = ("Graph execution error", "Detected at node")


def model_folders(folders):
    """{name: folder} of the models in some folders.

    Raises:
        InputError: a folder has no model or an invalid name, or two models have the same name.
    """
    named = {}
    for given in map(Path, folders or ()):
        if is_index(given):
            continue
        models = [given] if version_folders(given) else _entries(given)
        models = sorted(filter(version_folders, models))
        if not models and not any(map(is_index, _entries(given))):
            raise InputError(
                f"No exported model in {given}. Expected a folder that keras-bert export wrote, "
                "with versions numbered up to 2^63 - 1, or a folder of such folders."
            )
        for folder in models:
            name = Path(os.path.abspath(folder)).name  # of a link, its own
            # REST paths and log lines contain the name.
            if not name or ":" in name or not name.isprintable():
                raise InputError(
                    f"The folder name {str(folder)!r} is not a valid model name: it has a colon "
                    "or a control character. Rename the folder."
                )
            if name in named:
                raise InputError(f"{named[name]} and {folder} have the same model name {name}.")
            named[name] = folder
    return named


def version_folders(folder):
    """The version folders of a model, the oldest first."""
    versions = [entry for entry in _entries(folder) if _is_version(entry.name) and entry.is_dir()]
    return sorted(versions, key=lambda entry: int(entry.name))


def _entries(folder):
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def _is_version(name):
    """Whether a name is a version number, which TensorFlow Serving's messages hold in 64 bits."""
    return name.isascii() and name.isdecimal() and int(name) < 2**63


def _check_files(folder):
    """Raises OSError if a folder contains something other than files and folders, at any depth.

    Reading from a pipe would wait for a writer, and cannot be interrupted.
    """
    for path in folder.rglob("*"):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError(f"{path.relative_to(folder)} is not a regular file.")


def lay_kernels_out_once(folders):
    """Makes oneDNN keep the layout of kernels between requests, if all models are in bfloat16.

    A processor multiplies bfloat16 in pairs, for which kernels need their own layout. TensorFlow
    does not know that a variable is constant and repeats this for each product, which for few
    examples takes as long as the product. The setting is for all variables of a process, so it is
    made only in a process that does nothing but serve, and before its first product. The user's
    environment has priority. In float32 the layout depends on the number of rows: that of the first
    request would stay, and slow down requests of other lengths.

    `folders` are those of `serve`, which reports what is wrong with them.
    """
    with contextlib.suppress(InputError):
        newest = [version_folders(folder)[-1] for folder in model_folders(folders).values()]
        if newest and all(map(_is_in_bfloat16, newest)):
            os.environ.setdefault("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "true")


def _is_in_bfloat16(version):
    try:
        _check_files(version)
        stored = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    except (OSError, tf.errors.OpError, ValueError):
        return False
    return tf.bfloat16 in stored.get_variable_to_dtype_map().values()


class ModelVersion:
    """A SavedModel in a version folder.

    Attributes:
        number: the name of its folder.
        signature_defs: name -> `SignatureDef`, all of the file, as TensorFlow Serving reports them.

    Raises:
        OSError or an error of TensorFlow: the folder has no complete SavedModel.
    """

    def __init__(self, folder):
        self.number = int(folder.name)
        _check_files(folder)
        graphs = parse_saved_model(str(folder)).meta_graphs
        if not graphs:
            raise InputError(f"{folder}/saved_model.pb is empty. Export the model again.")
        self.signature_defs = dict(graphs[0].signature_def)
        self._model = tf.saved_model.load(str(folder))
        if (folder / WARMUP_FILE).is_file():
            for record in tf.data.TFRecordDataset(str(folder / WARMUP_FILE)):
                request = PredictionLog.FromString(record.numpy()).predict_log.request
                inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
                self.compute(request.model_spec.signature_name or DEFAULT_SIGNATURE, inputs)

    def inputs(self, signature):
        """The `tf.TensorSpec` of each input of a signature, by name.

        Raises `ServerError` if there is no signature of that name.
        """
        if signature not in self._model.signatures:
            expected = ", ".join(sorted(self._model.signatures))
            raise ServerError(
                f'Serving signature name: "{signature}" not found in signature def. '
                f"Expected: {expected}."
            )
        return self._model.signatures[signature].structured_input_signature[1]

    def compute(self, signature, inputs):
        """Returns the outputs; inputs and outputs are NumPy arrays by name, strings are bytes.

        Raises `ServerError` with the message of an error in the graph.
        """
        function = self._model.signatures[signature]
        try:
            outputs = function(**{name: tf.constant(array) for name, array in inputs.items()})
        except tf.errors.OpError as error:
            raise _request_error(error) from error
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def _request_error(error):
    """The `ServerError` of an error in the graph: its message, without the names of nodes."""
    code = error_codes_pb2.Code.Name(error.error_code)
    message = str(error.message).replace("<stack traces unavailable>", "").partition("\n\t [[")[0]
    lines = [line.strip() for line in message.splitlines()]
    message = " ".join(line for line in lines if line and not line.startswith(_GRAPH_LINES))
    return ServerError(message or code, code=code if code in HTTP_STATUS else "INTERNAL")


class ServedModel:
    """The versions in a folder. The newest one that loads is served; others are unloaded.

    A request keeps the version that it started with, so that none is lost when a new one is loaded.
    Two requests are computed at a time, and others wait.

    Attributes:
        name: what clients call it.
        states: {version: state} of all versions since the start, as TensorFlow Serving's JSON.
    """

    def __init__(self, name, folder):
        self.name = name
        self.states = {}
        self._folder = folder
        self._current = None
        self._failed = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=name)

    def refresh(self):
        """Loads a version that is new in the folder; returns a message for the user, or None.

        A version that does not load is tried again when its files have changed. When the folder of
        the served version is deleted, the newest of the others is loaded. Not to be called by
        several threads at once.
        """
        for folder in reversed(version_folders(self._folder)):
            number = int(folder.name)
            if self._current is not None and number == self._current.number:
                return None
            files = _files(folder)
            if self._failed.get(number) == files:
                continue
            self.states[number] = _state("LOADING")
            try:
                version = ModelVersion(folder)
            except Exception as error:  # the server keeps running whatever the folder contains
                self._failed[number] = files
                message = " ".join(str(error).split())
                self.states[number] = _state("END", "INTERNAL", message)
                return f"{self.name}: version {number} could not be loaded: {message}"
            if self._current is not None:
                self.states[self._current.number] = _state("END")
            self._current = version
            self.states[number] = _state("AVAILABLE")
            gc.collect()  # graphs have reference cycles, and hold the weights
            return f"{self.name}: version {number} is served."
        return None

    def version(self, number=None):
        """The served `ModelVersion`; `ServerError` if another `number` is requested."""
        current = self._current  # read once: another thread may replace it
        if current is not None and number in (None, current.number):
            return current
        asked = f"Latest({self.name})" if number is None else f"Specific({self.name}, {number})"
        raise ServerError(f"Servable not found for request: {asked}", code="NOT_FOUND")

    async def compute(self, version, signature, inputs):
        """See `ModelVersion.compute`; `version` is one that `version` returned.

        A request that is cancelled while it waits for a thread is not computed. A computation
        cannot be interrupted, so it keeps its thread: AnyIO's limiter would count it as ended.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, version.compute, signature, inputs)

    def close(self):
        """Drops what waits to be computed. Running computations continue to their end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def status(self, number=None):
        """The state of one or all versions, the newest first, as TensorFlow Serving's JSON."""
        versions = [
            {"version": str(version), **self.states[version]}
            for version in sorted(self.states, reverse=True)
            if number in (None, version)
        ]
        if not versions:
            which = "" if number is None else f" with version {number}"
            raise ServerError(
                f"Could not find any versions of model {self.name}{which}", code="NOT_FOUND"
            )
        return {"model_version_status": versions}


def _state(state, code="OK", message=""):
    return {"state": state, "status": {"error_code": code, "error_message": message}}


def model_named(models, name):
    """The `ServedModel` of a name; `ServerError` if no model has it."""
    if name not in models:
        raise ServerError(f"Servable not found for request: Latest({name})", code="NOT_FOUND")
    return models[name]


def _files(folder):
    """Names, times and sizes of a folder's files, which show whether it has changed."""
    files = []
    with contextlib.suppress(OSError):  # a file may be deleted meanwhile
        for path in folder.rglob("*"):
            status = path.stat()
            files.append((str(path), status.st_mtime_ns, status.st_size))
    return sorted(files)
