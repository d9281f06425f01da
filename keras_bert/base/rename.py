"""Rename tables: one line per weight, which both saves and loads it.

A line has a weight's name here and in a foreign format, and how it is stored there.
"""

import dataclasses

import keras
import ml_dtypes
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)  # numpy does not count it among the floats


@dataclasses.dataclass(frozen=True)
class Rename:
    """One weight, or with `{i}` in both names the same weight of every layer.

    Attributes:
        ours: attributes from the model to the variable, "blocks.{i}.attention.projection.kernel",
            or Keras's path of it, "gru/gru_cell/kernel".
        theirs: the foreign name.
        shape: the shape of what the line moves as it is in ours, in letters: "D I".
        transposed: theirs is the transpose of ours.
        folded: the shape of theirs, if its axes are ours split or joined: "D N H".
        part: (k, n): the line moves the k-th, from 0, of n equal parts of ours along its last axis.
        their_part: (k, n): the same of theirs, along the axis that is the last one of ours.
        not_in: the layers that do not have this weight.
    """

    ours: str
    theirs: str
    shape: str
    transposed: bool = False
    folded: str | None = None
    part: tuple[int, int] | None = None
    their_part: tuple[int, int] | None = None
    not_in: tuple[int, ...] = ()

    def own_shape(self, sizes):
        """The shape of what the line moves, a list."""
        return _sizes_of(self.shape, sizes)

    def foreign_shape(self, sizes):
        """The shape of the foreign tensor, as a tuple."""
        shape = _sizes_of(self.folded or self.shape, sizes)
        if self.their_part is not None:
            shape[-1] *= self.their_part[1]
        return tuple(shape[::-1] if self.transposed else shape)


def _sizes_of(letters, sizes):
    return [sizes[letter] if letter.isalpha() else int(letter) for letter in letters.split()]


def transposed(ours, theirs, shape, **options):
    """A line whose foreign tensor is the transpose of ours, as PyTorch's dense kernels are."""
    return Rename(ours, theirs, shape, transposed=True, **options)


def expand(table, layers):
    """Writes the lines with `{i}` out for every layer that has the weight."""
    return [
        dataclasses.replace(line, ours=line.ours.format(i=i), theirs=line.theirs.format(i=i))
        for line in table
        for i in (range(layers) if "{i}" in line.theirs else (0,))
        if "{i}" not in line.theirs or i not in line.not_in
    ]


def under(table, *, theirs):
    """The table with a prefix before all foreign names."""
    return [dataclasses.replace(line, theirs=theirs + line.theirs) for line in table]


def check_shapes(shapes, table, *, sizes, source):
    """Checks foreign shapes against a table, before a model of those sizes is built.

    Args:
        shapes: shape of each foreign tensor by name.
        table: an expanded table.
        sizes: the letters of the shapes -> sizes.
        source: the file or folder, for messages.

    Raises:
        InputError: a tensor is missing, unknown or of another shape; it is named.
    """
    expected = {line.theirs: line.foreign_shape(sizes) for line in table}

    def first(names, shapes):
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        return f"the tensor {names[0]} of shape {list(shapes[names[0]])}{more}"

    missing = [name for name in expected if name not in shapes]
    if missing:
        raise InputError(f"{source} lacks {first(missing, expected)}.")
    unknown = [name for name in shapes if name not in expected]
    if unknown:
        raise InputError(
            f"{source} has {first(unknown, shapes)}, which has no place in the model that its "
            "config describes."
        )
    for name, shape in expected.items():
        if tuple(shapes[name]) != shape:
            raise InputError(
                f"{source}: the tensor {name} has the shape {list(shapes[name])}. "
                f"Its config asks for {list(shape)}."
            )


def assign(model, table, read):
    """Assigns foreign tensors to a built model's variables.

    `table` is expanded, its shapes checked; `read` is a function from a foreign name to an array.
    """
    wholes = {}  # of variables that several lines fill in parts
    for line in table:
        target = variable(model, line.ours)
        array = np.asarray(read(line.theirs)).astype("float32", copy=False)
        if line.transposed:
            array = array.T
        if line.their_part is not None:
            array = _part(array, line.their_part)
        if line.part is None:
            target.assign(array.reshape(target.shape))
            continue
        if line.ours not in wholes:
            wholes[line.ours] = np.empty(target.shape, np.float32)
        part = _part(wholes[line.ours], line.part)
        part[...] = array.reshape(part.shape)
    for path, whole in wholes.items():
        variable(model, path).assign(whole)


def _part(array, part):
    """A view of the k-th of n equal parts of an array, along its last axis."""
    k, n = part
    size = array.shape[-1] // n
    return array[..., k * size : (k + 1) * size]


def numbers(array, name, *, source):
    """A foreign tensor as it was read; InputError, which names it, if it does not hold weights.

    That is, if it holds texts or whole numbers, or NaN or infinity, which a run that diverged
    leaves: all predictions with such weights are NaN.
    """
    if array.dtype.kind != "f" and array.dtype != _BFLOAT16:
        raise InputError(
            f"{source}: the tensor {name} holds {array.dtype} values. Weights should be floats."
        )
    wrong = np.size(array) - np.count_nonzero(np.isfinite(array))
    if wrong:
        raise InputError(
            f"{source}: the tensor {name} holds NaN or infinity in {counted(wrong, 'place')}. No "
            "model can predict with these weights."
        )
    return array


def gather(model, table, *, sizes):
    """A model's weights as foreign tensors: a dictionary of contiguous arrays.

    Contiguous, because safetensors writes the bytes behind an array in their order in memory: a
    transposed view of a square kernel would be written untransposed, without an error.
    """
    tensors, wholes = {}, {}  # `wholes` are foreign tensors that several lines fill in parts
    for line in table:
        array = to_numpy(variable(model, line.ours))
        if line.part is not None:
            array = _part(array, line.part)
        shape = line.foreign_shape(sizes)
        if line.their_part is None:
            array = array.T if line.transposed else array
            # Not `ascontiguousarray`, which gives a scalar an axis.
            tensors[line.theirs] = np.asarray(array.reshape(shape), order="C")
            continue
        if line.theirs not in wholes:
            untransposed = shape[::-1] if line.transposed else shape
            wholes[line.theirs] = np.empty(untransposed, array.dtype), line.transposed
        part = _part(wholes[line.theirs][0], line.their_part)
        part[...] = array.reshape(part.shape)
    for name, (whole, is_transposed) in wholes.items():
        tensors[name] = np.ascontiguousarray(whole.T if is_transposed else whole)
    return tensors


def to_numpy(variable):
    """A Keras variable's value, on any backend."""
    return np.asarray(keras.ops.convert_to_numpy(variable))


def variable(model, path):
    """The variable at a dotted path of attributes and list indices, or with Keras's path."""
    if "/" in path:
        return weights_by_path(model)[path]
    value = model
    for step in path.split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step)
    return value


def weights_by_path(model):
    """A model's weights by Keras's paths, with merged kernels if layers have LoRA.

    A and B are there, too.
    """
    weights = {weight.path: weight for weight in model.weights}
    for layer in model._flatten_layers():
        if getattr(layer, "lora_enabled", False):
            weights[layer._kernel.path] = layer.kernel
    return weights
