"""The copy of a model that is exported in another precision."""

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.encoders.encoder import Encoder, copy_weights
from keras_bert.layers.dense import quantize_weights, without_random_weights

# The largest allowed error of the outputs, relative to their size. Rounding in a sound model is far
# below it (the table in docs/serving.md); above it something has overflowed.
_MAX_ERROR = 0.25

# The inputs with one value per token; others (masked positions, words of spans) have few.
_PER_TOKEN, _FEW = ("input_ids", "input_mask", "segment_ids"), 4


def as_exported(model, precision):
    """A task or an encoder in a precision.

    "bfloat16" and "float16" store the weights in two bytes and compute in them; logits stay
    float32. "int8" stores each dense layer's and embedding's weights in one byte, with a float32
    scale for each row or column, and computes in float32: TensorFlow multiplies whole numbers more
    slowly than these.

    Returns the model, or a copy in another precision than float32 or with LoRA merged, and the
    relative error of its encoder's outputs: the root of the mean squared difference as a fraction
    of the outputs' own.

    Raises:
        InputError: the outputs of the encoder, or of the task's head, are not finite, or their
            error is too large.
    """
    encoder = getattr(model, "encoder", model)
    if precision == "float32" and encoder.lora is None:
        return model, 0.0
    config = model.get_config()
    if precision in ("bfloat16", "float16"):
        config = _with_dtype(config, precision)
    with without_random_weights():
        copy = type(model).from_config(config)
    copy_weights(model, copy)
    if hasattr(model, "tokenizer"):
        copy.tokenizer = model.tokenizer
    if precision == "float32":  # LoRA is merged
        return copy, 0.0
    if precision == "int8":
        quantize_weights(copy)
    inputs = some_sequences(inputs_of(model), model.config)
    expected, outputs = (one(inputs, training=False) for one in (model, copy))
    for name in expected:
        # Logits may all be near 0 if a model is undecided: their error is relative to 1 at least.
        difference(expected[name], outputs[name], precision=precision, min_size=1.0)
    encoder, encoder_copy = (getattr(one, "encoder", one) for one in (model, copy))
    inputs = some_sequences(inputs_of(encoder), encoder.config)
    expected, outputs = (one(inputs)["sequence_output"] for one in (encoder, encoder_copy))
    return copy, difference(expected, outputs, precision=precision)


def inputs_of(model):
    """The symbolic inputs of a task or an encoder, by name."""
    return model.symbolic_inputs() if isinstance(model, Encoder) else model.input


def difference(expected, outputs, *, precision, min_size=0.0):
    """The error of outputs in a precision, relative to the size of those in float32.

    It is relative to `min_size` if they are smaller.

    Raises InputError if it is too large or not finite.
    """
    expected, outputs = (np.asarray(keras.ops.cast(x, "float32")) for x in (expected, outputs))
    error, size = (float(np.sqrt(np.mean(x**2))) for x in (outputs - expected, expected))
    error = error and error / max(size, min_size, 1e-30)
    if not error < _MAX_ERROR:  # also if it is not a number
        raise InputError.naming(
            "In {} the model's outputs are {:.0%} off, too much to be useful. Export it in "
            "another {precision}.",
            precision,
            error,
        )
    return error


def some_sequences(inputs, config):
    """Sequences of random tokens for a model's symbolic inputs: int32 arrays by name."""
    rng = np.random.default_rng(0)
    count, length = 8, min(64, config.max_length or 64)

    def shape(name, sizes):
        last = length if name in _PER_TOKEN else _FEW
        return [count, *(size or _FEW for size in sizes[1:-1]), sizes[-1] or last]

    arrays = {name: np.ones(shape(name, x.shape), "int32") for name, x in inputs.items()}
    ids = arrays["input_ids"]
    arrays["input_ids"] = rng.integers(0, config.vocab_size, ids.shape).astype("int32")
    if "segment_ids" in arrays:
        arrays["segment_ids"] = np.zeros_like(arrays["segment_ids"])
    return arrays


def _with_dtype(config, dtype):
    """A config of Keras in which every `dtype`, however deep, is this one."""
    if isinstance(config, dict):
        return {
            key: dtype if key == "dtype" else _with_dtype(value, dtype)
            for key, value in config.items()
        }
    return config
