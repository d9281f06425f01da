"""The JSON of TensorFlow Serving's REST: tensors as nested lists, by rows or by columns.

By rows, a request has `instances`, a list of examples, and its answer `predictions`, a list as
long; by columns, `inputs` and `outputs`, an object of whole tensors. Where there is one input, or
one output, its name is left out. Bytes are {"b64": "…"}
(github.com/tensorflow/serving/blob/master/tensorflow_serving/g3doc/api_rest.md).
"""

import base64
import binascii
import json
import math

import numpy as np

from keras_bert.base.files import NotJson, parse_json
from keras_bert.serving.inputs import check_names, numpy_type, rank_of
from keras_bert.serving.request_error import RequestError

ROWS, COLUMNS = "instances", "inputs"
_ANSWERS = {ROWS: "predictions", COLUMNS: "outputs"}
_KEYS = {ROWS, COLUMNS, "signature_name"}
_MOST_AXES = 64  # of NumPy's arrays


def read_object(body):
    """The object of a JSON text. Raises `RequestError` where it is none."""
    try:
        request = parse_json(body)
    except NotJson as error:
        where = "" if error.line is None else f" on line {error.line}"
        raise RequestError("INVALID_ARGUMENT", f"JSON Parse error{where}: {error}") from None
    if not isinstance(request, dict):
        raise RequestError(
            "INVALID_ARGUMENT", f"The body is {_called(request)}; it should be an object."
        )
    return request


def read_signature(request):
    """The name of the signature that a request is for; "" is the default one."""
    unknown = sorted(set(request) - _KEYS)
    if unknown:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"There is no key {unknown[0]!r} in a request; there are {', '.join(sorted(_KEYS))}.",
        )
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError(
            "INVALID_ARGUMENT", f"signature_name is {_called(name)}; it should be a string."
        )
    return name


def read_inputs(request, infos):
    """(ROWS or COLUMNS, the arrays by name) of a request, for `TensorInfo` by name."""
    forms = [form for form in (ROWS, COLUMNS) if form in request]
    if len(forms) != 1:
        raise RequestError(
            "INVALID_ARGUMENT", "Give either 'instances', a list of examples, or 'inputs'."
        )
    (form,) = forms
    columns = (_columns_of_rows if form == ROWS else _columns)(request[form], infos)
    return form, {name: _array(name, value, infos[name]) for name, value in columns.items()}


def write_outputs(outputs, form):
    """The bytes of an answer, of arrays by name. Raises `RequestError` where they are no rows.

    Row by row: an encoder gives millions of numbers, each of which takes a hundred bytes on its way
    to text, and no other thread goes on while one piece is written.
    """
    outputs = dict(sorted(outputs.items()))
    is_one = len(outputs) == 1
    if form == COLUMNS:
        columns = [_column(name, array) for name, array in outputs.items()]
        answer = columns[0] if is_one else _object(outputs, columns)
    else:
        counts = {len(array) if array.ndim else None for array in outputs.values()}
        if len(counts) != 1 or None in counts:
            raise RequestError(
                "INVALID_ARGUMENT",
                "The outputs have not a row for each example; ask by columns, with 'inputs'.",
            )
        rows = zip(*(_rows(name, array) for name, array in outputs.items()), strict=True)
        answer = _list(row[0] if is_one else _object(outputs, row) for row in rows)
    return _object([_ANSWERS[form]], [answer]).encode("utf-8")


def _column(name, array):
    return _list(_rows(name, array)) if array.ndim else _dumped(json_values(name, array))


def _rows(name, array):
    """The JSON of each row."""
    for row in range(len(array)):
        yield _dumped(json_values(name, array[row : row + 1])[0])


def _list(texts):
    return f"[{', '.join(texts)}]"


def _object(names, texts):
    pairs = zip(map(_dumped, names), texts, strict=True)
    return f"{{{', '.join(f'{name}: {text}' for name, text in pairs)}}}"


def _dumped(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _columns(value, infos):
    if isinstance(value, dict) and not _is_bytes(value):
        check_names(value, infos)
        return value
    return {_only(infos): value}


def _columns_of_rows(rows, infos):
    if not isinstance(rows, list):
        raise RequestError(
            "INVALID_ARGUMENT", f"'instances' is {_called(rows)}; it should be a list."
        )
    if not rows:
        return {name: [] for name in infos}
    named = [isinstance(row, dict) and not _is_bytes(row) for row in rows]
    if not any(named):
        return {_only(infos): rows}
    if not all(named):
        raise RequestError(
            "INVALID_ARGUMENT", "Of the instances some are objects and some are not; give one kind."
        )
    for row in rows:
        check_names(row, infos)
    return {name: [row[name] for row in rows] for name in infos}


def _only(infos):
    if len(infos) != 1:
        names = ", ".join(sorted(infos))
        raise RequestError(
            "INVALID_ARGUMENT", f"The inputs are {names}; give them by name, as an object."
        )
    return next(iter(infos))


def _array(name, value, info):
    """Nested lists as an array. Raises `RequestError` for uneven lists and other types."""
    shape, level = [], [value]
    while any(isinstance(one, list) for one in level):
        if len(shape) == _MOST_AXES:
            raise RequestError(
                "INVALID_ARGUMENT", f"The lists of the input {name!r} are nested too deep."
            )
        sizes = {len(one) if isinstance(one, list) else None for one in level}
        if len(sizes) != 1:
            raise RequestError(
                "INVALID_ARGUMENT", f"The lists of the input {name!r} are not equally long."
            )
        shape.append(sizes.pop())
        level = [inner for one in level for inner in one]
    if not level:  # of no example there is no telling how deep it would be
        shape += [0] * ((rank_of(info) or 0) - len(shape))
    dtype = numpy_type(info)
    array = np.empty(len(level), dtype)
    array[:] = [_value(name, one, dtype) for one in level]
    return array.reshape(shape)


def _value(name, value, dtype):
    """One value of an array, of what stands in the JSON."""
    if dtype.kind == "O":
        if isinstance(value, str):
            return utf8_of(name, value)
        if _is_bytes(value):
            return _bytes(name, value["b64"])
    elif dtype.kind == "b":
        if isinstance(value, bool):
            return value
    elif type(value) is int or (type(value) is float and dtype.kind == "f"):
        if _fits(value, dtype):
            return value
        raise RequestError(
            "INVALID_ARGUMENT", f"A number of the input {name!r} is not {dtype.name}."
        )
    wanted = "string" if dtype.kind == "O" else dtype.name
    raise RequestError(
        "INVALID_ARGUMENT", f"The input {name!r} holds {_called(value)}; it should be {wanted}."
    )


def _fits(number, dtype):
    """Whether a type has room for a number; Python's integers have no end."""
    if type(number) is float and not math.isfinite(number):
        return True
    if dtype.kind == "f":
        return abs(number) <= float(np.finfo(dtype).max)
    return np.iinfo(dtype).min <= number <= np.iinfo(dtype).max


def utf8_of(name, text):
    """A string of an input in UTF-8. Raises `RequestError` for half of a surrogate pair."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"A string of the input {name!r} holds half of a surrogate pair.",
        ) from None


def _bytes(name, text):
    try:
        return bytes_of(text)
    except (binascii.Error, ValueError):
        raise RequestError(
            "INVALID_ARGUMENT", f"A 'b64' of the input {name!r} is not base64."
        ) from None


def bytes_of(text):
    """The bytes of base64, which as in TensorFlow Serving may have white space and no padding."""
    text = "".join(text.split())
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _is_bytes(value):
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def json_values(name, array):
    """An array as nested lists of what JSON has; the name of an output tells bytes from text.

    JSON has no NaN and no infinities: null is in their place. TensorFlow Serving writes their
    names, which only some programs read.
    """
    if array.dtype.kind == "O":
        write = _b64 if name.endswith("_bytes") else _text
        array = np.frompyfunc(write, 1, 1)(array)
    elif array.dtype.kind in "fV":  # V: bfloat16, whose kind NumPy does not know
        array = array.astype(np.float32) if array.dtype.kind == "V" else array
        # The shortest digits that are this number in its own type, not in a wider one.
        array = array.astype(str).astype(np.float64)
        if not np.isfinite(array).all():
            array = np.where(np.isfinite(array), array.astype(object), None)
    return array.tolist() if isinstance(array, np.ndarray) else array


def _text(value):
    return value.decode("utf-8", errors="replace")


def _b64(value):
    return {"b64": base64.b64encode(value).decode("ascii")}


def _called(value):
    """What a value of JSON is called."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "null" if value is None else "a number")
