"""The copy of a model that is exported: in another precision, query, key and value in one layer."""

import warnings

import keras
import numpy as np

from keras_bert.errors import InputError

# The most that an encoder's outputs may be off, as a share of their own size. Rounding of a sound
# model is far below it (the table in docs/serving.md); above it something has overflowed.
_MOST = 0.25

_PARTS = ("query", "key", "value")


def as_exported(model, precision):
    """A task or an encoder in a precision, whose blocks have query, key and value in one layer.

    One product of three times the width is a sixth faster than three, for a text of 100 tokens and
    a width of 384.

    "bfloat16" and "float16" store the weights in two bytes and compute in them; logits stay
    float32. "int8" stores each dense layer's and embedding's weights in one byte, with a float32
    scale a row or column, and computes in float32: TensorFlow multiplies whole numbers more slowly
    than it does these.

    Returns the copy, and how far its encoder's outputs are off: the root of the mean squared
    difference as a share of the outputs' own.

    Raises:
        InputError: the outputs are no numbers, or are too far off to be of use.
    """
    config = _changed(model.get_config(), "joined", True)
    if precision in ("bfloat16", "float16"):
        config = _changed(config, "dtype", precision)
    copy = type(model).from_config(config)
    _assign_weights(copy, model)
    if hasattr(model, "tokenizer"):
        copy.tokenizer = model.tokenizer
    if precision == "float32":
        return copy, 0.0
    if precision == "int8":
        with warnings.catch_warnings():
            # Of each layer without a matrix: there is nothing in it to quantize.
            warnings.filterwarnings("ignore", message=".*does not have a `quantize`")
            copy.quantize(config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None))
    theirs, ours = (getattr(one, "encoder", one) for one in (model, copy))
    rows = some_rows(theirs.input, theirs.config)
    off = difference(*(run(rows)["sequence_output"] for run in (theirs, ours)), precision=precision)
    return copy, off


def difference(expected, found, *, precision):
    """How far what a model says in a precision is off, as a share of what it should say.

    Raises InputError where it is too far off to be of use, or no number.
    """
    expected, found = (
        np.asarray(keras.ops.cast(values, "float32")) for values in (expected, found)
    )
    off = float(np.sqrt(np.mean((found - expected) ** 2) / np.mean(expected**2)))
    if not off < _MOST:  # not a number, too
        raise InputError(
            f"In {precision} the model's outputs are {off:.0%} off, too much to be of use; export "
            "it in another `precision`."
        )
    return off


def some_rows(inputs, config):
    """Rows of random pieces for the inputs of a model, symbolic tensors by name: int32 arrays."""
    rng = np.random.default_rng(0)
    rows, length = 8, min(64, config.max_length)
    shapes = {
        name: [size or (rows if axis == 0 else length) for axis, size in enumerate(tensor.shape)]
        for name, tensor in inputs.items()
    }
    found = {name: np.ones(shape, "int32") for name, shape in shapes.items()}
    found["input_ids"] = rng.integers(0, config.vocab_size, shapes["input_ids"]).astype("int32")
    found["segment_ids"] = np.zeros(shapes["segment_ids"], "int32")
    return found


def _changed(config, name, value):
    """A config in which every entry of a name has another value."""
    if isinstance(config, dict):
        return {
            key: value if key == name else _changed(held, name, value)
            for key, held in config.items()
        }
    return config


def _assign_weights(copy, model):
    """Gives a copy with joined projections the weights of a model, joined or not."""
    theirs = {weight.path: weight for weight in model.weights}
    for ours in copy.weights:
        parts = [ours.path]
        if ours.path not in theirs:
            parts = [ours.path.replace("query_key_value", part) for part in _PARTS]
        values = [keras.ops.cast(theirs.pop(path), ours.dtype) for path in parts]
        ours.assign(keras.ops.concatenate(values, axis=-1))
    if theirs:
        raise ValueError(f"The copy has no place for {[*theirs]}.")
