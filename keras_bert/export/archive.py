"""The files of a SavedModel, of functions with their inputs."""

import contextlib
import tempfile

import keras

from keras_bert.files import scratch_folder


def write_saved_model(folder, signatures, *, tracked):
    """Writes `Signature`s by name, and the variables of the model that they call, into `folder`."""
    archive = keras.export.ExportArchive()
    with _temporary_files_beside(folder):
        archive.track(tracked)
        for name, signature in signatures.items():
            archive.add_endpoint(name, signature.function, list(signature.inputs))
        archive.write_out(str(folder), verbose=False)


@contextlib.contextmanager
def _temporary_files_beside(folder):
    """Keeps temporary files of the process in a hidden folder beside `folder`.

    Keras and TensorFlow use AutoGraph when they save, whatever they are told, and that writes
    Python files, which a kill would leave in the system's temporary folder for good.
    """
    before = tempfile.tempdir
    with scratch_folder(folder) as scratch:
        tempfile.tempdir = str(scratch)
        try:
            yield
        finally:
            tempfile.tempdir = before
