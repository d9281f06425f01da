"""The copy of a model that is exported in another precision."""

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.encoders.encoder import Encoder, copy_weights
from keras_bert.layers.dense import quantize_weights

# The most that outputs may be off, as a share of their own size. Rounding of a sound model is far
# below it (the table in docs/serving.md); above it something has overflowed.
_MOST = 0.25

# The inputs that are as long as a row; others (places of masks, words of spans) are few.
_LONG, _FEW = ("input_ids", "input_mask", "segment_ids"), 4


def as_exported(model, precision):
    """A task or an encoder in a precision.

    "bfloat16" and "float16" store the weights in two bytes and compute in them; logits stay
    float32. "int8" stores each dense layer's and embedding's weights in one byte, with a float32
    scale for each row or column, and computes in float32: TensorFlow multiplies whole numbers more
    slowly than these.

    Returns the model, or a copy in another precision than float32, and how far its encoder's
    outputs are off: the root of the mean squared difference as a fraction of the outputs' own.

    Raises:
        InputError: the outputs of the encoder, or of the task's head, are not numbers, or are too
            far off to be of use.
    """
    if precision == "float32":
        return model, 0.0
    config = model.get_config()
    if precision in ("bfloat16", "float16"):
        config = _changed(config, "dtype", precision)
    copy = type(model).from_config(config)
    copy_weights(model, copy)
    if hasattr(model, "tokenizer"):
        copy.tokenizer = model.tokenizer
    if precision == "int8":
        quantize_weights(copy)
    rows = some_sequences(inputs_of(model), model.config)
    expected, found = (one(rows, training=False) for one in (model, copy))
    for name in expected:
        # Of logits, which may all be near 0 where a model is undecided, 1 is a size to go by.
        difference(expected[name], found[name], precision=precision, least=1.0)
    theirs, ours = (getattr(one, "encoder", one) for one in (model, copy))
    rows = some_sequences(inputs_of(theirs), theirs.config)
    off = difference(*(run(rows)["sequence_output"] for run in (theirs, ours)), precision=precision)
    return copy, off


def inputs_of(model):
    """The symbolic inputs of a task or an encoder, by name."""
    return model.symbolic_inputs() if isinstance(model, Encoder) else model.input


def difference(expected, found, *, precision, least=0.0):
    """How far what a model says in a precision is off, as a share of what it should say.

    The share is one of `least` where what it should say is smaller.

    Raises InputError where it is too far off to be of use, or no number.
    """
    expected, found = (
        np.asarray(keras.ops.cast(values, "float32")) for values in (expected, found)
    )
    off, size = (float(np.sqrt(np.mean(x**2))) for x in (found - expected, expected))
    off = off and off / max(size, least, 1e-30)
    if not off < _MOST:  # not a number, too
        raise InputError(
            f"In {precision} the model's outputs are {off:.0%} off, too much to be of use; export "
            "it in another `precision`."
        )
    return off


def some_sequences(inputs, config):
    """Rows of random pieces for the inputs of a model, symbolic tensors by name: int32 arrays."""
    rng = np.random.default_rng(0)
    rows, length = 8, min(64, config.max_length or 64)

    def shape(name, sizes):
        last = length if name in _LONG else _FEW
        return [rows, *(size or _FEW for size in sizes[1:-1]), sizes[-1] or last]

    found = {name: np.ones(shape(name, x.shape), "int32") for name, x in inputs.items()}
    ids = found["input_ids"]
    found["input_ids"] = rng.integers(0, config.vocab_size, ids.shape).astype("int32")
    if "segment_ids" in found:
        found["segment_ids"] = np.zeros_like(found["segment_ids"])
    return found


def _changed(config, name, value):
    """A config in which every entry of a name has another value."""
    if isinstance(config, dict):
        return {
            key: value if key == name else _changed(held, name, value)
            for key, held in config.items()
        }
    return config
