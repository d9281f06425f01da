"""The files of a SavedModel, of functions with their inputs."""

import contextlib
import tempfile

import tensorflow as tf

from keras_bert.files import scratch_folder


def write_saved_model(folder, signatures):
    """Writes `Signature`s by name, and the variables that they read, into `folder`.

    Not by Keras's ExportArchive, which stores every weight twice: as Keras's variable and as the
    one of TensorFlow inside it.
    """
    with _temporary_files_beside(folder):
        functions = {
            name: tf.function(
                signature.function, input_signature=list(signature.inputs), autograph=False
            ).get_concrete_function()
            for name, signature in signatures.items()
        }
        served = tf.Module()
        read = [variable for function in functions.values() for variable in function.variables]
        served.weights = list({id(variable): variable for variable in read}.values())
        tf.saved_model.save(served, str(folder), signatures=functions)


@contextlib.contextmanager
def _temporary_files_beside(folder):
    """Keeps temporary files of the process in a hidden folder beside `folder`.

    TensorFlow uses AutoGraph when it saves, whatever it is told, and that writes Python files,
    which a kill would leave in the system's temporary folder for good.
    """
    before = tempfile.tempdir
    with scratch_folder(folder) as scratch:
        tempfile.tempdir = str(scratch)
        try:
            yield
        finally:
            tempfile.tempdir = before
