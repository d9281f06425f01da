"""The exported classifier: it stands alone, and answers as the task does."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.export.saved_model import export_task
from keras_bert.export.warmup import WARMUP_FILE, prediction_log

# Only TensorFlow and TensorFlow Text; run where keras_bert cannot be found.
CLIENT = """
import json, sys
import tensorflow as tf
import tensorflow_text
folder, texts = sys.argv[1], json.load(open(sys.argv[2]))
model = tf.saved_model.load(folder)
ask = model.signatures["serving_default"]
def answer(texts):
    out = ask(text=tf.constant(texts, tf.string, shape=[len(texts)]))
    return {name: tensor.numpy().tolist() for name, tensor in out.items()}
def as_example(text):
    value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
    feature = tf.train.Features(feature={"text": value})
    return tf.train.Example(features=feature).SerializeToString()
whole = answer(texts)
single = [answer([text]) for text in texts]
examples = model.signatures["examples"](examples=tf.constant([as_example(t) for t in texts]))
broken = answer([b"good \\xff\\xfefilm", b"\\xc3", b"good film"])
print(json.dumps({
    "labels": [label.decode() for label in whole["label"]],
    "scores": whole["score"],
    "probabilities": whole["probabilities"],
    "single": [row["probabilities"][0] for row in single],
    "examples": examples["probabilities"].numpy().tolist(),
    "broken": broken["probabilities"],
    "empty_batch": {name: len(value) for name, value in answer([]).items()},
    "loaded": [name for name in sys.modules if name.split(".")[0] == "keras_bert"],
}))
"""


@pytest.fixture(scope="module")
def version(task, tmp_path_factory):
    return export_task(task, tmp_path_factory.mktemp("savedmodels") / "spam")


@pytest.fixture(scope="module")
def answered(version, texts):
    """What a fresh process that has TensorFlow and TensorFlow Text alone is answered."""
    file = version.parent.parent / "texts.json"
    file.write_text(json.dumps(texts))
    run = subprocess.run(
        [sys.executable, "-c", CLIENT, str(version), str(file)],
        capture_output=True,
        text=True,
        cwd=version.parent.parent,
        env={"TF_CPP_MIN_LOG_LEVEL": "3", "PATH": "", "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_fresh_process_gives_the_answers_of_the_task(answered, task, answers):
    assert answered["loaded"] == []
    assert answered["labels"] == [task.labels[row.argmax()] for row in answers]
    np.testing.assert_allclose(answered["probabilities"], answers, atol=1e-5)
    np.testing.assert_allclose(answered["scores"], answers.max(axis=1), atol=1e-5)


def test_any_batch_size_gives_the_same(answered, answers):
    np.testing.assert_allclose(answered["single"], answers, atol=1e-5)
    assert answered["empty_batch"] == {"label": 0, "score": 0, "probabilities": 0}


def test_bytes_that_are_not_utf8_are_dropped(answered):
    dropped, nothing, clean = answered["broken"]
    np.testing.assert_allclose(dropped, clean, atol=1e-5)
    assert np.isfinite(nothing).all()


def test_examples_signature(answered, answers):
    np.testing.assert_allclose(answered["examples"], answers, atol=1e-5)


def test_ids_signature(version, task, texts, answers):
    ids = tf.saved_model.load(str(version)).signatures["ids"]
    tokens = task.tokenizer.tokenize(texts)[:, :62]
    vocabulary = task.tokenizer.vocabulary
    for index, row in enumerate(tokens.numpy()[:4]):
        row = tf.constant([[vocabulary.cls_id, *row, vocabulary.sep_id, 0]], tf.int32)
        mask = tf.concat([tf.ones_like(row)[:, :-1], [[0]]], axis=1)
        out = ids(input_ids=row, input_mask=mask, segment_ids=tf.zeros_like(row))
        np.testing.assert_allclose(out["probabilities"][0], answers[index], atol=1e-5)


@pytest.mark.parametrize(
    "name, value, shape, message",
    [
        ("input_ids", 0, (1, 65), "A row may have at most 64 ids"),
        ("input_ids", -1, (2, 3), r"input_ids must be from 0 to \d+\."),
        ("input_ids", "vocab_size", (2, 3), r"input_ids must be from 0 to \d+\."),
        ("segment_ids", -1, (2, 3), r"segment_ids must be from 0 to 1\."),
        ("segment_ids", 2, (2, 3), r"segment_ids must be from 0 to 1\."),
        ("input_mask", 2, (2, 3), r"input_mask must be from 0 to 1\."),
        ("input_mask", 1, (2, 4), "input_mask must have the shape of input_ids"),
    ],
)
def test_ids_that_the_model_has_no_embedding_for_are_refused(
    version, config, name, value, shape, message
):
    """A gather would wrap a negative id around and answer as if nothing were wrong."""
    ids = tf.saved_model.load(str(version)).signatures["ids"]
    rows = dict.fromkeys(
        ("input_ids", "input_mask", "segment_ids"),
        tf.ones(shape if shape[1] == 65 else (2, 3), "int32"),
    )
    value = config.vocab_size if value == "vocab_size" else value
    wrong = np.ones(shape, np.int32)
    wrong[-1, -1] = value
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        ids(**{**rows, name: tf.constant(wrong)})


def test_outputs_are_dense_and_named_as_documented(version):
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    shapes = {name: spec.shape.as_list() for name, spec in signature.structured_outputs.items()}
    assert shapes == {"label": [None], "score": [None], "probabilities": [None, 3]}
    _, inputs = signature.structured_input_signature
    assert {name: (spec.shape.as_list(), spec.dtype) for name, spec in inputs.items()} == {
        "text": ([None], tf.string)
    }


def test_custom_operations_are_the_three_that_servers_have(version):
    loaded = tf.saved_model.load(str(version))
    operations = set()
    for signature in loaded.signatures.values():
        for function in signature.graph.as_graph_def().library.function:
            operations |= {node.op for node in function.node_def}
    core = {name for name in operations if name in dir(tf.raw_ops)}
    assert len(core) > 20
    assert "FastWordpieceTokenizeWithOffsets" in operations
    assert operations - core <= {
        "FastWordpieceTokenizeWithOffsets",
        "NormalizeUTF8",
        "FastBertNormalize",
    }


def test_versions_count_up_and_nothing_else_is_touched(task, version, tmp_path):
    output = version.parent
    (output / ".2.keras-bert-0123456789ab").mkdir()  # left by an export that was killed
    assert export_task(task, output, max_length=8) == output / "2"
    assert sorted(entry.name for entry in output.iterdir()) == ["1", "2"]
    shorter = tf.saved_model.load(str(output / "2")).signatures["serving_default"]
    text = tf.constant(["good film " * 30, "good film good film good film"])
    out = shorter(text=text)["probabilities"].numpy()
    np.testing.assert_allclose(out[0], out[1], atol=1e-5)


def test_warmup_requests_are_answered_by_the_model(version):
    records = list(tf.data.TFRecordDataset(str(version / WARMUP_FILE)).as_numpy_iterator())
    expected = [
        prediction_log("serving_default", {"text": texts}, model_name="spam")
        for texts in (["a text"], ["a text of many words " * 64] * 8)
    ]
    assert records == expected
    assert "max_batch_size" in (version / "batching_params.pbtxt").read_text()


def test_warmup_requests_are_what_the_official_classes_write():
    # SerializeToString(deterministic=True) of tensorflow-serving-api 2.19.1's PredictionLog for
    # model "spam", signature "serving_default", text = ["one", "x" * 130].
    reference = (
        "32ba010ab7010a170a047370616d1a0f73657276696e675f64656661756c74129b010a0474657874129201080712"
        "041202080242036f6e6542820178" + "78" * 129
    )
    written = prediction_log("serving_default", {"text": ["one", "x" * 130]}, model_name="spam")
    assert written.hex() == reference


def test_bad_output(task, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        export_task(task, tmp_path / "file")
    with pytest.raises(InputError, match=r"holds something else \(file\)"):
        export_task(task, tmp_path)
    with pytest.raises(InputError, match="`max_length` is 65, over the 64 positions"):
        export_task(task, tmp_path / "new", max_length=65)
    assert not (tmp_path / "new").exists()
