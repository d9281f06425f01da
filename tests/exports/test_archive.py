"""Writing a SavedModel leaves each weight once, and no temporary file."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_bert.exports.saved_model import write_saved_model
from keras_bert.tasks.signatures import Signature
from tests.seeds import make_rng


def test_every_weight_is_stored_once(tmp_path):
    layer = keras.layers.Dense(3)
    layer.build((None, 50))
    inputs = [tf.TensorSpec([None, 50], name="x")]
    signatures = {
        name: Signature(lambda x: {"y": layer(x)}, inputs, warmup=[]) for name in ("one", "two")
    }
    write_saved_model(tmp_path / "1", signatures)
    stored = tf.train.load_checkpoint(str(tmp_path / "1" / "variables" / "variables"))
    shapes = [shape for shape in stored.get_variable_to_shape_map().values() if shape]
    assert sorted(shapes) == [[3], [50, 3]]
    loaded = tf.saved_model.load(str(tmp_path / "1")).signatures["two"]
    x = make_rng(1).normal(size=(4, 50)).astype("float32")
    np.testing.assert_allclose(loaded(x=tf.constant(x))["y"], layer(x), rtol=1e-6)


def test_no_gradients_are_stored(tmp_path):
    """They took a quarter of an export's time, and more with each block."""

    @tf.custom_gradient
    def double(x):
        return 2 * x, lambda gradient: 2 * gradient

    inputs = [tf.TensorSpec([None], name="x")]
    write_saved_model(tmp_path / "1", {"one": Signature(lambda x: {"y": double(x)}, inputs)})
    assert b"grad_fn" not in (tmp_path / "1" / "saved_model.pb").read_bytes()
    loaded = tf.saved_model.load(str(tmp_path / "1")).signatures["one"]
    assert loaded(x=tf.constant([1.5]))["y"] == [3.0]


def test_temporary_files_lie_beside_and_are_gone_at_the_end(tmp_path, monkeypatch):
    """AutoGraph's Python files stayed in the system's temporary folder after a kill."""
    seen = []

    def save(module, folder, **_):
        seen.append(Path(tempfile.gettempdir()))
        (seen[0] / "generated.py").write_text("")

    monkeypatch.setattr(tf.saved_model, "save", save)
    before = tempfile.gettempdir()
    write_saved_model(tmp_path / "1", {})
    assert seen[0].parent == tmp_path and seen[0].name.startswith(".1.keras-bert-")
    assert list(tmp_path.iterdir()) == [] and tempfile.gettempdir() == before
