"""Tensors in requests and responses: TensorFlow Serving's JSON.

By rows, a request has `instances`, a list of examples, and the response `predictions`, a list of
the same length; by columns, `inputs` and `outputs`, an object of whole tensors. The name of a
single input or output is left out. Bytes are {"b64": "…"}
(github.com/tensorflow/serving/blob/master/tensorflow_serving/g3doc/api_rest.md).
"""

import base64
import json

import numpy as np
import tensorflow as tf

from keras_bert.base.files import NotJson, parse_json
from keras_bert.serving.errors import RequestError

ROWS, COLUMNS = "instances", "inputs"
_RESPONSES = {ROWS: "predictions", COLUMNS: "outputs"}
_KEYS = {ROWS, COLUMNS, "signature_name"}
# What JSON gives for the kinds of NumPy's numbers; true and false are not numbers.
_JSON_TYPES = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float)}


def read_object(body):
    """The object in a request's body; `RequestError` if it is not one.

    Starlette's `Request.json` fails on deep nesting and on numbers of thousands of digits.
    """
    try:
        request = parse_json(body)
    except NotJson as error:
        where = "" if error.line is None else f" on line {error.line}"
        raise RequestError(f"JSON Parse error{where}: {error}.") from None
    if not isinstance(request, dict):
        raise RequestError(f"The body must be an object. Received: {_json_name(request)}.")
    return request


def read_signature(request):
    """The name of the signature in a request; "" is the default one."""
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError(f"'signature_name' must be a string. Received: {_json_name(name)}.")
    return name


def read_inputs(request, infos, *, max_batch):
    """(ROWS or COLUMNS, the arrays by name) of a request.

    Args:
        request: the object in its body.
        infos: the `TensorInfo` of each input of the signature, by name.
        max_batch: the largest number of examples in a request.

    Raises `RequestError` unless keys, names, types and shapes are valid.
    """
    for key in sorted(set(request) - _KEYS):
        raise RequestError(f"Unknown key {key!r}. Expected: {', '.join(sorted(_KEYS))}.")
    if (ROWS in request) == (COLUMNS in request):
        raise RequestError("Pass either 'instances', a list of examples, or 'inputs'.")
    form = ROWS if ROWS in request else COLUMNS
    columns = (_columns_of_rows if form == ROWS else _columns)(request[form], infos)
    arrays = {name: _array(name, column, infos[name]) for name, column in columns.items()}
    for name, array in arrays.items():
        _check_shape(name, array.shape, tf.TensorShape(infos[name].tensor_shape))
    counts = sorted({len(array) for array in arrays.values() if array.ndim})
    if len(counts) > 1:
        raise RequestError(
            f"The inputs {', '.join(sorted(arrays))} must have the same number of examples. "
            f"Received: {' and '.join(map(str, counts))}."
        )
    if counts and counts[0] > max_batch:
        raise RequestError(
            f"The request has {counts[0]:,} examples, more than the {max_batch:,} that this server "
            "accepts. Send several requests."
        )
    return form, arrays


def _check_shape(name, shape, expected):
    """Raises `RequestError` unless a shape is compatible with a `TensorShape`."""
    if not expected.is_compatible_with(shape):
        sizes = ", ".join("any" if size is None else str(size) for size in expected.as_list())
        raise RequestError(
            f"Input {name!r} must have the shape [{sizes}]. Received: {list(shape)}."
        )


def _check_names(names, infos):
    expected = ", ".join(sorted(infos))
    for name in sorted(set(names) - set(infos)):
        raise RequestError(f"Unknown input {name!r}. Expected: {expected}.")
    for name in sorted(set(infos) - set(names)):
        raise RequestError(f"Missing input {name!r}. Expected: {expected}.")


def write_outputs(outputs, form):
    """The bytes of a response, of arrays by name; `RequestError` if they are not batches.

    Row by row: an encoder returns millions of numbers, each of which takes a hundred bytes until it
    is text, and `json.dumps` blocks the other threads.
    """
    names = sorted(outputs)
    arrays = [outputs[name] for name in names]
    if form == COLUMNS:
        columns = [
            _list_text(_rows(name, array)) if array.ndim else _text(json_values(name, array))
            for name, array in zip(names, arrays, strict=True)
        ]
        answer = columns[0]
        if len(names) > 1:
            pairs = zip(names, columns, strict=True)
            answer = f"{{{', '.join(f'{_text(name)}: {column}' for name, column in pairs)}}}"
    else:
        counts = {len(array) if array.ndim else None for array in arrays}
        if len(counts) != 1 or None in counts:
            raise RequestError(
                "The outputs do not have one row per example. Send the request by columns, with "
                "'inputs'."
            )
        rows = zip(*map(_rows, names, arrays), strict=True)
        answer = _list_text(
            row[0] if len(names) == 1 else dict(zip(names, row, strict=True)) for row in rows
        )
    return f'{{"{_RESPONSES[form]}": {answer}}}'.encode()


def _rows(name, array):
    """Yields the value of each row, as JSON has it."""
    for row in range(len(array)):
        yield json_values(name, array[row : row + 1])[0]


def _list_text(rows):
    return f"[{', '.join(map(_text, rows))}]"


def _text(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _columns(value, infos):
    if _is_named(value):
        _check_names(value, infos)
        return value
    return {_only(infos): value}


def _columns_of_rows(rows, infos):
    if not isinstance(rows, list):
        raise RequestError(f"'instances' must be a list. Received: {_json_name(rows)}.")
    if not rows:
        return {name: [] for name in infos}
    named = set(map(_is_named, rows))
    if named == {False}:
        return {_only(infos): rows}
    if named != {True}:
        raise RequestError("Either all instances must be objects or none.")
    for row in rows:
        _check_names(row, infos)
    return {name: [row[name] for row in rows] for name in infos}


def _only(infos):
    if len(infos) != 1:
        raise RequestError(f"Pass an object with the inputs {', '.join(sorted(infos))}.")
    return next(iter(infos))


def _array(name, value, info):
    """Nested lists as an array; `RequestError` for uneven lists, other types and large numbers.

    `tf.constant` does not suffice: it takes true as 1, wraps integers that are out of range, and
    ends the process for lists that are nested 255 deep.
    """
    dtype = np.dtype(tf.dtypes.as_dtype(info.dtype).as_numpy_dtype)  # strings are objects
    items = np.array(value, object)  # of uneven lists, and those nested too deep, some are lists
    shape = items.shape
    if not items.size:  # without examples the lists do not show the rank
        shape += (0,) * (len(info.tensor_shape.dim) - items.ndim)
    try:
        with np.errstate(over="raise"):
            array = np.array([_checked(name, item, dtype) for item in items.ravel()], dtype)
    except (OverflowError, FloatingPointError):
        raise RequestError(f"A number of input {name!r} is not {dtype.name}.") from None
    return array.reshape(shape)


def _checked(name, item, dtype):
    """A value of JSON, as NumPy takes it; `RequestError` if it is of another type."""
    if dtype.kind == "O" and isinstance(item, str):
        return utf8_of(name, item)
    if dtype.kind == "O" and _is_bytes(item):
        try:
            return bytes_of(item["b64"])
        except ValueError:
            raise RequestError(f"A 'b64' of input {name!r} is not base64.") from None
    if type(item) in _JSON_TYPES.get(dtype.kind, ()):
        return item
    if isinstance(item, list):
        raise RequestError(
            f"The lists of input {name!r} must have equal lengths, and at most 64 levels."
        )
    expected = "string" if dtype.kind == "O" else dtype.name
    raise RequestError(f"Input {name!r} must be {expected}. Received: {_json_name(item)}.")


def utf8_of(name, text):
    """A string of an input in UTF-8. Raises `RequestError` for half of a surrogate pair."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError(f"A string of input {name!r} has half of a surrogate pair.") from None


def bytes_of(text):
    """The bytes of base64, which as in TensorFlow Serving may have white space and no padding."""
    text = "".join(text.split())
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _is_bytes(value):
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def _is_named(value):
    return isinstance(value, dict) and not _is_bytes(value)


def json_values(name, array):
    """An array as nested lists of JSON values; outputs named `…_bytes` are bytes, others text.

    NaN and the infinities, which JSON does not have, are null. TensorFlow Serving writes their
    names, which only some programs read.
    """
    if array.dtype.kind == "O":
        write = _base64_of if name.endswith("_bytes") else _utf8_text
        array = np.frompyfunc(write, 1, 1)(array)
    elif array.dtype.kind in "fV":  # V: bfloat16, whose kind NumPy does not know
        array = array.astype(np.float32) if array.dtype.kind == "V" else array
        # The shortest digits that are this number in its own type, not in a wider one.
        array = array.astype(str).astype(np.float64)
        if not np.isfinite(array).all():
            array = np.where(np.isfinite(array), array.astype(object), None)
    return array.tolist() if isinstance(array, np.ndarray) else array


def _utf8_text(value):
    return value.decode("utf-8", errors="replace")


def _base64_of(value):
    return {"b64": base64.b64encode(value).decode("ascii")}


def _json_name(value):
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "null" if value is None else "a number")
