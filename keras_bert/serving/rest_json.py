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

from keras_bert.files import NotJson, parse_json
from keras_bert.serving.inputs import check_names, numpy_type, rank_of
from keras_bert.serving.refusal import Refusal

ROWS, COLUMNS = "instances", "inputs"
_ANSWERS = {ROWS: "predictions", COLUMNS: "outputs"}
_KEYS = {ROWS, COLUMNS, "signature_name"}


def read_object(body):
    """The object of a JSON text. Raises `Refusal` where it is none."""
    try:
        request = parse_json(body)
    except NotJson as error:
        where = "" if error.line is None else f" on line {error.line}"
        raise Refusal("INVALID_ARGUMENT", f"JSON Parse error{where}: {error}") from None
    if not isinstance(request, dict):
        raise Refusal(
            "INVALID_ARGUMENT", f"The body is {_called(request)}; it should be an object."
        )
    return request


def read_signature(request):
    """The name of the signature that a request is for; "" is the default one."""
    unknown = sorted(set(request) - _KEYS)
    if unknown:
        raise Refusal(
            "INVALID_ARGUMENT",
            f"There is no key {unknown[0]!r} in a request; there are {', '.join(sorted(_KEYS))}.",
        )
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise Refusal(
            "INVALID_ARGUMENT", f"signature_name is {_called(name)}; it should be a string."
        )
    return name


def read_inputs(request, infos):
    """(ROWS or COLUMNS, the arrays by name) of a request, for `TensorInfo` by name."""
    forms = [form for form in (ROWS, COLUMNS) if form in request]
    if len(forms) != 1:
        raise Refusal(
            "INVALID_ARGUMENT", "Give either 'instances', a list of examples, or 'inputs'."
        )
    (form,) = forms
    columns = (_columns_of_rows if form == ROWS else _columns)(request[form], infos)
    return form, {name: _array(name, value, infos[name]) for name, value in columns.items()}


def write_outputs(outputs, form):
    """The bytes of an answer, of arrays by name. Raises `Refusal` where they are no rows."""
    columns = {name: json_values(name, array) for name, array in sorted(outputs.items())}
    if form == COLUMNS:
        answer = columns if len(columns) > 1 else next(iter(columns.values()))
    else:
        counts = {len(array) if array.ndim else None for array in outputs.values()}
        if len(counts) != 1 or None in counts:
            raise Refusal(
                "INVALID_ARGUMENT",
                "The outputs have not a row for each example; ask by columns, with 'inputs'.",
            )
        answer = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        if len(columns) == 1:
            answer = next(iter(columns.values()))
    return json.dumps({_ANSWERS[form]: answer}, ensure_ascii=False).encode("utf-8")


def _columns(value, infos):
    if isinstance(value, dict) and not _is_bytes(value):
        check_names(value, infos)
        return value
    return {_only(infos): value}


def _columns_of_rows(rows, infos):
    if not isinstance(rows, list):
        raise Refusal("INVALID_ARGUMENT", f"'instances' is {_called(rows)}; it should be a list.")
    if not rows:
        return {name: [] for name in infos}
    named = [isinstance(row, dict) and not _is_bytes(row) for row in rows]
    if not any(named):
        return {_only(infos): rows}
    if not all(named):
        raise Refusal(
            "INVALID_ARGUMENT", "Of the instances some are objects and some are not; give one kind."
        )
    for row in rows:
        check_names(row, infos)
    return {name: [row[name] for row in rows] for name in infos}


def _only(infos):
    if len(infos) != 1:
        names = ", ".join(sorted(infos))
        raise Refusal(
            "INVALID_ARGUMENT", f"The inputs are {names}; give them by name, as an object."
        )
    return next(iter(infos))


def _array(name, value, info):
    """Nested lists as an array. Raises `Refusal` for uneven lists and other types."""
    shape, level = [], [value]
    while any(isinstance(one, list) for one in level):
        sizes = {len(one) if isinstance(one, list) else None for one in level}
        if len(sizes) != 1:
            raise Refusal(
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
            return _utf8(name, value)
        if _is_bytes(value):
            return _bytes(name, value["b64"])
    elif dtype.kind == "b":
        if isinstance(value, bool):
            return value
    elif type(value) is int or (type(value) is float and dtype.kind == "f"):
        if _fits(value, dtype):
            return value
        raise Refusal("INVALID_ARGUMENT", f"A number of the input {name!r} is not {dtype.name}.")
    wanted = "string" if dtype.kind == "O" else dtype.name
    raise Refusal(
        "INVALID_ARGUMENT", f"The input {name!r} holds {_called(value)}; it should be {wanted}."
    )


def _fits(number, dtype):
    """Whether a type has room for a number; Python's integers have no end."""
    if type(number) is float and not math.isfinite(number):
        return True
    bounds = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return float(bounds.min) <= number <= float(bounds.max)


def _utf8(name, text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(
            "INVALID_ARGUMENT",
            f"A string of the input {name!r} holds half of a surrogate pair.",
        ) from None


def _bytes(name, text):
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal("INVALID_ARGUMENT", f"A 'b64' of the input {name!r} is not base64.") from None


def _is_bytes(value):
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def json_values(name, array):
    """An array as nested lists of what JSON has; the name of an output tells bytes from text."""
    if array.dtype.kind == "O":
        write = _b64 if name.endswith("_bytes") else _text
        array = np.frompyfunc(write, 1, 1)(array)
    elif array.dtype.kind == "f":
        # The shortest digits that are this number in its own type, not in a wider one.
        array = array.astype(str).astype(np.float64)
    return array.tolist() if isinstance(array, np.ndarray) else array


def _text(value):
    return value.decode("utf-8", errors="replace")


def _b64(value):
    return {"b64": base64.b64encode(value).decode("ascii")}


def _called(value):
    """What a value of JSON is called."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "null" if value is None else "a number")
