"""The versions of an exported classifier: what they hold, and what they may stand beside.

What every kind of model has in common is in tests/exports.
"""

import gc
import re

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_bert.base.ownership import lock_folder
from keras_bert.cli.main import main
from keras_bert.exports import PRECISIONS, saved_model
from keras_bert.exports.precision import as_exported
from keras_bert.exports.saved_model import export, export_task
from keras_bert.exports.server_files import WARMUP_FILE, prediction_log
from tests.messages import raises_input_error
from tests.seeds import make_rng


@pytest.fixture(scope="module")
def version(task, tmp_path_factory):
    return export_task(task, tmp_path_factory.mktemp("savedmodels") / "spam")


@pytest.fixture(scope="module")
def signatures(version):
    return tf.saved_model.load(str(version)).signatures


def test_bytes_that_are_not_utf8_are_dropped(signatures):
    texts = tf.constant([b"good \xff\xfefilm", b"\xc3", b"good film"])
    dropped, nothing, clean = signatures["serving_default"](text=texts)["probabilities"].numpy()
    np.testing.assert_allclose(dropped, clean, atol=1e-5)
    assert np.isfinite(nothing).all()


def test_ids_signature(signatures, task, texts, predictions):
    ids = signatures["ids"]
    tokens = task.tokenizer.tokenize(texts)[:, :62]
    vocabulary = task.tokenizer.vocabulary
    for index, row in enumerate(tokens.numpy()[:4]):
        row = tf.constant([[vocabulary.cls_id, *row, vocabulary.sep_id, 0]], tf.int32)
        mask = tf.concat([tf.ones_like(row)[:, :-1], [[0]]], axis=1)
        out = ids(input_ids=row, input_mask=mask, segment_ids=tf.zeros_like(row))
        np.testing.assert_allclose(out["probabilities"][0], predictions[index], atol=1e-5)


def test_outputs_are_dense_and_named_as_documented(signatures):
    signature = signatures["serving_default"]
    shapes = {name: spec.shape.as_list() for name, spec in signature.structured_outputs.items()}
    assert shapes == {
        "label": [None],
        "score": [None],
        "probabilities": [None, 3],
        "labels": [None, 3],
    }
    _, inputs = signature.structured_input_signature
    assert {name: (spec.shape.as_list(), spec.dtype) for name, spec in inputs.items()} == {
        "text": ([None], tf.string)
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


def test_two_exports_at_once_are_two_versions(task, tmp_path, monkeypatch):
    """Each took its number before it computed for seconds; the later one replaced the other's."""
    output, as_exported = tmp_path / "models" / "spam", saved_model.as_exported

    def meanwhile(*arguments):
        monkeypatch.setattr(saved_model, "as_exported", as_exported)
        assert export_task(task, output) == output / "1"
        return as_exported(*arguments)

    monkeypatch.setattr(saved_model, "as_exported", meanwhile)
    assert export_task(task, output) == output / "2"
    with lock_folder(output), raises_input_error("is in use by process"):
        export_task(task, output)
    assert sorted(entry.name for entry in output.iterdir()) == ["1", "2"]


def test_warmup_requests_are_typical_and_answered_by_the_model(version, signatures):
    records = tf.data.TFRecordDataset(str(version / WARMUP_FILE)).as_numpy_iterator()
    asked = []
    for record in records:
        request = PredictionLog.FromString(record).predict_log.request
        assert request.model_spec.name == "spam"
        texts = tf.make_ndarray(request.inputs["text"])
        signatures[request.model_spec.signature_name](text=tf.constant(texts))
        asked.append([len(text.split()) for text in texts])
    assert asked == [[2], [64], [8, 16, 24, 32, 40, 48, 56, 64]]


def test_warmup_requests_are_what_the_official_classes_write():
    # SerializeToString(deterministic=True) of tensorflow-serving-api 2.19.1's PredictionLog for
    # model "spam", signature "serving_default", text = ["one", "x" * 130].
    reference = (
        "32ba010ab7010a170a047370616d1a0f73657276696e675f64656661756c74129b010a0474657874129201080712"
        "041202080242036f6e6542820178" + "78" * 129
    )
    written = prediction_log("serving_default", {"text": ["one", "x" * 130]}, model_name="spam")
    assert written.SerializeToString(deterministic=True).hex() == reference


def test_bad_output(task, tmp_path):
    (tmp_path / "file").write_text("x")
    with raises_input_error("is a file"):
        export_task(task, tmp_path / "file")
    with raises_input_error("contains something else (file)"):
        export_task(task, tmp_path)
    with raises_input_error("`max_length` must be at most 64...Received: 65"):
        export_task(task, tmp_path / "new", max_length=65)
    assert not (tmp_path / "new").exists()


def test_what_is_exported_is_told_by_the_folder_and_by_flags(model_folder, tmp_path, capsys):
    """The embeddings of a classifier's encoder; settings of another kind of model are refused."""
    output = tmp_path / "embeddings"
    (tmp_path / "notes.txt").touch()  # so this is no folder of models
    flags = ["export", "--model", str(model_folder), "--encoder", "--tokens", "none"]
    assert main([*flags, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"Wrote .*embeddings/1 \([\d.]+ MB\)\.", printed)
    assert re.search(r"models.config and .* were not written: .* \(notes.txt\)\.\n", printed)
    assert '(text=tf.constant(["a text"]))' in printed
    ask = tf.saved_model.load(str(output / "1")).signatures["serving_default"]
    assert set(ask(text=tf.constant(["good film"]))) == {"sentence", "cls"}
    for wrong, message in (
        ({"top_k": 3}, "`top_k` is for [MASK], and ... contains a model of the task classifier"),
        ({"tokens": "none"}, "`layers` and `tokens` are for embeddings. Pass `encoder=True`"),
        ({"encoder": True, "top_k": 3}, "`top_k` is for [MASK]. Embeddings have no candidates."),
        ({"encoder": True, "layers": "sum-last-4"}, "needs a model of at least 4 layers"),
        ({"output": tmp_path / "x.tflite", "encoder": True, "layers": "first"}, "`layers` is for"),
        ({"output": tmp_path / "x.tflite", "max_length": 8}, "`max_length` is for a SavedModel"),
    ):
        with raises_input_error(message):
            export(**{"model": model_folder, "output": tmp_path / "wrong", **wrong})
    assert not (tmp_path / "wrong").exists()


def test_an_encoder_alone_is_exported_without_a_flag(task, tmp_path):
    from keras_bert.checkpoints import save_folder

    save_folder(task.encoder, task.tokenizer, tmp_path / "encoder")
    other = tmp_path / "notes.txt"
    other.write_text("so this is no folder of models")
    version = export(model=tmp_path / "encoder", output=tmp_path / "embeddings")
    assert "embeddings" in tf.saved_model.load(str(version)).signatures["ids"].structured_outputs
    assert not (tmp_path / "models.config").exists()


# How far a probability may be off, of a head whose logits are ten times as far apart as any that
# was trained; and how much smaller the weights are at least (a small model has much beside them).
BOUNDS = {"bfloat16": (0.1, 1.8), "float16": (0.02, 1.8), "int8": (0.15, 1.8)}


# The others are slow: tests/exports has several kinds in each.
ONE_OF_ALL = [pytest.param(p, marks=() if p == "int8" else pytest.mark.slow) for p in BOUNDS]


@pytest.mark.parametrize("precision", ONE_OF_ALL)
def test_a_precision_is_near_float32_and_smaller(
    task, version, signatures, texts, tmp_path, precision
):
    reports = []
    smaller = export_task(task, tmp_path / "x", precision=precision, report=reports.append)
    served = tf.saved_model.load(str(smaller)).signatures["serving_default"]
    asked = tf.constant(texts)
    probabilities = served(text=asked)["probabilities"].numpy()
    expected = signatures["serving_default"](text=asked)["probabilities"].numpy()
    most, times = BOUNDS[precision]
    off = np.abs(probabilities - expected).max()
    assert 0 < off < most, off
    sizes = [
        sum(path.stat().st_size for path in folder.glob("variables/*.data*"))
        for folder in (version, smaller)
    ]
    assert sizes[0] / sizes[1] > times
    assert re.fullmatch(rf"In {precision} the encoder's outputs are \d+\.\d% off.*", reports[0])
    assert task.compute_dtype == "float32"  # a copy was changed


def test_int8_does_not_look_for_garbage_in_the_whole_program(task, monkeypatch):
    """Keras collects by hand, a layer at a time: half a minute for an encoder of twelve blocks."""
    objects, looked_through = [[] for _ in range(100_000)], []
    monkeypatch.setattr(gc, "collect", lambda: looked_through.append(len(gc.get_objects())))
    gc.unfreeze()  # as if nobody has frozen anything (see `keep_from_collector`)
    try:
        as_exported(task, "int8")
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()
    assert len(looked_through) > 8 and max(looked_through) < len(objects)


def test_a_precision_that_overflows_is_rejected(make_task, tmp_path):
    task = make_task()
    task.encoder.blocks[0].feed_forward.dense_out.kernel.assign_add(
        1e6 * np.eye(*task.encoder.blocks[0].feed_forward.dense_out.kernel.shape)
    )
    with raises_input_error("In float16 the model's outputs are ... off, too much"):
        export_task(task, tmp_path / "x", precision="float16")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("precision", "most"), [("float32", 1e-5), ("float16", 0.01), ("int8", 0.1)]
)
def test_a_file_for_litert_gives_the_logits_of_ids(task, tmp_path, precision, most):
    path = export_task(task, tmp_path / "spam.tflite", precision=precision)
    run = tf.lite.Interpreter(str(path)).get_signature_runner()
    rng = make_rng(1)
    for sequences, length in ((1, 3), (4, 20)):
        mask = np.ones((sequences, length), np.int32)
        mask[0, 2:] = 0
        given = {
            "input_ids": rng.integers(0, task.config.vocab_size, (sequences, length)).astype(
                "int32"
            ),
            "input_mask": mask,
            "segment_ids": np.zeros_like(mask),
        }
        expected = np.asarray(task(given)["logits"])
        off = np.abs(run(**given)["logits"] - expected).max() / np.abs(expected).max()
        assert off < most
    with raises_input_error("exists. Use a new file"):
        export_task(task, path)
    with raises_input_error("LiteRT has no bfloat16. Use `precision` float16"):
        export_task(task, tmp_path / "other.tflite", precision="bfloat16")
    assert {*BOUNDS, "float32"} == set(PRECISIONS)
