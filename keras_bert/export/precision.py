"""A model's copy in another precision: smaller weights, and faster where the processor has it."""

import warnings

import keras
import numpy as np

from keras_bert.errors import InputError

# The most that an encoder's outputs may be off, as a share of their own size. Rounding of a sound
# model is far below it (the table in docs/serving.md); above it something has overflowed.
_MOST = 0.25


def at_precision(model, precision):
    """A task or an encoder in another precision; the given one itself in float32.

    "bfloat16" and "float16" store the weights in two bytes and compute in them; logits stay
    float32. "int8" stores each dense layer's and embedding's weights in one byte, with a float32
    scale a row or column, and computes in float32: TensorFlow multiplies whole numbers more slowly
    than it does these.

    Returns the copy, and how far its encoder's outputs are off: the root of the mean squared
    difference as a share of the outputs' own.

    Raises:
        InputError: the outputs are no numbers, or are too far off to be of use.
    """
    if precision == "float32":
        return model, 0.0
    config = model.get_config()
    if precision != "int8":
        config = _with_dtype(config, precision)
    copy = type(model).from_config(config)
    for theirs, ours in zip(model.weights, copy.weights, strict=True):
        ours.assign(keras.ops.cast(theirs, ours.dtype))
    if hasattr(model, "tokenizer"):
        copy.tokenizer = model.tokenizer
    if precision == "int8":
        with warnings.catch_warnings():
            # Of each layer without a matrix: there is nothing in it to quantize.
            warnings.filterwarnings("ignore", message=".*does not have a `quantize`")
            copy.quantize(config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None))
    theirs, ours = (getattr(one, "encoder", one) for one in (model, copy))
    rows = some_rows(model.input, theirs.config)
    rows = {name: rows[name] for name in theirs.input}
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


def _with_dtype(config, dtype):
    """A config whose every "dtype" is another."""
    if isinstance(config, dict):
        return {
            key: dtype if key == "dtype" else _with_dtype(value, dtype)
            for key, value in config.items()
        }
    return config
