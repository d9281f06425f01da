"""The files of a SavedModel, of functions with their inputs."""

import contextlib
import logging
import tempfile

import tensorflow as tf

from keras_bert.base.files import scratch_folder


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
        # Of what is computed by hand (`custom_gradient`) nothing is traced backwards, which takes
        # time with each block: no gradient could be asked of rows worked on in turn anyway.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        with _told_nothing():
            tf.saved_model.save(served, str(folder), signatures=functions, options=options)


@contextlib.contextmanager
def _told_nothing():
    """TensorFlow would tell a notebook where it writes, which is aside, under a hidden name."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


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
