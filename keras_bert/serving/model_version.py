"""One version of an exported model, loaded: what it takes, and what it answers."""

import tensorflow as tf

# The operations of exported tokenizers are registered by its import.
import tensorflow_text  # noqa: F401
from tensorflow.core.protobuf import error_codes_pb2, saved_model_pb2

from keras_bert.serving.model_folders import check_files
from keras_bert.serving.refusal import HTTP_STATUS, Refusal

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

        Raises `Refusal` where there is none of that name.
        """
        name = name or DEFAULT_SIGNATURE
        if name not in self._model.signatures:
            known = ", ".join(sorted(self._model.signatures))
            raise Refusal(
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

        Raises `Refusal` where the graph cannot, with what it says.
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
    return Refusal(code if code in HTTP_STATUS else "INTERNAL", told or code)
