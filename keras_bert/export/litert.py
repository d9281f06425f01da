"""Writes a model as a file for LiteRT (formerly TensorFlow Lite): token ids in, logits out.

LiteRT has no tokenizer of BERT's, so a program on a phone makes ids by itself; the operations that
it lacks are written with others while the model is traced (`for_litert`).
"""

from pathlib import Path

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.files import new_file, scratch_folder
from keras_bert.export.archive import write_saved_model
from keras_bert.export.precision import difference, inputs_of, some_rows
from keras_bert.layers.kernels.program import for_litert
from keras_bert.tasks.signatures import Signature

_SIGNATURE = "serving_default"
# How far what was written may be off in float32: another order of the same sums.
_ROUNDING = 1e-3


def export_litert(model, output, *, precision="float32", report=None):
    """Writes a task or an encoder as the file `output`, whole or not at all.

    The file takes what the model takes, by the same names, of any number and length of rows, and
    gives its outputs in float32. "float16" and "int8" store the weights so; LiteRT computes in
    float32 with the first, and rounds what it multiplies with the second ("dynamic range").

    Args:
        model: a task or an encoder.
        output: the path of a file that does not exist.
        precision: "float32", "float16" or "int8".
        report: a function that is told in a line what a precision costs.

    Returns the `Path` of the file.

    Raises:
        InputError: the file exists, LiteRT lacks the precision or an operation, or what was
            written is too far off from the model to be of use.
    """
    output = Path(output)
    if output.exists():
        raise InputError(f"The output {output} exists; give a new file.")
    if precision == "bfloat16":
        raise InputError("LiteRT has no bfloat16; give `precision` float16 or int8.")
    with scratch_folder(output) as scratch:
        written = _converted(model, precision, scratch=scratch)
    off = _difference(model, written, precision)
    if precision == "float32" and off > _ROUNDING:
        raise InputError(f"LiteRT computes something else: its outputs are {off:.1%} off.")
    if precision != "float32" and report is not None:
        report(f"In {precision} the model's outputs are {off:.1%} off those in float32.")
    with new_file(output) as aside:
        aside.write_bytes(written)
    return output


def _converted(model, precision, *, scratch):
    specs = [tf.TensorSpec(x.shape, x.dtype, name=name) for name, x in inputs_of(model).items()]

    def outputs(*inputs):
        found = model(dict(zip(inputs_of(model), inputs, strict=True)), training=False)
        return {name: tf.cast(values, tf.float32) for name, values in found.items()}

    with for_litert():
        write_saved_model(scratch, {_SIGNATURE: Signature(outputs, specs)})
    # By way of the files: converted from memory, it reads variables that nobody has filled.
    converter = tf.lite.TFLiteConverter.from_saved_model(str(scratch))
    if precision != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "float16":
        converter.target_spec.supported_types = [tf.float16]
    try:
        return converter.convert()
    except Exception as error:  # of a class that TensorFlow does not name publicly
        missing = [line for line in str(error).splitlines() if line.startswith("TF Select ops")]
        if not missing:
            raise
        raise InputError(
            f"LiteRT has no operation for a part of this model ({missing[0]})."
        ) from error


def _difference(model, written, precision):
    """How far the outputs of what was written are off: the most of any of them."""
    rows = some_rows(inputs_of(model), model.config)
    interpreter = tf.lite.Interpreter(model_content=written)
    found = interpreter.get_signature_runner()(**rows)
    expected = model(rows, training=False)
    return max(difference(expected[name], found[name], precision=precision) for name in expected)
