"""TensorFlow Serving's REST, tested on a running server: ours, or any other; and the clients.

See conftest.py for how to name another server.
"""

import base64
import concurrent.futures
import json
import re

import numpy as np
import pytest
import requests
import tensorflow as tf

from keras_bert.serving.ask import connect
from keras_bert.serving.errors import ServerError

TEXTS = [
    "Win cash!",
    "",
    "   ",
    "Ada Été 好 🎉",
    "long text " * 300,
    "\x00 [MASK] [SEP]",
    "שלום abc",
]


@pytest.fixture(scope="module")
def local(served):
    """The same models in this process: `local(model, signature, **inputs)`."""
    loaded = {}

    def answer(model, signature="serving_default", **inputs):
        if model not in loaded:
            loaded[model] = tf.saved_model.load(str(served.models / model / "1"))
        tensors = {name: tf.constant(given) for name, given in inputs.items()}
        outputs = loaded[model].signatures[signature](**tensors)
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    return answer


@pytest.fixture(params=["rest", "grpc"])
def client(request, served):
    with connect(getattr(served, request.param), timeout=60) as client:
        yield client


def rest(served, path, body=None, data=None):
    method = "GET" if body is None and data is None else "POST"
    return requests.request(method, served.rest + path, json=body, data=data, timeout=60)


def test_the_list_for_a_server_names_every_model(served):
    listed = re.findall(r'name: "(.*)"', (served.models / "models.config").read_text())
    assert listed == ["classifier", "echo"]


def test_strings_are_answered_as_by_the_model_itself(client, local):
    expected = local("classifier", text=TEXTS)
    assert len(set(expected["label"])) == 2
    answers = client.predict("classifier", [{"text": text} for text in TEXTS])
    for row, answer in enumerate(answers):
        for name, array in expected.items():
            written = json.loads(json.dumps(array.tolist()[row], default=bytes.decode))
            assert answer[name] == pytest.approx(written, abs=1e-5), name


def test_token_ids_and_serialized_examples_are_other_inputs(client, local):
    row = {"input_ids": [2, 7, 3], "input_mask": [1, 1, 1], "segment_ids": [0, 0, 0]}
    (answer,) = client.predict("classifier", [row], signature="ids")
    inputs = {name: np.array([ids], np.int32) for name, ids in row.items()}
    expected = local("classifier", "ids", **inputs)
    assert answer["probabilities"] == pytest.approx(expected["probabilities"][0].tolist(), abs=1e-5)


def test_serialized_examples_are_bytes(client, local):
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"Win cash!"]))
    example = tf.train.Example(features=tf.train.Features(feature={"text": feature}))
    data = {"b64": base64.b64encode(example.SerializeToString()).decode()}
    (answer,) = client.predict("classifier", [{"examples": data}], signature="examples")
    assert answer["label"] == local("classifier", text=["Win cash!"])["label"][0].decode()


def test_rows_and_columns_are_equivalent(served):
    path = "/v1/models/echo/versions/1:predict"
    texts = ["a", "bb"]
    named = rest(served, path, {"instances": [{"text": text} for text in texts]}).json()
    bare = rest(served, path, {"instances": texts}).json()
    columns = rest(served, path, {"inputs": {"text": texts}}).json()
    assert named == bare == {"predictions": bare["predictions"]}
    assert [row["label"] for row in bare["predictions"]] == ["1:a", "1:bb"]
    assert columns == rest(served, path, {"inputs": texts}).json()
    turned = {name: [row[name] for row in bare["predictions"]] for name in bare["predictions"][0]}
    assert columns == {"outputs": turned}


def test_outputs_named_bytes_are_base64(client):
    text = {"b64": base64.b64encode(b"\x00\xff").decode()}
    (answer,) = client.predict("echo", [{"text_a": text, "numbers": [1, 2]}], signature="two")
    assert answer == {"text_bytes": text, "numbers": [0], "total": [2, 3]}


def test_one_version_is_available(client):
    assert client.versions("classifier") == [(1, "AVAILABLE")]


def test_the_status_in_json(served):
    status = {"error_code": "OK", "error_message": ""}
    expected = [{"version": "1", "state": "AVAILABLE", "status": status}]
    for path in ("/v1/models/echo", "/v1/models/echo/versions/1"):
        assert rest(served, path).json() == {"model_version_status": expected}


def test_metadata_is_that_of_the_saved_model(client, served):
    signature = client.signature("classifier", "serving_default")
    assert signature["inputs"] == {"text": {"dtype": "DT_STRING", "shape": [-1]}}
    assert signature["outputs"]["probabilities"] == {"dtype": "DT_FLOAT", "shape": [-1, 2]}
    ids = client.signature("classifier", "ids")["inputs"]
    assert ids["input_ids"] == {"dtype": "DT_INT32", "shape": [-1, -1]}
    whole = rest(served, "/v1/models/classifier/metadata").json()
    assert whole["model_spec"] == {"name": "classifier", "signature_name": "", "version": "1"}
    signatures = whole["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "ids", "examples"} <= set(signatures)
    assert signatures["ids"]["method_name"] == "tensorflow/serving/predict"


@pytest.mark.parametrize(
    "asked, code",
    [
        (dict(model="nobody", examples=[{"text": "a"}]), "NOT_FOUND"),
        (dict(model="echo", examples=[{"text": "a"}], version=9), "NOT_FOUND"),
        (dict(model="echo", examples=[{"texts": "a"}]), "INVALID_ARGUMENT"),
        (dict(model="echo", examples=[{"text": "a"}, {"texts": "a"}]), "INVALID_ARGUMENT"),
        (dict(model="echo", examples=[{"text": 3}]), "INVALID_ARGUMENT"),
        (dict(model="echo", examples=[{"text": {"b64": "%"}}]), "INVALID_ARGUMENT"),
        (dict(model="echo", examples=[{"text": "boom"}]), "INVALID_ARGUMENT"),
    ],
)
def test_a_rejected_request_has_the_code_of_its_error(client, asked, code):
    with pytest.raises(ServerError) as rejected:
        client.predict(**asked)
    assert rejected.value.code == code
    assert client.predict("echo", [{"text": "after"}])[0]["label"] == "1:after"


@pytest.mark.parametrize(
    "body, status",
    [
        ("{", 400),
        ("[]", 400),
        ("", 400),
        ("{}", 400),
        ('{"instances": 3}', 400),
        ('{"instances": [3]}', 400),
        ('{"instances": [["a"]]}', 400),
        ('{"instances": ["a", {"text": "b"}]}', 400),
        ('{"instances": ["a"], "inputs": ["a"]}', 400),
        ('{"instances": [{"text": "a", "more": 1}]}', 400),
        ('{"instances": ["a"], "signature_name": "nothing"}', 400),
        ('{"instances": ["a"], "signature_name": 3}', 400),
        ('{"instances": ["\\ud800"]}', 400),
        ('{"instances": [{"b64": "%%"}]}', 400),
        ('{"signature_name": "two", "inputs": {"text_a": ["a"]}}', 400),
        ('{"signature_name": "two", "inputs": {"text_a": ["a"], "numbers": [[1.5]]}}', 400),
        ('{"signature_name": "two", "inputs": {"text_a": ["a"], "numbers": [[1], [2, 3]]}}', 400),
        ("[" * 100_000, 400),
    ],
)
def test_an_invalid_body_is_an_error_in_json(served, body, status):
    answer = rest(served, "/v1/models/echo:predict", data=body)
    assert answer.status_code == status
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/v1/models/echo:predict"),
        ("POST", "/v1/models/echo"),
        ("GET", "/v1/models/echo/nothing"),
        ("GET", "/v1/models/echo/versions/one"),
    ],
)
def test_an_unknown_path_is_an_error_in_json(served, method, path):
    answer = requests.request(method, served.rest + path, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]


def test_other_methods_require_other_signatures(served):
    body = {"examples": [{"text": "a"}]}
    for method in ("classify", "regress"):
        answer = rest(served, f"/v1/models/echo:{method}", body)
        assert answer.status_code == 400 and "method_name" in answer.json()["error"]
        answer = rest(served, f"/v1/models/echo:{method}", {"signature_name": []})
        assert answer.status_code == 400 and answer.json()["error"]


def test_each_client_gets_its_own_response(served):
    def ask(number):
        texts = [f"{number} {place}" for place in range(number % 4 + 1)]
        texts += ["boom"] * (number % 9 == 0)
        with connect(served.rest, timeout=60) as client:
            try:
                answers = client.predict("echo", [{"text": text} for text in texts])
            except ServerError as error:
                assert number % 9 == 0 and error.code == "INVALID_ARGUMENT"
                return
        assert number % 9
        assert [row["label"] for row in answers] == [f"1:{text}" for text in texts]

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        list(threads.map(ask, range(120)))
