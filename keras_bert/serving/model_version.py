"""The folders that exports write, and the model versions that are loaded from them."""

import asyncio
import contextlib
import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of exported tokenizers)
from tensorflow.core.protobuf import error_codes_pb2
from tensorflow.python.saved_model.loader_impl import parse_saved_model
from tensorflow_serving.apis import prediction_log_pb2

from keras_bert.base.errors import InputError
from keras_bert.serving.errors import HTTP_STATUS, RequestError

# Two, so that one long request does not delay all others.
_THREADS = 2
_DEFAULT_SIGNATURE = "serving_default"
# Requests in a SavedModel that a server runs before it answers clients.
_WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
# Lines of an error about the graph, not about the request.
_OF_THE_GRAPH = ("Graph execution error", "Detected at node")


def model_folders(folders):
    """{name: folder} of the models in some folders.

    Raises:
        InputError: a folder has no model or an invalid name, or two models have the same name.
    """
    named = {}
    for given in map(Path, folders):
        models = [given] if version_folders(given) else _models_in(given)
        if not models:
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


def _models_in(folder):
    with contextlib.suppress(OSError):
        return sorted(entry for entry in folder.iterdir() if version_folders(entry))
    return []


def version_folders(folder):
    """The version folders of a model, the oldest first."""
    versions = []
    with contextlib.suppress(OSError):
        versions = [
            entry for entry in folder.iterdir() if _is_version(entry.name) and entry.is_dir()
        ]
    return sorted(versions, key=lambda entry: int(entry.name))


def _is_version(name):
    """Whether a name is a version number, which TensorFlow Serving's messages hold in 64 bits."""
    return name.isascii() and name.isdecimal() and int(name) < 2**63


def check_files(folder):
    """Raises OSError if a folder contains something other than files and folders, at any depth.

    Reading from a pipe would wait for a writer, and cannot be interrupted.
    """
    for path in folder.rglob("*"):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError(f"{path.relative_to(folder)} is not a regular file.")


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
        check_files(folder)
        self.signature_defs = dict(parse_saved_model(str(folder)).meta_graphs[0].signature_def)
        self._model = tf.saved_model.load(str(folder))
        if (folder / _WARMUP_FILE).is_file():
            for record in tf.data.TFRecordDataset(str(folder / _WARMUP_FILE)):
                log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
                request = log.predict_log.request
                inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
                self.compute(request.model_spec.signature_name, inputs)

    def signature_def(self, name):
        """The `SignatureDef` of a callable signature; "" is the default one.

        Raises `RequestError` if there is none of that name.
        """
        name = name or _DEFAULT_SIGNATURE
        if name not in self._model.signatures:
            expected = ", ".join(sorted(self._model.signatures))
            raise RequestError(
                f'Serving signature name: "{name}" not found in signature def. '
                f"Expected: {expected}."
            )
        return self.signature_defs[name]

    def compute(self, signature, inputs):
        """Returns the outputs; inputs and outputs are NumPy arrays by name, strings are bytes.

        Raises `RequestError` with the message of an error in the graph.
        """
        function = self._model.signatures[signature or _DEFAULT_SIGNATURE]
        try:
            outputs = function(**{name: tf.constant(array) for name, array in inputs.items()})
        except tf.errors.OpError as error:
            raise _request_error(error) from error
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def _request_error(error):
    """The `RequestError` of an error in the graph: its message, without the names of nodes."""
    code = error_codes_pb2.Code.Name(error.error_code)
    message = str(error.message).replace("<stack traces unavailable>", "").partition("\n\t [[")[0]
    lines = [line.strip() for line in message.splitlines()]
    message = " ".join(line for line in lines if line and not line.startswith(_OF_THE_GRAPH))
    return RequestError(message or code, code if code in HTTP_STATUS else "INTERNAL")


class State(NamedTuple):
    """The state of a version, in the terms of TensorFlow Serving's ModelVersionStatus."""

    state: str
    code: str = "OK"
    message: str = ""


class ServedModel:
    """The versions in a folder. The newest one that loads is served; others are unloaded.

    A request keeps the version that it started with, so that none is lost when a new one is loaded.
    Two requests are computed at a time, and others wait.

    Attributes:
        name: what clients call it.
        states: {version: `State`} of all versions since the start.
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
            self.states[number] = State("LOADING")
            try:
                version = ModelVersion(folder)
            except Exception as error:  # the server keeps running whatever the folder contains
                self._failed[number] = files
                message = " ".join(str(error).split())
                self.states[number] = State("END", "INTERNAL", message)
                return f"{self.name}: version {number} could not be loaded: {message}"
            if self._current is not None:
                self.states[self._current.number] = State("END")
            self._current = version
            self.states[number] = State("AVAILABLE")
            gc.collect()  # graphs have reference cycles, and hold the weights
            return f"{self.name}: version {number} is served."
        return None

    def version(self, number=None):
        """The served `ModelVersion`; `RequestError` if another `number` is requested."""
        current = self._current  # read once: another thread may replace it
        if current is not None and number in (None, current.number):
            return current
        asked = f"Latest({self.name})" if number is None else f"Specific({self.name}, {number})"
        raise RequestError(f"Servable not found for request: {asked}", "NOT_FOUND")

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
            {
                "version": str(version),
                "state": state.state,
                "status": {"error_code": state.code, "error_message": state.message},
            }
            for version, state in sorted(self.states.items(), reverse=True)
            if number in (None, version)
        ]
        if not versions:
            which = "" if number is None else f" with version {number}"
            raise RequestError(
                f"Could not find any versions of model {self.name}{which}", "NOT_FOUND"
            )
        return {"model_version_status": versions}


def model_named(models, name):
    """The `ServedModel` of a name; `RequestError` if no model has it."""
    if name not in models:
        raise RequestError(f"Servable not found for request: Latest({name})", "NOT_FOUND")
    return models[name]


def _files(folder):
    """Names, times and sizes of a folder's files, which show whether it has changed."""
    files = []
    with contextlib.suppress(OSError):  # a file may be deleted meanwhile
        for path in folder.rglob("*"):
            status = path.stat()
            files.append((str(path), status.st_mtime_ns, status.st_size))
    return sorted(files)
