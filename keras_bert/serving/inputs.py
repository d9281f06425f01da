"""The checks that inputs pass before anything is computed of them."""

import math

import numpy as np
import tensorflow as tf

from keras_bert.serving.request_error import RequestError


def numpy_type(info):
    """The NumPy type of a `TensorInfo`; strings are objects."""
    return np.dtype(tf.dtypes.as_dtype(info.dtype).as_numpy_dtype)


def rank_of(info):
    """How many axes a `TensorInfo` has; None where any number will do."""
    return None if info.tensor_shape.unknown_rank else len(info.tensor_shape.dim)


def check_names(names, infos):
    """Raises `RequestError` unless `names` are those of the `TensorInfo`s."""
    wanted = ", ".join(sorted(infos))
    unknown = sorted(set(names) - set(infos))
    if unknown:
        raise RequestError(
            "INVALID_ARGUMENT", f"There is no input {unknown[0]!r}; the inputs are {wanted}."
        )
    missing = sorted(set(infos) - set(names))
    if missing:
        raise RequestError(
            "INVALID_ARGUMENT", f"The input {missing[0]!r} is missing; the inputs are {wanted}."
        )


def check_inputs(arrays, infos, *, max_batch):
    """Raises `RequestError` where arrays are not of the types and shapes that a signature takes.

    Args:
        arrays: NumPy arrays by name.
        infos: `TensorInfo` by name.
        max_batch: examples that a request may have.
    """
    check_names(arrays, infos)
    for name, array in arrays.items():
        info = infos[name]
        wanted = numpy_type(info)
        if array.dtype != wanted:
            raise RequestError(
                "INVALID_ARGUMENT",
                f"The input {name!r} is of type {_called(array.dtype)}; it should be "
                f"{_called(wanted)}.",
            )
        _check_shape(name, array.shape, info)
    rows = {array.shape[0] for array in arrays.values() if array.ndim}
    if len(rows) > 1:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"The inputs {', '.join(sorted(arrays))} have {' and '.join(map(str, sorted(rows)))} "
            "rows; give equally many.",
        )
    if rows and max(rows) > max_batch:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"The request has {max(rows):,} examples, more than the {max_batch:,} that this server "
            "takes; ask in parts.",
        )


def array_of_proto(name, proto, *, max_values):
    """The array of a `TensorProto`. Raises `RequestError` where it is none.

    A proto may say that it holds a billion equal values in a few bytes, and none of a billion
    needs room: `max_values` bounds what is made of it.
    """
    dims = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or min(dims, default=0) < 0:
        raise RequestError("INVALID_ARGUMENT", f"The tensor {name!r} has no whole shape.")
    if math.prod(dims) > max_values:
        raise RequestError(
            "INVALID_ARGUMENT", f"The tensor {name!r} says that it has {dims} values."
        )
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise RequestError(
            "INVALID_ARGUMENT", f"The tensor {name!r} cannot be read: {error}"
        ) from None


def _check_shape(name, shape, info):
    rank = rank_of(info)
    dims = [dim.size for dim in info.tensor_shape.dim]
    fits = rank is None or (
        len(shape) == rank
        and all(size in (-1, given) for size, given in zip(dims, shape, strict=True))
    )
    if not fits:
        wanted = ", ".join("any" if size == -1 else str(size) for size in dims)
        raise RequestError(
            "INVALID_ARGUMENT",
            f"The input {name!r} has the shape {list(shape)}; it should be [{wanted}].",
        )


def _called(dtype):
    return "string" if dtype.kind == "O" else dtype.name
