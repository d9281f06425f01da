"""The folders that exports write, and their versions, loaded: what each takes and answers."""

import contextlib
import gc
import os
import stat
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text  # noqa: F401
from tensorflow.core.protobuf import error_codes_pb2, saved_model_pb2

from keras_bert.base.errors import InputError
from keras_bert.serving.request_error import HTTP_STATUS, RequestError


def model_folders(folders):
    """{name: folder} of the models in some folders.

    Raises:
        InputError: there is none in one of them, or two have the same name.
    """
    found = {}
    for given in map(Path, folders):
        inside = [given] if version_folders(given) else _models_in(given)
        if not inside:
            raise InputError(
                f"{given} holds no exported model; give a folder that keras-bert export wrote, "
                "with versions in it that are numbered up to 2^63 - 1, or one that holds such "
                "folders."
            )
        for folder in inside:
            name = Path(os.path.abspath(folder)).name  # of a link, its own
            # As REST's addresses have it; the name stands in lines of the log and of metrics, too.
            if not name or ":" in name or not name.isprintable():
                raise InputError(
                    f"The folder {str(folder)!r} cannot name a model: a name has no colon and no "
                    "control characters. Rename the folder."
                )
            if name in found:
                raise InputError(f"{found[name]} and {folder} would both be called {name}.")
            found[name] = folder
    return found


def _models_in(folder):
    with contextlib.suppress(OSError):
        return sorted(entry for entry in folder.iterdir() if version_folders(entry))
    return []


def version_folders(folder):
    """The version folders of a model, the oldest first."""
    found = []
    with contextlib.suppress(OSError):
        found = [entry for entry in folder.iterdir() if _is_version(entry.name) and entry.is_dir()]
    return sorted(found, key=lambda entry: int(entry.name))


def _is_version(name):
    """Whether a name is a number that the messages of TensorFlow Serving have room for."""
    return name.isascii() and name.isdecimal() and int(name) < 2**63


def check_files(folder):
    """Raises OSError where something in a folder, at any depth, is neither a file nor a folder.

    Whoever reads a pipe waits for somebody to write to it, and nothing can break that off.
    """
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # a link to nothing
            mode = path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                break
    else:
        return
    raise OSError(f"{path.relative_to(folder)} is not a regular file.")


# The operations of exported tokenizers are registered by its import.


DEFAULT_SIGNATURE = "serving_default"
# Where a SavedModel has requests that a server runs before it answers anybody.
_WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
# Lines of an error that tell of the graph and not of the request.
_OF_THE_GRAPH = ("Graph execution error", "Detected at node")


class ModelVersion:
    """A SavedModel in a version folder.

    Attributes:
        number: the name of its folder.
        signature_defs: name -> `tensorflow.SignatureDef`, all that the file has, which is what
            TensorFlow Serving tells of a model.

    Raises:
        OSError or an error of TensorFlow's: the folder holds none, or not all of one.
    """

    def __init__(self, folder):
        self.number = int(folder.name)
        check_files(folder)
        file = saved_model_pb2.SavedModel()
        file.ParseFromString((folder / "saved_model.pb").read_bytes())
        self.signature_defs = dict(file.meta_graphs[0].signature_def)
        self._model = tf.saved_model.load(str(folder))
        self._warm_up(folder / _WARMUP_FILE)

    def signature_def(self, name):
        """The `SignatureDef` of a signature that can be asked; "" is the default one.

        Raises `RequestError` where there is none of that name.
        """
        name = name or DEFAULT_SIGNATURE
        if name not in self._model.signatures:
            known = ", ".join(sorted(self._model.signatures))
            raise RequestError(
                "INVALID_ARGUMENT",
                f'Serving signature name: "{name}" not found in signature def; there are {known}.',
            )
        return self.signature_defs[name]

    def may_be_joined(self, signature):
        """Whether requests may be computed together: each output has a row for each example."""
        outputs = self.signature_def(signature).outputs.values()
        shapes = [output.tensor_shape for output in outputs]
        return all(shape.dim and shape.dim[0].size == -1 for shape in shapes)

    def compute(self, signature, inputs):
        """The outputs of some inputs, both NumPy arrays by name; strings are bytes in objects.

        Raises `RequestError` where the graph cannot, with what it says.
        """
        function = self._model.signatures[signature or DEFAULT_SIGNATURE]
        try:
            outputs = function(**{name: tf.constant(array) for name, array in inputs.items()})
        except tf.errors.OpError as error:
            raise _refusal(error) from error
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def _warm_up(self, path):
        from tensorflow_serving.apis import prediction_log_pb2

        if not path.is_file():
            return
        for record in tf.data.TFRecordDataset(str(path)):
            log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
            request = log.predict_log.request
            inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
            self.compute(request.model_spec.signature_name, inputs)


def _refusal(error):
    """What an error of the graph tells the asker: its own words, without the names of nodes."""
    code = error_codes_pb2.Code.Name(error.error_code)
    told = str(error.message).replace("<stack traces unavailable>", "").partition("\n\t [[")[0]
    lines = [line.strip() for line in told.splitlines()]
    told = " ".join(line for line in lines if line and not line.startswith(_OF_THE_GRAPH))
    return RequestError(code if code in HTTP_STATUS else "INTERNAL", told or code)


class State(NamedTuple):
    """What became of a version, in the words of TensorFlow Serving's ModelVersionStatus."""

    state: str
    code: str = "OK"
    message: str = ""


class ServedModel:
    """The versions under a folder. The newest one that loads answers; others are let go.

    A request keeps the version that it came to, so that none is lost when a new one takes over.

    Attributes:
        name: what clients call it.
        states: {version: `State`} of all that were seen.
    """

    def __init__(self, name, folder):
        self.name = name
        self.states = {}
        self._folder = folder
        self._current = None
        self._failed = {}

    def refresh(self):
        """Looks at the folder; loads what is new and lets it take over.

        Returns a sentence for the user where something has changed, else None. One call at a time.

        A version that does not load is tried again once its files have changed. Where the folder of
        the one that answers is gone, the newest of those that are left takes over.
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
            except Exception as error:  # whatever is in the folder, the server goes on
                self._failed[number] = files
                message = " ".join(str(error).split())
                self.states[number] = State("END", "INTERNAL", message)
                return f"{self.name}: version {number} does not load: {message}"
            if self._current is not None:
                self.states[self._current.number] = State("END")
            self._current = version
            self.states[number] = State("AVAILABLE")
            gc.collect()  # a graph is in circles of its own, and holds its weights
            return f"{self.name}: version {number} answers."
        return None

    def version(self, number=None):
        """The `ModelVersion` that answers; `RequestError` where it is not the asked one."""
        current = self._current  # once: another may take its place meanwhile
        if current is not None and number in (None, current.number):
            return current
        asked = f"Latest({self.name})" if number is None else f"Specific({self.name}, {number})"
        raise RequestError("NOT_FOUND", f"Servable not found for request: {asked}")

    def states_of(self, number=None):
        """[(version, `State`)], the newest first; `RequestError` where there is none."""
        found = [
            (version, state)
            for version, state in sorted(self.states.items(), reverse=True)
            if number in (None, version)
        ]
        if not found:
            which = "" if number is None else f" with version {number}"
            raise RequestError(
                "NOT_FOUND", f"Could not find any versions of model {self.name}{which}"
            )
        return found


def _files(folder):
    """What tells whether a folder has changed."""
    found = []
    with contextlib.suppress(OSError):  # something may be taken away while we look
        for path in folder.rglob("*"):
            status = path.stat()
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return sorted(found)
