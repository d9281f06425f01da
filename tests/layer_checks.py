"""One check that every layer goes through, so that a layer's own test can be about its meaning."""

import keras
import numpy as np

from keras_bert.layers.layout import Layout
from tests.seeds import make_rng, shifted


@keras.saving.register_keras_serializable(package="tests")
class WithLayout(keras.layers.Layer):
    """Makes the layout that a layer is called with, so that it can be called with tensors alone.

    Shapes: hidden (B, S, D), input_mask (B, S) -> (B, S, D), 0 at padding.
    """

    def __init__(self, layer, *, causal=False, **kwargs):
        super().__init__(**kwargs)
        self.layer = layer
        self.causal = causal

    def build(self, hidden_shape, input_mask_shape=None):
        if not self.layer.built:
            self.layer.build((None, hidden_shape[-1]))
        self.built = True

    def call(self, hidden, input_mask, training=None):
        layout = Layout(input_mask=input_mask, causal=self.causal)
        y = layout.pad(self.layer(layout.unpad(hidden), layout=layout, training=training))
        return y * keras.ops.cast(layout.is_token[..., None], y.dtype)

    def compute_output_shape(self, hidden_shape, input_mask_shape=None):
        return hidden_shape

    def get_config(self):
        layer = keras.saving.serialize_keras_object(self.layer)
        return {**super().get_config(), "layer": layer, "causal": self.causal}

    @classmethod
    def from_config(cls, config):
        layer = keras.saving.deserialize_keras_object(config.pop("layer"))
        return cls(layer, **config)


def check_layer(
    make,
    *,
    inputs,
    output_shape,
    tmp_path,
    integer_output=False,
    mixed_output="bfloat16",
    trains=True,
):
    """Builds, calls, saves, loads and trains a layer, in float32 and in mixed bfloat16.

    Args:
        make: a function from keyword arguments of `keras.layers.Layer` to a new layer.
        inputs: arrays by argument name, in the order that `call` takes them.
        output_shape: what the call on `inputs` should give (a list of shapes for several).
        tmp_path: a folder for the saved model.
        integer_output: the outputs are not numbers that training could move.
        mixed_output: the type of the outputs under mixed_bfloat16.
        trains: the layer has weights, and one step of `fit` moves each of them.
    """
    keras.utils.set_random_seed(shifted(7))
    layer = make(name="checked")
    arrays = list(inputs.values())
    expected = [np.asarray(y) for y in keras.tree.flatten(layer(*arrays))]
    shapes = [tuple(y.shape) for y in expected]
    assert shapes == (output_shape if isinstance(output_shape, list) else [output_shape])

    symbols = {
        name: keras.Input((None,) * (x.ndim - 1), dtype=str(x.dtype), name=name)
        if x.dtype == "int32"
        else keras.Input(x.shape[1:], dtype=str(x.dtype), name=name)
        for name, x in inputs.items()
    }
    outputs = keras.tree.flatten(layer(*symbols.values()))
    for symbol, shape in zip(outputs, shapes, strict=True):
        assert len(symbol.shape) == len(shape)
        assert all(s in (None, size) for s, size in zip(symbol.shape, shape, strict=True))
    model = keras.Model(symbols, outputs)
    np.testing.assert_allclose(_first(model(inputs)), expected[0], atol=1e-6)

    path = tmp_path / "checked.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    np.testing.assert_allclose(_first(loaded(inputs)), expected[0], atol=1e-6)
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()

    if not integer_output:
        _check_mixed(make, arrays, layer, expected, mixed_output)
    if trains:
        _check_fit(model, inputs, shapes)


def _first(outputs):
    return np.asarray(keras.tree.flatten(outputs)[0])


def _check_mixed(make, arrays, layer, expected, output_dtype):
    mixed = make(name="mixed", dtype="mixed_bfloat16")
    mixed(*arrays)
    assert all(w.dtype == "float32" for w in mixed.trainable_weights)
    for target, source in zip(mixed.weights, layer.weights, strict=True):
        target.assign(source)
    y = keras.tree.flatten(mixed(*arrays))[0]
    assert keras.backend.standardize_dtype(y.dtype) == output_dtype
    symbols = [keras.KerasTensor(x.shape, dtype=str(x.dtype)) for x in arrays]
    assert keras.tree.flatten(mixed(*symbols))[0].dtype == output_dtype
    y = np.asarray(keras.ops.cast(y, "float32"))
    scale = np.abs(expected[0]).max()
    assert np.abs(y - expected[0]).max() < 0.05 * scale


def _check_fit(model, inputs, shapes):
    before = [np.array(w.value) for w in model.trainable_weights]
    assert before
    model.compile(optimizer=keras.optimizers.Adam(0.1), loss=["mse"] * len(shapes))
    rng = make_rng(1)
    targets = [rng.normal(size=shape).astype("float32") for shape in shapes]
    model.fit(inputs, targets, epochs=1, verbose=0, batch_size=shapes[0][0])
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert not np.array_equal(np.asarray(weight.value), old), f"{weight.path} did not move"
