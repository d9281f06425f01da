"""Every exported model, in a process of TensorFlow and TensorFlow Text alone, and `predict`.

The process is one for all models, since starting it takes seconds. Its locale is Turkish, where an
I in lower case has no dot.
"""

import getpass
import itertools
import pickle
import re
import socket
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from tensorflow.python.saved_model.loader_impl import parse_saved_model
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

import keras_bert
from keras_bert.base.errors import InputError
from keras_bert.exports.precision import as_exported, difference
from keras_bert.exports.saved_model import encoder_signatures, export_encoder, export_task
from keras_bert.exports.server_files import WARMUP_FILE
from keras_bert.inference.compare import compare
from keras_bert.inference.embed import embed
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.fill_mask import fill_mask, most_probable
from keras_bert.inference.predict import predict
from keras_bert.inputs.framing import frame, windows
from keras_bert.layers.kernels import program
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.multiple_choice.features import frame_choices
from keras_bert.tasks.question_answering.question_answerer import QuestionAnswerer
from tests.exports import tokenizers
from tests.exports.answers import CHECKS, TOLERANCE, near, texts_of
from tests.exports.fuzzing import (
    DRAWN,
    Model,
    alone,
    as_bytes,
    ask_hard,
    check,
    check_alone,
    fuzz,
    request_of,
)
from tests.exports.models import MAKERS, TOKENIZER, encoder, shaken, tagger
from tests.exports.texts import make_texts
from tests.exports.tokenizers import TOKENIZERS, write_tokenizers
from tests.little_garbage import keep_from_collector
from tests.serving.page_models import page_signatures
from tests.small_model import make_encoder

HERE = Path(__file__).parent
COUNT = 1000
TEXTS = make_texts(COUNT, seed=0)
OTHERS = TEXTS[-7:] + TEXTS[:-7]
# Most with a mask more, at the end; some have none.
MASKED = [f"{text} [MASK]" if n % 4 else text for n, text in enumerate(TEXTS)]
# Files of questions, spans and choices have no NULs: `predict` takes that for damage.
WHOLE = [text.replace("\0", "") for text in TEXTS]
# Spans that a row surely holds both of.
PLACES = [f"ada {text[:8]} rome" for text in WHOLE]
# Requests: of one example, of none, and of many.
CUTS = [0, 1, 2, 3, 3, *range(103, COUNT, 128), COUNT]
NAMES = ("input_ids", "input_mask", "segment_ids")
# Precision -> how far a probability may be off, of heads whose logits are ten times as far apart as
# any that was trained, and the least share of labels, tags and places that are the same.
# In six draws of all kinds probabilities were at most 0.075, 0.004 and 0.035 off, and of the others
# at least 0.90, 0.98 and 0.86 the same.
BOUNDS = {"bfloat16": (0.1, 0.85), "float16": (0.01, 0.97), "int8": (0.1, 0.8)}
# What is no probability that has a size of its own: the difference is a share of that.
IN_SIZE = {
    "regression": ["score"],
    "encoder": ["embeddings", "sentence", "cls"],
    "fill-mask": ["probabilities"],
    "text-embedding": ["embedding"],
    "question-answering": ["null_score"],
}
# They have no `ids`, which do not tell where words end.
WITHOUT_IDS = ("semantic-roles", "span-classifier", "relation-classifier", "coreference")
# The kinds that `make test` exports; the others are slow, and answer as `predict` does in
# tests/encoders/test_products.py.
SLOW = ("multi-label", "pair-classifier", "regression", "tagger", "semantic-roles")
SLOW += ("span-classifier", "relation-classifier", "coreference", "text-embedding")
KINDS = {
    name: pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in MAKERS
}
# Texts that have a word, and fit into a row beside the other one.
SIZES = [TOKENIZER.tokenize(texts).row_lengths().numpy() for texts in (TEXTS, OTHERS)]
FITTING = np.flatnonzero((SIZES[0] > 0) & (sum(SIZES) < 15))[:20].tolist()


def choices(number):
    """Two to four choices, each with a word."""
    return [f"{text} the" for text in (WHOLE[7:] * 2)[number : number + 2 + number % 3]]


INPUTS = {
    **dict.fromkeys(
        ("classifier", "multi-label", "tagger", "tagger-crf", "encoder", "text-embedding"),
        {"text": TEXTS},
    ),
    **dict.fromkeys(("span-classifier", "coreference"), {"text": WHOLE}),
    **dict.fromkeys(("pair-classifier", "regression"), {"text_a": TEXTS, "text_b": OTHERS}),
    "question-answering": {"question": WHOLE[::-1], "context": WHOLE},
    "multiple-choice": {
        "context": WHOLE,
        "choices": [(choices(number) + ["", ""])[:4] for number in range(COUNT)],
    },
    "fill-mask": {"text": MASKED},
    "semantic-roles": {
        "text": [f"ada {text}" for text in WHOLE],
        "predicate_start": [0] * COUNT,
        "predicate_end": [3] * COUNT,
    },
    "relation-classifier": {
        "text": PLACES,
        "head_start": [0] * COUNT,
        "head_end": [3] * COUNT,
        "tail_start": [len(text) - 4 for text in PLACES],
        "tail_end": [len(text) for text in PLACES],
    },
}


def names_asked(request, *, test=""):
    """The values of `name` in the selected tests of this file, of those that begin with `test`."""
    tests = [item for item in request.session.items if item.path == request.path]
    tests = [item for item in tests if item.name.startswith(test) and hasattr(item, "callspec")]
    return {item.callspec.params.get("name") for item in tests}


@pytest.fixture(scope="module")
def models(request):
    """A model of each kind that a selected test asks for."""
    asked = names_asked(request)
    return {name: MAKERS[name]() for name in MAKERS if name in asked or name not in SLOW}


@pytest.fixture(scope="module")
def in_bfloat16(request):
    """The kinds whose files are asked in bfloat16 by a selected test."""
    return sorted(names_asked(request, test="test_answers_in_bfloat16"))


@pytest.fixture(scope="module")
def folder(models, in_bfloat16, tmp_path_factory):
    """The folder of all exported models; those in bfloat16 are in `bfloat16` beside it."""
    folder = tmp_path_factory.mktemp("exported") / "savedmodels"
    for name, model in models.items():
        if name == "encoder":
            export_encoder(model, TOKENIZER, folder / name)
        else:
            export_task(model, folder / name)
    for name in in_bfloat16:
        export_task(models[name], folder.parent / "bfloat16" / name, precision="bfloat16")
    return folder


def example(**features):
    """A serialized tf.Example of strings or numbers, one or a list a feature."""
    row = tf.train.Example()
    for name, items in features.items():
        items = items if isinstance(items, list) else [items]
        feature = row.features.feature[name]
        if isinstance(items[0], int):
            feature.int64_list.value.extend(items)
        else:
            feature.bytes_list.value.extend(text.encode() for text in items)
    return row.SerializeToString()


def some_inputs(name, some):
    return {column: texts[some] for column, texts in INPUTS[name].items()}


def masked_ids(texts):
    """The ids of texts with [MASK]: a list of int32 (T,)."""
    parts = [text.split("[MASK]") for text in texts]
    tokens = iter(TOKENIZER.tokenize([part for text in parts for part in text]).to_list())
    mask = TOKENIZER.vocabulary.mask_id
    rows = [[id for _ in text for id in (mask, *next(tokens))] for text in parts]
    return [np.array(row[1:], np.int32) for row in rows]


def as_ids(name):
    """The inputs of the examples that fit into a row, as a client that tokenizes makes them."""
    inputs = [[texts[number] for number in FITTING] for texts in INPUTS[name].values()]
    settings = {"tokenizer": TOKENIZER, "names": NAMES, "max_length": 40}
    if name == "multiple-choice":
        several = tf.ragged.constant([[text for text in row if text] for row in inputs[1]])
        tokens = several.with_values(TOKENIZER.tokenize(several.values))
        return frame_choices(TOKENIZER.tokenize(inputs[0]), tokens, **settings)
    if name == "fill-mask":
        return frame([tf.ragged.stack(masked_ids(inputs[0]))], **settings)
    return frame([TOKENIZER.tokenize(column) for column in inputs], **settings)


def serving_signature(name, model):
    """The signature `serving_default` of a model, as it is exported."""
    if name == "encoder":
        settings = {"layers": "last", "tokens": "words-mean", "max_length": 40}
        return encoder_signatures(model, TOKENIZER, **settings)["serving_default"]
    return model.signatures()["serving_default"]


@pytest.fixture(scope="module")
def drawn(models):
    """Requests with texts that Hypothesis makes: kind -> pairs of one and a place in it."""
    batches = []

    @seeded(0)
    @settings(
        max_examples=3,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(*DRAWN)
    def draw(texts, place):
        batches.append((as_bytes(texts), place))

    draw()
    requests_of_models = {}
    for name, model in models.items():
        inputs = {spec.name: spec for spec in serving_signature(name, model).inputs}
        requests_of_models[name] = [(request_of(inputs, texts), place) for texts, place in batches]
    return requests_of_models


def requests(name, folder, drawn):
    """The name of what is asked -> its signature and requests, each a dictionary of lists."""
    parts = [some_inputs(name, slice(*edges)) for edges in zip(CUTS, CUTS[1:], strict=False)]
    columns = some_inputs(name, slice(3, 43))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows = [example(**row) for row in rows]
    asked = [{"examples": rows}, {"examples": [b"no example"]}, {"examples": []}]
    cases = {"serving_default": parts, "examples": asked}
    cases = {signature: (signature, asked) for signature, asked in cases.items()}
    if name not in WITHOUT_IDS:
        cases["ids"] = ("ids", id_requests(choices=name == "multiple-choice"))
        framed = {key: tensor.numpy().tolist() for key, tensor in as_ids(name).items()}
        cases["texts as ids"] = ("ids", [framed])
    warmups = warmup_requests(name, folder)
    cases["warm-up"] = ("serving_default", warmups.pop("serving_default"))
    cases |= {f"warm-up of {signature}": (signature, asked) for signature, asked in warmups.items()}
    cases["drawn"] = ("serving_default", [request for request, _ in drawn])
    cases["drawn alone"] = ("serving_default", [alone(*one) for one in drawn])
    return cases


def warmup_requests(name, folder):
    """Signature -> its requests in the file that the server reads."""
    warmups = {}
    for record in tf.data.TFRecordDataset(str(folder / name / "1" / WARMUP_FILE)):
        request = PredictionLog.FromString(record.numpy()).predict_log.request
        assert request.model_spec.name == name
        inputs = {key: tf.make_ndarray(x).tolist() for key, x in request.inputs.items()}
        warmups.setdefault(request.model_spec.signature_name, []).append(inputs)
    return warmups


def id_requests(*, choices):
    """Rows of ids: one as a client sends it, the same as a server pads it, bad ones, and none.

    Of `choices` each row has an axis more, of two that are alike.
    """
    vocabulary = TOKENIZER.vocabulary
    row = [vocabulary.cls_id, *range(5, 12), vocabulary.mask_id, vocabulary.sep_id]
    zeros, ones = [0] * len(row), [1] * len(row)
    good = {"input_ids": [row], "input_mask": [ones], "segment_ids": [zeros]}
    padded = {
        "input_ids": [row + [vocabulary.cls_id] * 5],
        "input_mask": [ones + [1] * 5],
        "segment_ids": [zeros + [0] * 5],
    }
    bad = [{**good, "input_ids": [[*row[:-1], wrong]]} for wrong in (-1, len(vocabulary))]
    bad += [{**good, "segment_ids": [[*zeros[:-1], wrong]]} for wrong in (-1, 2)]
    bad += [{**good, "input_mask": [[*ones[:-1], 2]]}, {**good, "input_mask": [ones + [1]]}]
    bad += [{key: value * 0 + [[1] * 41] for key, value in good.items()}]
    batches = [good, padded, *bad]
    if choices:
        batches = [{key: [rows * 2] for key, rows in one.items()} for one in batches]
    no_rows = {key: np.array(rows)[:0] for key, rows in batches[0].items()}
    return [*batches, no_rows]


def ask_in_a_process(asked, *, models, place):
    """Runs `client.py`, in the folder `place` and nothing else, for its answers of models."""
    (place / "client.py").write_text((HERE / "client.py").read_text())
    (place / "asked").write_bytes(pickle.dumps(asked))
    run = subprocess.run(
        [sys.executable, "client.py", str(models), "asked", "answered"],
        capture_output=True,
        text=True,
        cwd=place,
        env={
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PATH": "",
            "CUDA_VISIBLE_DEVICES": "-1",
            **{"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
            **{"TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1"},  # as tests/conftest.py
            # As servers may have it: of no answer may a part be taken for a weight and kept.
            "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "true",
        },
    )
    assert run.returncode == 0, run.stderr
    return pickle.loads((place / "answered").read_bytes())


@pytest.fixture(scope="module")
def answered(request, folder, models, in_bfloat16, drawn, tmp_path_factory):
    """The process's answers about the models of all folders: their path -> answers, operations."""
    asked = {f"savedmodels/{name}": requests(name, folder, drawn[name]) for name in models}
    for name in in_bfloat16:
        some = some_inputs(name, slice(3, 103))
        turned = {key: texts[::-1] for key, texts in some.items()}
        asked[f"bfloat16/{name}"] = {"texts": ("serving_default", [some, turned])}
    names = names_asked(request, test="test_tokenizers") | {"wordpiece"}
    write_tokenizers(folder.parent / "text" / "tokenizers" / "1", names=names)
    asked["text/tokenizers"] = {
        name: (name, [{"text": tokenizers.TEXTS[name]}]) for name in sorted(names)
    }
    place = tmp_path_factory.mktemp("client")
    answers = ask_in_a_process(asked, models=folder.parent, place=place)
    keep_from_collector()  # the models, and the graphs of their exports
    return answers


@pytest.fixture(scope="module")
def asked(answered, models):
    """Its answers about the folder of all models: kind -> answers of each signature, operations."""
    return {name: answered[f"savedmodels/{name}"] for name in models}


def rows(asked, name, signature="serving_default"):
    """The answers of all requests of a signature: a dictionary of values for each example."""
    return answers_by_example(asked[name]["answers"][signature])


def answers_by_example(parts):
    assert not [part for part in parts if isinstance(part, str)]
    return [
        {key: array[number] for key, array in part.items()}
        for part in parts
        for number in range(len(next(iter(part.values()))))
    ]


def given_texts_of(name):
    """The examples as `predict` takes them."""
    if name == "semantic-roles":
        return [{"text": text, "predicate": [0, 3]} for text in INPUTS[name]["text"]]
    if name == "relation-classifier":
        keys = ("text", "head_start", "head_end", "tail_start", "tail_end")
        return [
            {"text": text, "head": [a, b], "tail": [c, d]}
            for text, a, b, c, d in zip(*(INPUTS[name][key] for key in keys), strict=True)
        ]
    if name == "multiple-choice":
        return [(text, choices(number)) for number, text in enumerate(WHOLE)]
    columns = list(INPUTS[name].values())
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


@pytest.mark.parametrize("name", [KINDS[name] for name in CHECKS])
def test_answers_a_thousand_texts_as_predict_does(asked, models, name):
    outputs = rows(asked, name)
    answers = list(predict(model=models[name], data=given_texts_of(name), batch_size=128))
    assert len(outputs) == len(answers) == COUNT
    for number, (row, answer) in enumerate(zip(outputs, answers, strict=True)):
        try:
            CHECKS[name](row, answer)
        except AssertionError as error:
            raise AssertionError(f"Text {number}, {TEXTS[number]!r}: {error}") from error


PLAIN = ["ada", "went", "to", "rome"]
# Labelled examples whose words are also the tokenizer's, in one long enough for several windows.
LABELLED = {
    "classifier": [("good film", "x"), ("bad", "ÿ"), ("the film was bad", "w")],
    "multi-label": [("good film", "x|y"), ("bad", "")],
    "pair-classifier": [("good", "bad", "no"), ("ada", "rome", "yes")],
    "regression": [("good", "bad", 1.0), ("ada", "rome", 2.5), ("in", "of", 2.0)],
    "multiple-choice": [("ada went", ["to rome", "in"], 1), ("who", ["ada", "of", "oslo"], 0)],
    **dict.fromkeys(
        ("tagger", "tagger-crf"),
        [(PLAIN * 9, ["B-PER", "O", "O", "B-LOC"] * 9), (["rome"], ["B-LOC"])],
    ),
    "semantic-roles": [
        {"words": PLAIN, "predicate": [1, 2], "tags": ["B-PER", "O", "O", "B-LOC"]},
        {"words": ["rome", "was"], "predicate": [0, 1], "tags": ["O", "O"]},
    ],
    "question-answering": [
        {"question": "who", "context": "ada went to rome", "answers": []},
        {
            "question": "where",
            "context": "ada went to rome",
            "answers": [{"text": "rome", "answer_start": 12}],
        },
    ],
    "span-classifier": [
        {"words": PLAIN, "spans": [[0, 1, "PER"], [2, 4, "LOC"]]},
        {"text": "in rome", "spans": [[3, 7, "LOC"]]},
    ],
    "relation-classifier": [
        {"words": PLAIN, "head": [0, 1], "tail": [3, 4], "label": "in"},
        {"text": "ada in rome", "head": [0, 3], "tail": [7, 11], "label": "from"},
    ],
    "coreference": [
        {"words": PLAIN * 2, "clusters": [[[0, 1], [4, 5]]]},
        {"text": "ada ada", "clusters": [[[0, 3], [4, 7]]]},
    ],
}


@pytest.mark.parametrize("name", [KINDS[name] for name in LABELLED])
def test_an_export_takes_the_place_of_its_task(folder, models, name):
    compared = compare([models[name], folder / name], LABELLED[name], samples=100, report=print)
    assert compared["examples"] == len(LABELLED[name]) and compared["metrics"]
    for metric in (*compared["metrics"].values(), *compared.get("labels", {}).values()):
        assert abs(metric["difference"]) < TOLERANCE
    assert name == "regression" or not any(compared["changed"].values())


def test_an_export_that_does_not_say_its_task_is_rejected(folder):
    with pytest.raises(InputError, match="does not say what task it is of"):
        evaluate(folder / "encoder", [("a", "x")])


def decoded(row):
    """The words and places of an answer, without numbers of the model."""
    names = ("label", "choice", "given", "words", "tokens", "tags", "labels", "answer")
    names += ("lengths", "starts", "ends", "start", "end")
    count = row.get("lengths")  # behind them is padding
    return [np.atleast_1d(row[name])[:count].tolist() for name in names if name in row]


def in_common(actual, wanted):
    """The share of the words, places and labels of either answer that both have."""
    actual, wanted = (
        Counter(map(repr, itertools.zip_longest(*decoded(row)))) for row in (actual, wanted)
    )
    return (actual & wanted).total() / (actual | wanted).total() if actual | wanted else 1.0


def check_near(name, outputs, expected, precision):
    """The answers to some requests in another precision, and the same in float32."""
    bound, least = BOUNDS[precision]
    in_size = IN_SIZE.get(name, [])
    for actual, wanted in zip(outputs, expected, strict=True):
        for key in in_size:
            assert difference(wanted[key], actual[key], precision=precision) < 0.1
    same = {}  # by answer: a text that is there many times counts once
    for actual, wanted in zip(
        answers_by_example(outputs), answers_by_example(expected), strict=True
    ):
        same[repr(wanted)] = in_common(actual, wanted)
        for key in {"score", "scores", "probabilities"} & {*actual} - {*in_size}:
            if decoded(actual) == decoded(wanted) or key == "probabilities":
                arrays = [np.atleast_1d(row[key])[: row.get("lengths")] for row in (actual, wanted)]
                assert np.abs(np.subtract(*arrays)).max(initial=0) < bound, key
    share = np.mean([*same.values()])
    assert share >= least, share


# Of these kinds each in one precision, and each precision for several kinds; the others are slow.
QUICK = [name for name in MAKERS if name not in SLOW]
PRECISIONS = [
    pytest.param(name, precision, marks=() if is_quick else pytest.mark.slow)
    for name in MAKERS
    for number, precision in enumerate(BOUNDS)
    for is_quick in [name in QUICK and QUICK.index(name) % len(BOUNDS) == number]
]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(("name", "precision"), PRECISIONS)
def test_every_kind_answers_in_a_smaller_precision_as_in_float32(models, asked, name, precision):
    """By the functions that an export writes; the next test asks what was written."""
    model, off = as_exported(models[name], precision)
    assert 0 < off < 0.1
    signature = serving_signature(name, model)
    inputs = some_inputs(name, slice(3, 103))
    inputs = [tf.constant(inputs[spec.name], spec.dtype) for spec in signature.inputs]
    outputs = {key: tensor.numpy() for key, tensor in signature.function(*inputs).items()}
    check_near(name, [outputs], [asked[name]["answers"]["serving_default"][4]], precision)


@pytest.mark.parametrize(
    "name", ["tagger-crf", pytest.param("question-answering", marks=pytest.mark.slow)]
)
def test_answers_in_bfloat16_where_weights_are_said_to_stay(answered, asked, name):
    """Requests of one shape one after the other: no part of the first may answer the second."""
    expected = asked[name]["answers"]["serving_default"][4]
    expected = [expected, {key: array[::-1] for key, array in expected.items()}]
    check_near(name, answered[f"bfloat16/{name}"]["answers"]["texts"], expected, "bfloat16")


def test_a_head_that_overflows_is_rejected(models, tmp_path):
    """If the encoder is sound: of logits alone it is seen."""
    task = MAKERS["fill-mask"]()
    kernel = task.lm_head.transform.dense.kernel
    kernel.assign(1e6 * kernel)
    with pytest.raises(InputError, match="In float16 the model's outputs are .* off, too much"):
        export_task(task, tmp_path / "x", precision="float16")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "precision", "most"),
    [("question-answering", "float32", 1e-5), ("encoder", "float16", 0.01)],
)
def test_files_for_litert_of_other_kinds(models, tmp_path, name, precision, most):
    """The classifier's is in tests/tasks/classification."""
    write = export_task if name != "encoder" else partial(export_encoder, tokenizer=TOKENIZER)
    path = write(models[name], output=tmp_path / "x.tflite", precision=precision)
    given = {key: tensor.numpy() for key, tensor in as_ids("question-answering").items()}
    outputs = tf.lite.Interpreter(str(path)).get_signature_runner()(**given)
    expected = models[name](given)
    assert {*outputs} == {*expected}
    is_text = given["input_mask"] > 0  # what is behind it means nothing
    for key, tensor in expected.items():
        pair = [np.asarray(x) for x in (tensor, outputs[key])]
        pair = [x[is_text] for x in pair] if key == "sequence_output" else pair
        assert difference(*pair, precision=precision) < most, key


@pytest.mark.parametrize("name", [pytest.param("tagger", marks=pytest.mark.slow), "classifier"])
def test_an_export_is_the_same_whatever_devices_it_is_made_on(name, tmp_path, monkeypatch):
    """It is for servers of any kind, and what runs on a GPU alone would run on no other."""
    if name == "tagger":
        task = tagger(bilstm=3)
    else:
        task = shaken(Classifier(encoder(), TOKENIZER, labels=["x", "y"], pooling="max", bilstm=3))
    text = tf.constant(["the film was good in rome", "bad", ""])
    expected = task.signatures()["serving_default"].function(text)
    here = operations(export_task(task, tmp_path / "here"))
    # What runs on a CPU alone is chosen when it runs; with these names it is not chosen here.
    monkeypatch.setattr(program, "_SPARING", ("GPU",))
    (other := tmp_path / "other").mkdir()
    elsewhere = operations(export_task(task, other / "x"))
    devices = tf.config.list_logical_devices
    gpu = tf.config.LogicalDevice("/device:GPU:0", "GPU")
    monkeypatch.setattr(
        tf.config,
        "list_logical_devices",
        lambda kind=None: [gpu] if kind == "GPU" else devices(kind),
    )
    monkeypatch.setattr(program, "_SPARING", ("CPU",))
    assert not program.is_unfused()
    on_gpu = operations(export_task(task, tmp_path / "gpu"))
    assert here == on_gpu == elsewhere
    assert here["DeviceIndex"] == 1 and here["Where"] and not [op for op in here if "Cudnn" in op]
    for path in (tmp_path / "here", other / "x"):
        served = tf.saved_model.load(str(path / "1")).signatures["serving_default"](text)
        for key, tensor in served.items():
            if tensor.dtype == tf.float32:
                np.testing.assert_allclose(tensor, expected[key], atol=1e-5)
            else:
                np.testing.assert_array_equal(tensor, expected[key])


def operations(path):
    """How many nodes of each operation a SavedModel has, in all of its functions."""
    (graph,) = (meta.graph_def for meta in parse_saved_model(str(path)).meta_graphs)
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return Counter(node.op for node in nodes)


def test_a_model_of_one_segment_takes_no_segment_ids(tmp_path):
    """Questions have two texts all the same."""
    task = QuestionAnswerer(make_encoder(TOKENIZER, type_vocab_size=1), TOKENIZER, max_length=24)
    given = {key: tensor.numpy() for key, tensor in as_ids("question-answering").items()}
    assert given.pop("segment_ids").any()
    path = export_task(task, tmp_path / "x.tflite")
    outputs = tf.lite.Interpreter(str(path)).get_signature_runner()(**given)
    for key, tensor in task(given).items():
        np.testing.assert_allclose(outputs[key], tensor, rtol=1e-4, atol=1e-4)
    question, context = "who was in rome?", "ada went to rome. " * 9
    (expected,) = predict(model=task, data=[(question, context)])
    served = task.signatures()["serving_default"].function
    answer = served(tf.constant([question]), tf.constant([context]))
    assert answer["answer"].numpy()[0].decode() == expected["answer"]


def test_a_span_classifier_is_rejected_for_litert(tmp_path):
    with pytest.raises(InputError, match="LiteRT has no operation for a part of this model"):
        export_task(MAKERS["span-classifier"](), tmp_path / "x.tflite")
    assert not [*tmp_path.iterdir()]


def test_embeds_a_thousand_texts_as_embed_does(asked, models):
    """All texts that a row holds; of others, what the encoder says of the row."""
    encoder = models["encoder"]
    outputs = rows(asked, "encoder")
    tokens = TOKENIZER.tokenize(TEXTS).row_lengths().numpy()
    room = encoder.config.max_length - 2
    assert 10 < np.sum(tokens > room) < 100
    for row, answer, count in zip(
        outputs, embed(model=(encoder, TOKENIZER), text=TEXTS, batch_size=128), tokens, strict=True
    ):
        words = int(row["mask"].sum())
        assert row["mask"][:words].all()
        if count <= room:
            assert texts_of(row["tokens"][:words]) == answer.tokens
            near(row["embeddings"][:words], answer.vectors)
            near(row["sentence"], answer.mean)
            near(row["cls"], answer.cls)
        else:
            words -= 1  # of the last one, a part may be cut off
            assert texts_of(row["tokens"][:words]) == answer.tokens[:words]
        for name in ("starts", "ends"):
            assert row[name][:words].tolist() == getattr(answer, name)[:words].tolist()


def probabilities_of_masks(task, texts):
    """The probability of each piece, by its name, at every [MASK] of texts, text by text.

    As `fill_mask` has it, for many rows at once, and of a long text in the row of several that has
    most of it around the mask.
    """
    ids = masked_ids(texts)
    room = task.config.max_length - 2
    parts = np.array(windows(tf.constant([*map(len, ids)]), room, stride=room // 2)).T.tolist()
    rows, places = [], []
    for text, start, size, first, last in parts:
        masks = np.flatnonzero(ids[text] == TOKENIZER.vocabulary.mask_id)
        rows.append(ids[text][start : start + size])
        places += [(text, len(rows) - 1, mask - start) for mask in masks if first <= mask < last]
    hidden = [
        task.encoder(
            frame(
                [tf.ragged.stack(rows[begin : begin + 128])],
                tokenizer=TOKENIZER,
                names=task.encoder.input_names,
                max_length=room + 2,
                multiple_of=room + 2,
            )
        )["sequence_output"]
        for begin in range(0, len(rows), 128)
    ]
    _, row, place = np.transpose(places)
    hidden = tf.gather_nd(tf.concat(hidden, axis=0), np.stack([row, place + 1], axis=1))
    logits = task.lm_head(hidden[:, None], np.zeros([len(places), 1], np.int32))
    predictions = [[] for _ in texts]
    for (text, *_), mask_logits in zip(places, logits[:, 0].numpy(), strict=True):
        predictions[text].append(most_probable(mask_logits, TOKENIZER.vocabulary, len(mask_logits)))
    return predictions


def test_fills_the_masks_of_a_thousand_texts_as_fill_mask_does(asked, models):
    outputs = rows(asked, "fill-mask")
    assert [row["lengths"] for row in outputs] == [text.count("[MASK]") for text in MASKED]
    expected = probabilities_of_masks(models["fill-mask"], MASKED)
    for number in (1, 2, 3, *FITTING[:10]):  # one by one a thousand would take ten seconds
        if expected[number]:
            filled = fill_mask(model=models["fill-mask"], text=MASKED[number])
            near(
                [[c.probability for c in place] for place in filled],
                [[c.probability for c in place[:5]] for place in expected[number]],
            )
    windowed = [len(ids) > 38 for ids in masked_ids(MASKED)]
    assert (
        sum(len(places) for places, is_long in zip(expected, windowed, strict=True) if is_long) > 20
    )
    assert sum(map(len, expected)) > 700
    for row, places in zip(outputs, expected, strict=True):
        for probabilities, tokens, place in zip(
            row["probabilities"], row["pieces"], places, strict=False
        ):
            near(probabilities, [candidate.probability for candidate in place[:5]])
            # Which of two that are as likely comes first is left to the rounding.
            near(probabilities, [dict(place)[token] for token in texts_of(tokens)])
            assert len(set(tokens)) == 5


@pytest.mark.parametrize("name", KINDS.values())
def test_a_batch_of_none_has_the_axes_of_any(asked, name):
    answers = asked[name]["answers"]
    pairs = [(answers["serving_default"][0], answers["serving_default"][3])]
    pairs += [(answers[key][0], answers[key][-1]) for key in ("examples", "ids") if key in answers]
    assert len(pairs) == (2 if name in WITHOUT_IDS else 3)
    for one, empty in pairs:
        assert {key: array.shape[0] for key, array in empty.items()} == dict.fromkeys(one, 0)
        for key, array in empty.items():
            assert array.ndim == one[key].ndim and array.dtype == one[key].dtype


def check_same(actual, expected):
    """Two answers of a file to the same example, which may be padded to other lengths."""
    for key, wanted in expected.items():
        again, wanted = np.asarray(actual[key]), np.asarray(wanted)
        cut = tuple(map(slice, map(min, np.shape(again), np.shape(wanted))))
        if wanted.dtype.kind == "f":
            near(again[cut], wanted[cut])
        elif key == "label" and wanted.dtype.kind == "i":
            # Of two that are alike the rounding tells.
            probabilities = np.asarray(actual["probabilities"])
            chosen = np.take_along_axis(probabilities, np.stack([again, wanted], axis=-1), axis=-1)
            near(chosen[..., 0], chosen[..., 1])
        else:
            assert np.array_equal(again[cut], wanted[cut]), key


@pytest.mark.parametrize("name", KINDS.values())
def test_examples_are_answered_as_texts_are(asked, name):
    good, bad, _ = asked[name]["answers"]["examples"]
    assert isinstance(bad, str) and "example" in bad.lower()
    for actual, expected in zip(answers_by_example([good]), rows(asked, name)[3:43], strict=True):
        check_same(actual, expected)


@pytest.mark.parametrize("name", [KINDS[name] for name in MAKERS if name not in WITHOUT_IDS])
def test_ids_are_answered_as_texts_are(asked, models, name):
    (answers,) = asked[name]["answers"]["texts as ids"]
    if name == "question-answering":
        expected = models[name](as_ids(name))
        near(answers["start_logits"], expected["start_logits"])
        near(answers["end_logits"], expected["end_logits"])
        return
    rows_of_texts = rows(asked, name)
    for actual, number in zip(answers_by_example([answers]), FITTING, strict=True):
        expected = rows_of_texts[number]
        if "tags" in actual:
            is_first = actual["tags"] != b""
            assert is_first.sum() == expected["lengths"] > 0
            actual = {key: array[is_first] for key, array in actual.items()}
        check_same(actual, {key: expected[key] for key in actual if key != "embeddings"})


@pytest.mark.parametrize("name", [KINDS[name] for name in MAKERS if name not in WITHOUT_IDS])
def test_ids_are_answered_alone_as_joined_by_a_server_and_rejected_where_they_cannot_be(
    asked, name
):
    good, padded, *bad, _ = asked[name]["answers"]["ids"]
    check_same(padded, good)
    expected = [
        *[r"input_ids must be from 0 to \d+\."] * 2,
        *[r"segment_ids must be from 0 to 1\."] * 2,
        *["input_mask must be from 0 to 1", "input_mask must have the shape of input_ids"],
        r"A sequence may have at most \d+ ids",
    ]
    for error, message in zip(bad, expected, strict=True):
        assert re.search(message, error)


@pytest.mark.parametrize("name", KINDS.values())
def test_warm_up_requests_are_answered_by_their_own_signature(asked, name):
    answers = asked[name]["answers"]["warm-up"]
    assert not [answer for answer in answers if isinstance(answer, str)]
    sizes = [{len(array) for array in answer.values()} for answer in answers]
    assert sizes == [{1}, {1}, {8}]


# With steps it is byte-level BPE, too.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "byte-level-bpe" else ())
        for name in TOKENIZERS
    ],
)
def test_tokenizers_give_the_same_ids(answered, name):
    (outputs,) = answered["text/tokenizers"]["answers"][name]
    tokens = TOKENIZERS[name].tokenize_with_offsets(tokenizers.TEXTS[name])
    assert outputs["ids"].tolist() == tokens.ids.to_tensor(-1).numpy().tolist()
    assert outputs["ends"].tolist() == tokens.ends.to_tensor(-1).numpy().tolist()


def test_a_turkish_locale_changes_nothing(answered):
    (outputs,) = answered["text/tokenizers"]["answers"]["wordpiece"]
    ids = [id for id in outputs["ids"][2] if id >= 0]
    tokens = [TOKENIZERS["wordpiece"].vocabulary.token(id) for id in ids]
    assert tokens == ["i", "##t", "i", "##t", "i", "##i"]


def test_only_operations_that_servers_have(asked):
    """TensorFlow Serving 2.17 has them, and so have later ones (see the list's first lines)."""
    lines = (HERE / "serving_operations.txt").read_text().splitlines()
    supported = {line for line in lines if not line.startswith("#")}
    assert len(supported) > 1000
    for name, model in asked.items():
        assert len(model["operations"]) > 20
        assert model["operations"] <= supported, (name, model["operations"] - supported)
        assert not {op for op in model["operations"] if "PyFunc" in op}


def test_nothing_tells_where_or_by_whom_it_was_made(folder):
    checkout = f"{Path(keras_bert.__file__).parents[1]}/"  # not "/project" of ".../projection"
    places = {str(folder), checkout, sys.prefix, "/home/", "/tmp/"}
    names = {getpass.getuser(), socket.gethostname()} - {"root"}
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            told = [told for told in places | names if len(told) > 3 and told.encode() in content]
            assert not told, (path, told)


def test_the_list_of_models_and_which_are_batched(folder, models):
    listed = re.findall(r'base_path: "/models/(.*)"', (folder / "models.config").read_text())
    assert listed == sorted(models)
    batched = {path.parts[-3] for path in folder.glob("*/1/batching_params.pbtxt")}
    unbatched = {"multiple-choice", "semantic-roles", "relation-classifier"}
    assert batched == set(models) - unbatched


def test_the_models_that_the_page_is_tried_with_give_what_exports_give(folder, models):
    kinds = {
        **{"fill": "fill-mask", "names": "tagger", "questions": "question-answering"},
        "vectors": "text-embedding",
    }
    for name, (inputs, outputs) in page_signatures().items():
        kind = kinds.get(name, name)
        if kind not in models:
            assert kind in SLOW
            continue
        version = folder / kind / "1"
        signature_def = (
            parse_saved_model(str(version)).meta_graphs[0].signature_def["serving_default"]
        )
        assert set(signature_def.inputs) == {spec.name for spec in inputs}, name
        for output, spec in outputs.items():
            real = signature_def.outputs[output]
            assert (real.dtype, len(real.tensor_shape.dim)) == (
                spec.dtype.as_datatype_enum,
                spec.shape.rank,
            ), (name, output)


@pytest.mark.parametrize("name", KINDS.values())
def test_what_holds_of_every_answer_holds_of_texts_that_hypothesis_makes(asked, drawn, name):
    answers = asked[name]["answers"]
    for (request, place), outputs, answer in zip(
        drawn[name], answers["drawn"], answers["drawn alone"], strict=True
    ):
        check(request, outputs)
        check_alone(answer, outputs, place)


@pytest.mark.parametrize("name", ["classifier", "tagger"])
def test_texts_of_a_megabyte_are_answered(folder, name):
    """With random texts, too."""
    model = Model(folder / name)
    assert fuzz(model, count=100) >= 100
    ask_hard(name, model, only=["1 MB of words", "100,000 combining marks"])
