"""`keras-bert serve` and `keras-bert ask` as a person types them."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_bert.cli import main as cli
from keras_bert.serving import given_names
from keras_bert.serving.model_version import model_folders, version_folders
from tests.serving.grpc_service import serving, serving_models
from tests.serving.running import running


@pytest.fixture(scope="module")
def server(echo_folder):
    """A development server, and the tests' gRPC service of the same model as `grpc`."""
    with running(models=[echo_folder / "echo"]) as server, serving_models(echo_folder) as address:
        server.grpc = address
        yield server


def ask(capsys, *arguments):
    assert cli.main(["ask", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_texts_and_files_are_sent_in_order(server, protocol, tmp_path, capsys):
    url = getattr(server, protocol)
    answers = ask(capsys, url, "--model", "echo", "--text", "one", "--text", "zwölf")
    assert [answer["label"] for answer in answers] == ["1:one", "1:zwölf"]
    lines = [{"text": f"line {number}"} for number in range(7)]
    file = tmp_path / "examples.jsonl"
    file.write_text("\n\n".join(map(json.dumps, lines)), encoding="utf-8")
    more = ask(capsys, url, "--model", "echo", "--data", str(file), "--batch-size", "3")
    assert [answer["label"] for answer in more] == [f"1:line {number}" for number in range(7)]
    assert set(more[0]) == {"label", "score", "probabilities"}


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_a_time_out_may_be_of_any_length(server, protocol, capsys):
    url = getattr(server, protocol)
    (answer,) = ask(capsys, url, "--model", "echo", "--text", "one", "--timeout", "1e12")
    assert answer["label"] == "1:one"


def test_metadata_has_the_inputs_and_outputs_of_a_model(server, capsys):
    (metadata,) = ask(capsys, server.rest, "--model", "echo", "--metadata", "--signature", "two")
    assert metadata["versions"] == {"1": "AVAILABLE"}
    assert metadata["inputs"] == {
        "numbers": {"dtype": "DT_INT32", "shape": [-1, -1]},
        "text_a": {"dtype": "DT_STRING", "shape": [-1]},
    }
    assert set(metadata["outputs"]) == {"numbers", "text_bytes", "total"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["localhost:8501", "--text", "a"], "Invalid address"),
        (["http://[::1", "--text", "a"], "Invalid address"),
        (["http://127.0.0.1:99999", "--text", "a"], "cannot be reached"),
        (["http://127.0.0.1:1", "--text", "a"], "cannot be reached"),
        (["grpc://127.0.0.1:1", "--text", "a"], "cannot be reached"),
        (["REST", "--text", "boom"], "No text may be boom"),
        (["REST", "--text", "a", "--version", "4"], "Specific(echo, 4)"),
        (["GRPC", "--text", "a", "--signature", "x"], '"x" not found in signature def'),
        (["REST"], "Pass exactly one of --data"),
        (
            ["REST", "--question", "a", "--question", "b", "--context", "c"],
            "same length. Received: 2 and 1.",
        ),
        (["REST", "--data", "FILE"], "line 2: not JSON"),
        (["REST", "--text", "a", "--signature", "\udcff"], ". It should be UTF-8"),
        (["GRPC", "--text", "a", "--signature", "\udcff"], ". It should be UTF-8"),
    ],
)
def test_errors_are_one_sentence(server, arguments, message, tmp_path, capsys):
    (tmp_path / "bad").write_text('{"text": "a"}\n{"text"\n')
    places = {"REST": server.rest, "GRPC": server.grpc, "FILE": str(tmp_path / "bad")}
    arguments = [places.get(argument, argument) for argument in arguments]
    assert cli.main(["ask", *arguments, "--model", "echo", "--timeout", "5"]) == 2
    output = capsys.readouterr().err
    assert output.startswith("keras-bert: ") and message in output and output.count("\n") == 1


def metadata_of(inputs, outputs):
    signature = {"inputs": inputs, "outputs": outputs}
    return {"metadata": {"signature_def": {"signature_def": {"serving_default": signature}}}}


def tensor(*dim):
    return {"dtype": "DT_FLOAT", "tensor_shape": {"dim": list(dim)}}


METADATA = metadata_of({}, {"a": tensor()})


@pytest.fixture
def answering():
    """`answering(body, status=200, metadata=…)`: the address of a server that says nothing else."""
    servers = []

    def start(body, *, status=200, metadata=METADATA):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                is_asked = self.path.endswith(":predict")
                written = body if is_asked else json.dumps(metadata).encode()
                self.send_response(status if is_asked else 200)
                self.send_header("Content-Length", str(len(written)))
                self.end_headers()
                self.wfile.write(written)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        servers.append(http.server.HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"[]",
        b"3",
        b"\xff",
        b"<html>",
        b"[" * 100_000,
        b'{"predictions": null}',
        b'{"predictions": {}}',
        b'{"predictions": []}',
        b'{"predictions": [{}, {}]}',
        b'{"predictions": ' + b"9" * 5000 + b"}",
        b'{"outputs": [1]}',
    ],
)
@pytest.mark.parametrize("status", [200, 500])
def test_an_unexpected_response_is_one_sentence(answering, body, status, capsys):
    url = answering(body, status=status)
    assert cli.main(["ask", url, "--model", "echo", "--text", "a"]) == 2
    output = capsys.readouterr()
    assert output.err.startswith(f"keras-bert: {url} ") and output.err.count("\n") == 1
    assert output.out == ""


def test_a_table_is_told_that_objects_are_sent(answering, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("text\na\n")
    arguments = ["--model", "echo", "--data", str(tmp_path / "a.csv")]
    assert cli.main(["ask", answering(b"{}"), *arguments]) == 2
    assert 'one object per line, such as {"text": "a text"}' in capsys.readouterr().err


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"metadata": None},
        metadata_of({}, []),
        metadata_of({"a": 3}, {}),
        metadata_of({"a": tensor({"size": "x"})}, {}),
        {"model_version_status": [{"version": "one", "state": "END"}]},
        {"model_version_status": [3]},
    ],
)
def test_unexpected_metadata_is_one_sentence(answering, metadata, capsys):
    for more in (["--text", "a"], ["--metadata"]):
        url = answering(b'{"predictions": [1]}', metadata=metadata)
        assert cli.main(["ask", url, "--model", "echo", *more]) == 2
        output = capsys.readouterr()
        assert "does not respond like TensorFlow Serving" in output.err and output.out == ""


def test_unusual_predictions_are_printed(answering, capsys):
    for body, line in (
        (b'{"predictions": ["a\\ud800"]}', '{"a": "a\\ud800"}'),
        (b'{"predictions": [NaN]}', '{"a": null}'),
        (b'{"predictions": [{"b64": "AAH/"}]}', '{"a": {"b64": "AAH/"}}'),
    ):
        assert cli.main(["ask", answering(body), "--model", "echo", "--text", "a"]) == 0
        assert capsys.readouterr().out == line + "\n"
    deep = b'{"predictions": [{"a": ' + b"[" * 800 + b"]" * 800 + b"}]}"
    status = cli.main(["ask", answering(deep), "--model", "echo", "--text", "a"])
    assert status in (0, 2) and "Traceback" not in capsys.readouterr().err


def shaped(*sizes, dtype=tf.int32, number=1):
    """A proto of a few bytes, with one number, that says that it has a shape."""
    proto = TensorProto(dtype=dtype.as_datatype_enum, int_val=[number])
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    return proto


class _OddService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers with the outputs `{name: TensorProto}`, and knows no signature but the default."""

    def __init__(self, outputs, *, has_metadata=True):
        self._outputs = outputs
        self._has_metadata = has_metadata

    def Predict(self, request, context):
        answer = predict_pb2.PredictResponse()
        for name, proto in self._outputs.items():
            answer.outputs[name].CopyFrom(proto)
        return answer

    def GetModelMetadata(self, request, context):
        answer = get_model_metadata_pb2.GetModelMetadataResponse()
        if self._has_metadata:
            signatures = get_model_metadata_pb2.SignatureDefMap()
            signatures.signature_def["serving_default"].inputs["text"].dtype = 7
            answer.metadata["signature_def"].Pack(signatures)
        return answer


@pytest.mark.parametrize(
    "outputs, options",
    [
        ({}, {}),
        ({"a": tf.make_tensor_proto([1, 2])}, {}),
        ({"a": tf.make_tensor_proto(1)}, {}),
        ({"a": tf.make_tensor_proto([1]), "b": tf.make_tensor_proto([], tf.int32)}, {}),
        ({"a": tf.make_tensor_proto([1]), "b": TensorProto(dtype=999)}, {}),
        ({"a": shaped(1, 10**12)}, {}),
        ({"a": shaped(1, -1)}, {}),
        ({"a": shaped(10**9, 10**9)}, {}),
        ({"a": shaped(1, dtype=tf.uint8, number=300)}, {}),
        ({"a": shaped(1, dtype=tf.resource)}, {}),
        ({"a": tf.make_tensor_proto([1])}, {"has_metadata": False}),
    ],
)
def test_an_unexpected_response_over_grpc_is_one_sentence(outputs, options, capsys):
    with serving(_OddService(outputs, **options)) as url:
        assert cli.main(["ask", url, "--model", "echo", "--text", "a"]) == 2
    output = capsys.readouterr()
    assert "does not respond like TensorFlow Serving" in output.err and output.out == ""


def test_ask_takes_every_text_that_predict_takes():
    assert given_names() == ("text", "text_a", "text_b", "question", "context")


def test_padding_is_left_out_of_predictions():
    from keras_bert.serving.ask import _without_padding

    padded = {"words": ["a", "b", ""], "starts": [0, 2, 0], "lengths": 2, "score": 1.0}
    assert _without_padding(padded) == {"words": ["a", "b"], "starts": [0, 2], "score": 1.0}


def test_folders_without_models_are_rejected(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty" / "1").mkdir(parents=True)
    for folder, message in (
        (tmp_path / "none", "No exported model"),
        (tmp_path / "file", "No exported model"),
        (tmp_path / "empty", "empty: version 1 could not be loaded"),
    ):
        assert cli.main(["serve", "--models", str(folder)]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a:b", "a\nb", "a\x1b[31m", "a\u202eb", "a\u2028b"])
def test_a_folder_whose_name_is_not_a_model_name_is_rejected(name, tmp_path, capsys):
    folder = tmp_path / name
    (folder / "1").mkdir(parents=True)
    for given in (tmp_path, folder):
        assert cli.main(["serve", "--models", str(given)]) == 2
        output = capsys.readouterr().err
        assert (
            "is not a valid model name" in output
            and output.count("\n") == 1
            and output[:-1].isprintable()
        )


def test_a_folder_whose_name_is_not_utf_8_is_rejected(tmp_path, capsys):
    folder = tmp_path / os.fsdecode(b"a\xff")
    (folder / "1").mkdir(parents=True)
    for given, message in ((tmp_path, "is not a valid model name"), (folder, "It should be UTF-8")):
        assert cli.main(["serve", "--models", str(given)]) == 2
        output = capsys.readouterr().err
        assert message in output and output.count("\n") == 1 and output[:-1].isprintable()


def test_versions_are_numbers_of_64_bits(tmp_path, capsys):
    """A larger one would be no answer to a question for the status."""
    for name in (2**63, 10**200, "١", "-1", "1_0", "v1"):
        (tmp_path / "model" / str(name)).mkdir(parents=True)
    assert cli.main(["serve", "--models", str(tmp_path)]) == 2
    assert "No exported model" in capsys.readouterr().err
    (tmp_path / "model" / str(2**63 - 1)).mkdir()
    assert [path.name for path in version_folders(tmp_path / "model")] == [str(2**63 - 1)]


def test_a_model_has_the_name_of_its_folder_and_not_of_a_link_target(echo_folder, tmp_path):
    (tmp_path / "linked").symlink_to(echo_folder / "echo")
    assert list(model_folders([tmp_path])) == ["linked"]
    assert list(model_folders([tmp_path / "linked" / "1" / ".."])) == ["linked"]


def test_two_models_of_one_name_are_rejected(echo_folder, capsys):
    assert cli.main(["serve", "--models", str(echo_folder), str(echo_folder / "echo")]) == 2
    assert "have the same model name echo" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, missing, module",
    [
        (["serve", "--models", "models"], "uvicorn", "development_server"),
        (["ask", "http://x", "--model", "m", "--text", "a"], "requests", "rest_client"),
        (["ask", "grpc://x", "--model", "m", "--text", "a"], "tensorflow_serving", "grpc_client"),
    ],
)
def test_a_missing_extra_is_reported(arguments, missing, module, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, f"keras_bert.serving.{module}", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert cli.main(arguments) == 2
    output = capsys.readouterr().err
    assert f"needs {missing}, which" in output and "keras-bert-toolkit[serve]" in output


def test_the_flag_of_grpc_names_its_replacement(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["serve", "--models", "models", "--grpc-port", "8500"])
    assert stopped.value.code == 2
    message = (
        "--grpc-port was removed. Use --rest-port, or TensorFlow Serving, which also speaks gRPC."
    )
    assert message in capsys.readouterr().err


def test_it_serves_until_it_is_stopped(echo_folder):
    """Starts a process, since signals are handled in its main thread."""
    command = [sys.executable, "-m", "keras_bert", "serve"]
    command += ["--models", str(echo_folder), "--rest-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch = threading.Timer(120, process.kill)
    watch.start()
    try:
        lines = [process.stdout.readline() for _ in range(4)]
        assert "for development" in lines[1] and "http://127.0.0.1:" in lines[2]
        os.kill(process.pid, signal.SIGINT)
        _, output = process.communicate(timeout=60)
    finally:
        watch.cancel()
        process.kill()
    assert process.returncode == 130
    assert output == "keras-bert: Stopped. All running requests were answered.\n"
