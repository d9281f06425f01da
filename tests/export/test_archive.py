"""What writing a SavedModel leaves: temporary files belong to the export, not to the system."""

import tempfile
from pathlib import Path

import keras

from keras_bert.export.archive import write_saved_model


def test_temporary_files_lie_beside_and_are_gone_at_the_end(tmp_path, monkeypatch):
    """AutoGraph's Python files stayed in the system's temporary folder after a kill."""
    seen = []

    class Archive:
        def track(self, model):
            pass

        def write_out(self, folder, verbose):
            seen.append(Path(tempfile.gettempdir()))
            (seen[0] / "generated.py").write_text("")

    monkeypatch.setattr(keras.export, "ExportArchive", Archive)
    before = tempfile.gettempdir()
    write_saved_model(tmp_path / "1", {}, tracked=None)
    assert seen[0].parent == tmp_path and seen[0].name.startswith(".1.keras-bert-")
    assert list(tmp_path.iterdir()) == [] and tempfile.gettempdir() == before
