"""Rename tables: one line a weight, read in either direction.

A table says, for each weight of ours, what a foreign format calls it and how it lies there. The
same lines save and load, so that a format cannot be written one way and read another.
"""

import dataclasses

import keras
import ml_dtypes
import numpy as np

from keras_bert.errors import InputError
from keras_bert.wording import counted

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)  # which is of no kind that numpy knows


@dataclasses.dataclass(frozen=True)
class Rename:
    """One weight, or with `{i}` in both names the same weight of every block.

    Attributes:
        ours: attributes from the model to the variable, "blocks.{i}.attention.query.kernel".
        theirs: the foreign name.
        shape: the shape that ours has, in letters (see `sizes_of`): "D I".
        transposed: theirs is the transpose of ours.
        folded: the shape that theirs has, where its axes are ours split or joined: "D N H".
    """

    ours: str
    theirs: str
    shape: str
    transposed: bool = False
    folded: str | None = None

    def foreign_shape(self, sizes):
        """The shape of the foreign tensor, as a tuple."""
        letters = (self.folded or self.shape).split()
        if self.transposed:
            letters = letters[::-1]
        return tuple(sizes[letter] if letter.isalpha() else int(letter) for letter in letters)


def transposed(ours, theirs, shape):
    """A line whose foreign tensor is the transpose of ours, as PyTorch's dense kernels are."""
    return Rename(ours, theirs, shape, transposed=True)


def sizes_of(config, *, labels=None):
    """What the letters of a table's shapes stand for.

    Args:
        config: a `BertConfig`.
        labels: number of classes of a task's classifier, where there is one.
    """
    return {
        "V": config.vocab_size,
        "D": config.hidden_size,
        "I": config.intermediate_size,
        "N": config.num_attention_heads,
        "H": config.hidden_size // config.num_attention_heads,
        "P": config.max_position_embeddings,
        "T": config.type_vocab_size,
        "K": config.num_hidden_layers + 1,  # hidden states: the embeddings and every block's output
        "C": labels,
    }


def expand(table, layers):
    """Writes the lines with `{i}` out for every block."""
    return [
        dataclasses.replace(line, ours=line.ours.format(i=i), theirs=line.theirs.format(i=i))
        for line in table
        for i in (range(layers) if "{i}" in line.theirs else (0,))
    ]


def check_blocks(shapes, layers, *, source):
    """Refuses a config that asks for more blocks than there can be, before a table is written out.

    Args:
        shapes: shape of each foreign tensor by name.
        layers: the number of blocks.
        source: the file or folder, for messages.

    Raises:
        InputError: there are fewer tensors than blocks.
    """
    if layers > len(shapes):
        raise InputError(
            f"{source} has {len(shapes)} tensors; its config asks for {layers} blocks "
            "(num_hidden_layers), which have more."
        )


def under(table, *, ours="", theirs=""):
    """The table with a prefix before all of our, or of their, names."""
    return [
        dataclasses.replace(line, ours=ours + line.ours, theirs=theirs + line.theirs)
        for line in table
    ]


def check_shapes(shapes, table, *, sizes, source):
    """Holds foreign shapes against a table, before a model of those sizes is built.

    Args:
        shapes: shape of each foreign tensor by name.
        table: an expanded table.
        sizes: see `sizes_of`.
        source: the file or folder, for messages.

    Raises:
        InputError: a tensor is missing, is one too many or has another shape; it is named.
    """
    expected = {line.theirs: line.foreign_shape(sizes) for line in table}
    missing = [name for name in expected if name not in shapes]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InputError(
            f"{source} lacks the tensor {missing[0]} of shape {list(expected[missing[0]])}{more}."
        )
    unknown = [name for name in shapes if name not in expected]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        raise InputError(
            f"{source} has the tensor {unknown[0]} of shape {list(shapes[unknown[0]])}{more}, "
            "which has no place in the model that its config describes."
        )
    for name, shape in expected.items():
        if tuple(shapes[name]) != shape:
            raise InputError(
                f"{source}: the tensor {name} has the shape {list(shapes[name])}; "
                f"its config asks for {list(shape)}."
            )


def assign(model, table, read):
    """Puts foreign tensors into a model's variables.

    Args:
        model: an encoder or task, built.
        table: an expanded table, its shapes checked.
        read: a function from a foreign name to an array.
    """
    for line in table:
        target = variable(model, line.ours)
        array = np.asarray(read(line.theirs)).astype("float32", copy=False)
        if line.transposed:
            array = array.T
        target.assign(array.reshape(target.shape))


def numbers(array, name, *, source):
    """A foreign tensor as it was read; InputError, which names it, where it is none of weights.

    That is, of texts or whole numbers, or with NaN or infinity in it: such weights come of a run
    that diverged, and every answer of theirs is NaN.
    """
    if array.dtype.kind != "f" and array.dtype != _BFLOAT16:
        raise InputError(
            f"{source}: the tensor {name} holds {array.dtype} values; weights should be floats."
        )
    wrong = np.size(array) - np.count_nonzero(np.isfinite(array))
    if wrong:
        raise InputError(
            f"{source}: the tensor {name} holds NaN or infinity in {counted(wrong, 'place')}; no "
            "model can answer with these weights."
        )
    return array


def gather(model, table, *, sizes):
    """A model's weights as foreign tensors: a dictionary of contiguous arrays.

    Contiguous, because safetensors writes the bytes behind an array as they lie: a transposed
    view of a square kernel would be written untransposed without a word.
    """
    tensors = {}
    for line in table:
        array = to_numpy(variable(model, line.ours))
        if line.transposed:
            array = array.T
        tensors[line.theirs] = np.ascontiguousarray(array.reshape(line.foreign_shape(sizes)))
    return tensors


def to_numpy(variable):
    """A Keras variable's value, on any backend."""
    return np.asarray(keras.ops.convert_to_numpy(variable))


def variable(model, path):
    """The variable at the end of a dotted path of attributes and list indices."""
    value = model
    for step in path.split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step)
    return value
