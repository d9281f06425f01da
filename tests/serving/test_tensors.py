"""Tensors as JSON and back, and whatever else may stand in a body."""

import base64
import json
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.serving import tensors
from keras_bert.serving.errors import ServerError
from tests.seeds import make_rng

SPECS = {
    "text": tf.TensorSpec([None], tf.string),
    "raw_bytes": tf.TensorSpec([None, None], tf.string),
    "ids": tf.TensorSpec([None, None], tf.int32),
    "shares": tf.TensorSpec([None, 2], tf.float32),
    "flags": tf.TensorSpec([None], tf.bool),
}


def arrays(rng, rows):
    width = int(rng.integers(1, 4))
    return {
        "text": np.array([f"é{'🎉' * n}\0".encode() for n in range(rows)], object),
        "raw_bytes": np.array([[rng.bytes(4)] * width for _ in range(rows)], object).reshape(
            rows, width if rows else 0
        ),
        "ids": rng.integers(-(2**31), 2**31, (rows, width if rows else 0)).astype(np.int32),
        "shares": rng.normal(size=(rows, 2)).astype(np.float32) * 10 ** rng.uniform(-30, 30),
        "flags": rng.random(rows) < 0.5,
    }


@pytest.mark.parametrize("form", [tensors.ROWS, tensors.COLUMNS])
def test_written_outputs_can_be_read_as_inputs(form):
    rng = make_rng(0)
    for rows in (1, 2, 7):
        given = arrays(rng, rows)
        (value,) = json.loads(tensors.write_outputs(given, form)).values()
        read_form, read = tensors.read_inputs({form: value}, SPECS, max_batch=7)
        assert read_form == form
        for name, array in given.items():
            assert read[name].dtype == array.dtype
            np.testing.assert_array_equal(read[name], array, err_msg=name)


@pytest.mark.parametrize("form", [tensors.ROWS, tensors.COLUMNS])
def test_a_request_without_examples_is_valid(form):
    value = [] if form == tensors.ROWS else {name: [] for name in SPECS if name != "shares"}
    specs = {name: SPECS[name] for name in SPECS if name != "shares"}
    _, read = tensors.read_inputs({form: value}, specs, max_batch=1)
    assert {len(array) for array in read.values()} == {0}


@pytest.mark.parametrize("form", [tensors.ROWS, tensors.COLUMNS])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, tf.bfloat16.as_numpy_dtype])
def test_numbers_that_are_not_finite_are_null(form, dtype):
    """Bare words, as TensorFlow Serving writes them, are not JSON for JavaScript, Go or jq."""
    scores = np.array([[0.5, np.nan], [np.inf, -np.inf]], dtype)
    written = tensors.write_outputs({"scores": scores, "ids": np.array([1, 2])}, form)

    def reject(name):
        raise AssertionError(f"{name} is not JSON")

    (outputs,) = json.loads(written, parse_constant=reject).values()
    rows = outputs["scores"] if form == tensors.COLUMNS else [row["scores"] for row in outputs]
    assert rows == [[0.5, None], [None, None]]
    one = tensors.write_outputs({"score": np.array(np.nan, dtype)}, tensors.COLUMNS)
    assert one == b'{"outputs": null}'


def test_numbers_have_the_digits_that_they_need():
    outputs = {"score": np.array([0.1, 1 / 3], np.float32)}
    assert tensors.write_outputs(outputs, tensors.ROWS) == b'{"predictions": [0.1, 0.33333334]}'


@pytest.mark.parametrize("form", [tensors.ROWS, tensors.COLUMNS])
def test_writing_takes_no_more_memory_than_the_answer_and_a_row(form):
    """On the way to text a number is one of 128 bytes; of an encoder there may be millions."""
    vectors = make_rng(2).normal(size=(64, 512)).astype(np.float32)
    tracemalloc.start()
    try:
        written = tensors.write_outputs({"a": vectors, "b": vectors[:, 0]}, form)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * len(written)


def test_bytes_that_are_not_text_are_still_json():
    outputs = {"answer": np.array([b"a\xff"], object)}
    assert json.loads(tensors.write_outputs(outputs, tensors.ROWS)) == {"predictions": ["a\ufffd"]}


def test_base64_may_have_white_space_and_no_padding():
    """Lines as `base64` writes them, and no "=": TensorFlow Serving takes both."""
    given = bytes(range(100))
    lines = base64.encodebytes(given).decode()
    for text in (lines, lines.replace("\n", ""), lines.replace("\n", "").rstrip("=")):
        request = {"inputs": [{"b64": text}]}
        _, read = tensors.read_inputs(request, {"text": SPECS["text"]}, max_batch=1)
        assert read["text"].tolist() == [given]


@pytest.mark.parametrize(
    "dtype, value",
    [(tf.int64, 2**63), (tf.int64, -(2**63) - 1), (tf.uint64, 2**64), (tf.float32, 10**400)],
)
def test_numbers_just_out_of_a_type_are_rejected(dtype, value):
    with pytest.raises(ServerError, match="is not (u?int64|float32)"):
        tensors.read_inputs(
            {"inputs": [value]}, {"number": tf.TensorSpec([None], dtype)}, max_batch=1
        )


@pytest.mark.parametrize("levels", [33, 64, 65, 255, 900])
def test_lists_with_too_many_axes_are_rejected(levels):
    deep = "a"
    for _ in range(levels):
        deep = [deep]
    with pytest.raises(ServerError, match="must have (the shape|equal lengths, and at most 64)"):
        tensors.read_inputs({"inputs": deep}, {"text": SPECS["text"]}, max_batch=1)


@pytest.mark.parametrize(
    "dtype, value",
    [
        (tf.int32, [True]),
        (tf.int32, [1.0]),
        (tf.int32, ["1"]),
        (tf.float32, [False]),
        (tf.float32, [None]),
        (tf.float32, [1e39]),
        (tf.bool, [1]),
        (tf.string, [1]),
        (tf.string, [[["a"], "b"]]),
    ],
)
def test_values_of_another_type_are_rejected(dtype, value):
    """NumPy and TensorFlow would convert most of them."""
    with pytest.raises(ServerError, match="must (be|have)|is not float32"):
        tensors.read_inputs({"inputs": value}, {"x": tf.TensorSpec([None], dtype)}, max_batch=1)


def test_any_body_is_read_or_rejected():
    """Bodies that are nearly right, with bytes changed, left out, and put twice."""
    rng = make_rng(1)
    good = [
        (b'{"instances": ["a", {"b64": "AAH/"}, "\\ud83c\\udf89"]}', ["text"]),
        (b'{"inputs": {"text": ["a"], "ids": [[1, -2]]}}', ["text", "ids"]),
        (b'{"instances": [{"text": "a", "flags": null}]}', ["text", "flags"]),
        (b'{"inputs": {"shares": [[1e30, NaN], [1, -Infinity]]}}', ["shares"]),
    ]
    read = 0
    for _ in range(4000):
        start, names = good[rng.integers(len(good))]
        body, specs = bytearray(start), {name: SPECS[name] for name in names}
        for _ in range(rng.integers(0, 4)):
            place, size = rng.integers(len(body)), rng.integers(1, 4)
            token = (b"", rng.bytes(size), bytes(body[place:][:9]), b"[", b'"', b"9" * 400)
            body[place : place + size] = token[rng.integers(len(token))]
        try:
            asked = tensors.read_object(bytes(body))
            tensors.read_signature(asked)
            tensors.read_inputs(asked, specs, max_batch=100)
            read += 1
        except ServerError as rejected:
            assert rejected.code == "INVALID_ARGUMENT" and str(rejected)
    assert read > 200, "hardly anything was read"
