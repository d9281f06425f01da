"""The files of a SavedModel, of functions with their inputs."""

import keras


def write_saved_model(folder, signatures, *, tracked):
    """Writes `Signature`s by name, and the variables of the model that they call, into `folder`."""
    archive = keras.export.ExportArchive()
    archive.track(tracked)
    for name, signature in signatures.items():
        archive.add_endpoint(name, signature.function, list(signature.inputs))
    archive.write_out(str(folder), verbose=False)
