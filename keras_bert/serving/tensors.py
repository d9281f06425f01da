"""Tensors in requests and responses: TensorFlow Serving's JSON.

By rows, a request has `instances`, a list of examples, and the response `predictions`, a list of
the same length; by columns, `inputs` and `outputs`, an object of whole tensors. The name of a
single input or output is left out. Bytes are {"b64": "…"}
(github.com/tensorflow/serving/blob/master/tensorflow_serving/g3doc/api_rest.md).
"""

import base64
import functools
import json

import numpy as np

from keras_bert.base.files import NotJson, parse_json
from keras_bert.serving.errors import ServerError

DEFAULT_SIGNATURE = "serving_default"
ROWS, COLUMNS = "instances", "inputs"
_RESPONSES = {ROWS: "predictions", COLUMNS: "outputs"}
_KEYS = {ROWS, COLUMNS, "signature_name"}
# What JSON gives for the kinds of NumPy's numbers; true and false are not numbers.
_JSON_TYPES = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float)}

_encoder = functools.partial(json.JSONEncoder, ensure_ascii=False, allow_nan=False)
_TEXT = _encoder(default=lambda value: value.decode("utf-8", errors="replace"))
_BYTES = _encoder(default=lambda value: {"b64": base64.b64encode(value).decode("ascii")})


def read_object(body):
    """The object in a request's body; `ServerError` if it is not one.

    Starlette's `Request.json` fails on deep nesting and on numbers of thousands of digits.
    """
    try:
        request = parse_json(body)
    except NotJson as error:
        where = "" if error.line is None else f" on line {error.line}"
        raise ServerError(f"JSON Parse error{where}: {error}.") from None
    if not isinstance(request, dict):
        raise ServerError(f"The body must be an object. Received: {_json_name(request)}.")
    return request


def read_signature(request):
    """The name of the signature in a request."""
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise ServerError(f"'signature_name' must be a string. Received: {_json_name(name)}.")
    return name or DEFAULT_SIGNATURE


def read_inputs(request, specs, *, max_batch):
    """(ROWS or COLUMNS, the arrays by name) of a request.

    Args:
        request: the object in its body.
        specs: the `tf.TensorSpec` of each input of the signature, by name.
        max_batch: the largest number of examples in a request.

    Raises `ServerError` unless keys, names, types and shapes are valid.
    """
    for key in sorted(set(request) - _KEYS):
        raise ServerError(f"Unknown key {key!r}. Expected: {', '.join(sorted(_KEYS))}.")
    if (ROWS in request) == (COLUMNS in request):
        raise ServerError("Pass either 'instances', a list of examples, or 'inputs'.")
    form = ROWS if ROWS in request else COLUMNS
    columns = _columns(form, request[form], specs)
    arrays = {name: _array(name, column, specs[name]) for name, column in columns.items()}
    counts = sorted({len(array) for array in arrays.values() if array.ndim})
    if len(counts) > 1:
        raise ServerError(
            f"The inputs {', '.join(sorted(arrays))} must have the same number of examples. "
            f"Received: {' and '.join(map(str, counts))}."
        )
    if counts and counts[0] > max_batch:
        raise ServerError(
            f"The request has {counts[0]:,} examples, more than the {max_batch:,} that this server "
            "accepts. Send several requests."
        )
    return form, arrays


def _columns(form, value, specs):
    """The value of each input for all examples, by name."""
    rows = value if form == ROWS else [value]
    if not isinstance(rows, list):
        raise ServerError(f"'instances' must be a list. Received: {_json_name(rows)}.")
    named = {isinstance(row, dict) and not _is_bytes(row) for row in rows}
    expected = ", ".join(sorted(specs))
    if named == {False}:
        if len(specs) != 1:
            raise ServerError(f"Pass an object with the inputs {expected}.")
        return dict.fromkeys(specs, value)
    if False in named:
        raise ServerError("Either all instances must be objects or none.")
    for row in rows:
        for name in sorted(row.keys() - specs.keys()):
            raise ServerError(f"Unknown input {name!r}. Expected: {expected}.")
        for name in sorted(specs.keys() - row.keys()):
            raise ServerError(f"Missing input {name!r}. Expected: {expected}.")
    return {name: [row[name] for row in rows] for name in specs} if form == ROWS else value


def _array(name, value, spec):
    """Nested lists as an array.

    Raises `ServerError` for uneven lists, other types and shapes, and large numbers. `tf.constant`
    does not suffice: it takes true as 1, wraps integers that are out of range, and ends the process
    for lists that are nested 255 deep.
    """
    dtype = np.dtype(spec.dtype.as_numpy_dtype)  # strings are objects
    items = np.array(value, object)  # of uneven lists, and those nested too deep, some are lists
    shape = items.shape
    if not items.size:  # without examples the lists do not show the rank
        shape += (0,) * ((spec.shape.rank or 0) - items.ndim)
    try:
        with np.errstate(over="raise"):
            array = np.array([_checked(name, item, dtype) for item in items.ravel()], dtype)
    except (OverflowError, FloatingPointError):
        raise ServerError(f"A number of input {name!r} is not {dtype.name}.") from None
    if not spec.shape.is_compatible_with(shape):
        sizes = ", ".join("any" if size is None else str(size) for size in spec.shape)
        raise ServerError(f"Input {name!r} must have the shape [{sizes}]. Received: {list(shape)}.")
    return array.reshape(shape)


def _checked(name, item, dtype):
    """A value of JSON, as NumPy takes it; `ServerError` if it is of another type."""
    if dtype.kind == "O" and isinstance(item, str):
        return utf8_of(name, item)
    if dtype.kind == "O" and _is_bytes(item):
        try:
            return bytes_of(item["b64"])
        except ValueError:
            raise ServerError(f"A 'b64' of input {name!r} is not base64.") from None
    if type(item) in _JSON_TYPES.get(dtype.kind, ()):
        return item
    if isinstance(item, list):
        raise ServerError(
            f"The lists of input {name!r} must have equal lengths, and at most 64 levels."
        )
    expected = "string" if dtype.kind == "O" else dtype.name
    raise ServerError(f"Input {name!r} must be {expected}. Received: {_json_name(item)}.")


def utf8_of(name, text):
    """A string of an input in UTF-8. Raises `ServerError` for half of a surrogate pair."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ServerError(f"A string of input {name!r} has half of a surrogate pair.") from None


def bytes_of(text):
    """The bytes of base64, which as in TensorFlow Serving may have white space and no padding."""
    text = "".join(text.split())
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _is_bytes(value):
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def _json_name(value):
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "null" if value is None else "a number")


def write_outputs(outputs, form):
    """The bytes of a response, of arrays by name; `ServerError` if they are not batches.

    Row by row: an encoder returns millions of numbers, each of which takes a hundred bytes until it
    is text, and `json.dumps` blocks the other threads.
    """
    names = sorted(outputs)
    if form == ROWS:
        counts = {array.shape[:1] for array in outputs.values()}
        if len(counts) != 1 or () in counts:
            raise ServerError(
                "The outputs do not have one row per example. Send the request by columns, with "
                "'inputs'."
            )
        rows = zip(*(_row_texts(name, outputs[name]) for name in names), strict=True)
        answer = _list_text(_object_text(names, row) for row in rows)
    else:
        answer = _object_text(names, [_column_text(name, outputs[name]) for name in names])
    return f'{{"{_RESPONSES[form]}": {answer}}}'.encode()


def _object_text(names, texts):
    if len(names) == 1:
        return texts[0]
    pairs = zip(map(_TEXT.encode, names), texts, strict=True)
    return f"{{{', '.join(f'{name}: {text}' for name, text in pairs)}}}"


def _column_text(name, array):
    return _list_text(_row_texts(name, array)) if array.ndim else array_text(name, array)


def _list_text(texts):
    return f"[{', '.join(texts)}]"


def _row_texts(name, array):
    """Yields the JSON of each row."""
    for row in range(len(array)):
        yield array_text(name, array[row : row + 1])[
            1:-1
        ]  # without the brackets of the list of one


def array_text(name, array):
    """The JSON of an array; outputs named `…_bytes` are bytes, others text.

    NaN and the infinities, which JSON does not have, are null. TensorFlow Serving writes their
    names, which only some programs read.
    """
    if array.dtype.kind in "fV":  # V: bfloat16, whose kind NumPy does not know
        array = array.astype(np.float32) if array.dtype.kind == "V" else array
        # The shortest digits that are this number in its own type, not in a wider one.
        array = array.astype(str).astype(np.float64)
        if not np.isfinite(array).all():
            array = np.where(np.isfinite(array), array.astype(object), None)
    return (_BYTES if name.endswith("_bytes") else _TEXT).encode(array.tolist())
