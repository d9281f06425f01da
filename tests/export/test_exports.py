"""Every exported model, in a process of TensorFlow and TensorFlow Text alone, and `predict`.

The process is one for all models, since starting it takes seconds.
"""

import getpass
import pickle
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.saved_model.loader_impl import parse_saved_model

import keras_bert
from benchmarks.fuzz_exports import Model, fuzz
from keras_bert.embeddings.embed import embed
from keras_bert.export.precision import as_exported
from keras_bert.export.saved_model import export_encoder, export_task
from keras_bert.inference.fill_mask import fill_mask
from keras_bert.inference.predict import predict
from tests.export.models import MAKERS, TOKENIZER
from tests.export.texts import make_texts
from tests.serving.page_models import page_signatures

HERE = Path(__file__).parent
COUNT = 1000
TEXTS = make_texts(COUNT, seed=0)
OTHERS = TEXTS[-7:] + TEXTS[:-7]
MASKED = [text.replace("[ MASK ]", "[MASK]") for text in TEXTS]
# Files of questions, spans and choices have no NULs: `predict` takes that for damage.
WHOLE = [text.replace("\0", "") for text in TEXTS]
# Spans that a row surely holds both of.
PLACES = [f"ada {text[:8]} rome" for text in WHOLE]
# Requests: of one example, of none, and of many.
CUTS = [0, 1, 2, 3, 3, *range(103, COUNT, 128), COUNT]
TOLERANCE = 3e-5


def choices(number):
    """Two to four choices, each with a word."""
    return [f"{text} the" for text in (WHOLE[7:] * 2)[number : number + 2 + number % 3]]


INPUTS = {
    **dict.fromkeys(
        ("classifier", "multi-label", "tagger", "tagger-crf", "encoder"), {"text": TEXTS}
    ),
    "span-classifier": {"text": WHOLE},
    **dict.fromkeys(("pair-classifier", "regression"), {"text_a": TEXTS, "text_b": OTHERS}),
    "question-answering": {"question": WHOLE[::-1], "context": WHOLE},
    "multiple-choice": {
        "context": WHOLE,
        "choices": [(choices(number) + ["", ""])[:4] for number in range(COUNT)],
    },
    "fill-mask": {"text": MASKED},
    "relation-classifier": {
        "text": PLACES,
        "head_start": [0] * COUNT,
        "head_end": [3] * COUNT,
        "tail_start": [len(text) - 4 for text in PLACES],
        "tail_end": [len(text) for text in PLACES],
    },
}


@pytest.fixture(scope="module")
def models():
    return {name: make() for name, make in MAKERS.items()}


@pytest.fixture(scope="module")
def folder(models, tmp_path_factory):
    """The folder of all exported models."""
    folder = tmp_path_factory.mktemp("savedmodels")
    for name, model in models.items():
        if name == "encoder":
            export_encoder(model, TOKENIZER, folder / name)
        else:
            export_task(model, folder / name)
    return folder


def example(**features):
    """A serialized tf.Example of strings, one or a list a feature."""
    row = tf.train.Example()
    for name, texts in features.items():
        texts = [texts] if isinstance(texts, str) else texts
        row.features.feature[name].bytes_list.value.extend(text.encode() for text in texts)
    return row.SerializeToString()


def requests(name):
    """Signature -> requests, each a dictionary of lists."""
    inputs = INPUTS[name]
    columns = list(inputs)
    parts = [
        {column: values[start:end] for column, values in inputs.items()}
        for start, end in zip(CUTS, CUTS[1:], strict=False)
    ]
    found = {"serving_default": parts}
    if name != "relation-classifier":
        rows = [[inputs[column][n] for column in columns] for n in range(3, 43)]
        rows = [example(**dict(zip(columns, row, strict=True))) for row in rows]
        found["examples"] = [{"examples": rows}, {"examples": [b"no example"]}]
    if name in ("classifier", "tagger", "question-answering", "fill-mask", "encoder"):
        found["ids"] = id_requests()
    return found


def id_requests():
    """Rows of ids: one as a client sends it, the same as a server pads it, and bad ones."""
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
    return [good, padded, *bad]


@pytest.fixture(scope="module")
def asked(folder, tmp_path_factory):
    """What the process says: name -> answers of each signature, and operations."""
    place = tmp_path_factory.mktemp("client")
    (place / "client.py").write_text((HERE / "client.py").read_text())
    (place / "asked").write_bytes(pickle.dumps({name: requests(name) for name in MAKERS}))
    run = subprocess.run(
        [sys.executable, "client.py", str(folder), "asked", "answered"],
        capture_output=True,
        text=True,
        cwd=place,
        env={
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PATH": "",
            "CUDA_VISIBLE_DEVICES": "-1",
            # As servers may have it: of no answer may a part be taken for a weight and kept.
            "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "true",
        },
    )
    assert run.returncode == 0, run.stderr
    found, loaded, _ = pickle.loads((place / "answered").read_bytes())
    assert not loaded & {"keras_bert", "keras_hub", "data_gen"}
    return found


def rows(asked, name, signature="serving_default"):
    """The answers of all requests of a signature: a dictionary of values for each example."""
    parts = asked[name]["answers"][signature]
    assert not [part for part in parts if isinstance(part, str)]
    return [
        {key: values[number] for key, values in part.items()}
        for part in parts
        for number in range(len(next(iter(part.values()))))
    ]


def texts_of(values):
    return [value.decode() for value in values]


def near(found, expected):
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=TOLERANCE)


def check_label(found, answer):
    """The likeliest of `probabilities`, which are in the order of the labels."""
    probabilities = list(answer["probabilities"].values())
    near(found["probabilities"], probabilities)
    near(found["score"], max(probabilities))
    assert found["label"].decode() == answer["label"]


def check_several(found, answer):
    near(found["probabilities"], list(answer["probabilities"].values()))
    given = np.array(list(answer["probabilities"]))[found["given"]]
    assert sorted(given) == sorted(answer["labels"])


def check_score(found, answer):
    near(found["score"], answer["score"])


def check_choice(found, answer):
    count = len(answer["choices"])
    near(found["probabilities"][:count], answer["probabilities"])
    assert not found["probabilities"][count:].any()
    assert found["choice"].decode() == answer["choices"][found["label"]]
    # Of choices that are the same tokens, which one is the likeliest is left to the rounding.
    ours, theirs = TOKENIZER.tokenize([found["choice"].decode(), answer["choice"]]).to_list()
    assert found["label"] == answer["label"] or ours == theirs


def check_words(found, answer):
    count = found["lengths"]
    assert texts_of(found["words"]) == answer["words"] + [""] * (len(found["words"]) - count)
    assert texts_of(found["tags"][:count]) == answer["tags"]
    for name in ("starts", "ends"):
        assert found[name][:count].tolist() == answer[name] and not found[name][count:].any()
    # A conditional random field sums over all words before and behind, in float32 in the graph.
    off = np.abs(found["scores"][:count] - answer["scores"])
    assert count == 0 or off.max() < max(TOLERANCE, 1e-5 * count)


def check_answer(found, answer):
    """The best piece, or one as good: windows of the same word again and again are alike."""
    near(found["null_score"], answer["null_score"])
    near(found["score"], answer["score"])
    if answer["answer"]:
        place = (found["start"], found["end"])
        pieces = {(piece["start"], piece["end"]): piece for piece in answer["n_best"]}
        assert place in pieces
        near(pieces[place]["score"], answer["score"])
        assert found["answer"].decode() == pieces[place]["answer"]
    else:
        assert (found["answer"], found["start"], found["end"]) == (b"", 0, 0)


def check_spans(found, answer):
    spans = answer["spans"]
    assert found["lengths"] == len(spans)
    assert texts_of(found["labels"][: len(spans)]) == [span["label"] for span in spans]
    for ours, theirs in (("starts", "start"), ("ends", "end")):
        assert found[ours][: len(spans)].tolist() == [span[theirs] for span in spans]
    near(found["scores"][: len(spans)], [span["score"] for span in spans])


CHECKS = {
    **dict.fromkeys(("classifier", "pair-classifier", "relation-classifier"), check_label),
    "multi-label": check_several,
    "regression": check_score,
    "multiple-choice": check_choice,
    **dict.fromkeys(("tagger", "tagger-crf"), check_words),
    "question-answering": check_answer,
    "span-classifier": check_spans,
}


def examples_of(name):
    """The examples as `predict` takes them."""
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


@pytest.mark.parametrize("name", CHECKS)
def test_answers_a_thousand_texts_as_predict_does(asked, models, name):
    found = rows(asked, name)
    answers = list(predict(model=models[name], data=examples_of(name), batch_size=128))
    assert len(found) == len(answers) == COUNT
    for number, (row, answer) in enumerate(zip(found, answers, strict=True)):
        try:
            CHECKS[name](row, answer)
        except AssertionError as error:
            raise AssertionError(f"Text {number}, {TEXTS[number]!r}: {error}") from error


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
@pytest.mark.parametrize("name", MAKERS)
def test_every_kind_can_be_had_in_a_smaller_precision(models, name, precision):
    _, off = as_exported(models[name], precision)
    assert 0 < off < 0.1


def test_embeds_a_thousand_texts_as_embed_does(asked, models):
    """All texts that a row holds; of others, what the encoder says of the row."""
    encoder = models["encoder"]
    found = rows(asked, "encoder")
    pieces = TOKENIZER.tokenize(TEXTS).row_lengths().numpy()
    room = encoder.config.max_length - 2
    assert 10 < np.sum(pieces > room) < 100
    for row, answer, count in zip(
        found, embed(model=(encoder, TOKENIZER), text=TEXTS, batch_size=128), pieces, strict=True
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


def test_fills_masks_as_fill_mask_does(asked, models):
    found = rows(asked, "fill-mask")
    assert [row["lengths"] for row in found] == [text.count("[MASK]") for text in MASKED]
    tokens = TOKENIZER.tokenize(MASKED).row_lengths().numpy()
    some = [n for n, row in enumerate(found) if row["lengths"] and tokens[n] < 38]
    assert len(some) > 50
    for number in some[:40]:  # text by text, `fill_mask` takes a second for a hundred
        expected = fill_mask(model=models["fill-mask"], text=MASKED[number])
        for place, candidates in enumerate(expected):
            near(found[number]["probabilities"][place], [c.probability for c in candidates])
            assert texts_of(found[number]["pieces"][place]) == [c.piece for c in candidates]


def test_a_batch_of_none_has_the_axes_of_any(asked):
    for name, answers in (
        (name, found["answers"]["serving_default"]) for name, found in asked.items()
    ):
        one, none = answers[0], answers[3]
        assert {key: values.shape[0] for key, values in none.items()} == dict.fromkeys(one, 0), name
        for key, values in none.items():
            assert values.ndim == one[key].ndim and values.dtype == one[key].dtype


def test_examples_are_answered_as_texts_are(asked):
    for name in MAKERS:
        if name == "relation-classifier":
            continue
        served = rows(asked, name)[3:43]
        good, bad = asked[name]["answers"]["examples"]
        assert isinstance(bad, str) and "example" in bad.lower()
        for number, row in enumerate(served):
            for key, values in row.items():
                again, values = np.asarray(good[key][number]), np.asarray(values)
                size = tuple(map(min, np.shape(again), np.shape(values)))
                cut = tuple(map(slice, size))
                if values.dtype.kind == "f":
                    near(again[cut], values[cut])
                else:
                    assert np.array_equal(again[cut], values[cut]), (name, key)


def test_ids_are_answered_alone_as_joined_by_a_server_and_refused_where_they_cannot_be(asked):
    for name, found in asked.items():
        if "ids" not in found["answers"]:
            continue
        good, padded, *bad = found["answers"]["ids"]
        for key, values in good.items():
            if values.ndim > 1 and padded[key].shape[1] == 15:
                padded[key] = padded[key][:, : values.shape[1]]
            if values.dtype.kind == "f":
                near(padded[key], values)
            else:
                assert np.array_equal(padded[key], values), (name, key)
        expected = [
            *[r"input_ids must be from 0 to \d+\."] * 2,
            *[r"segment_ids must be from 0 to 1\."] * 2,
            *["input_mask must be from 0 to 1", "input_mask must have the shape of input_ids"],
            r"A row may have at most \d+ ids",
        ]
        for error, message in zip(bad, expected, strict=True):
            assert re.search(message, error), name


def test_only_operations_that_servers_have(asked):
    """Those of TensorFlow Serving 2.17, which later ones have, too (see the list's first lines)."""
    lines = (HERE / "serving_operations.txt").read_text().splitlines()
    known = {line for line in lines if not line.startswith("#")}
    assert len(known) > 1000
    for name, found in asked.items():
        assert len(found["operations"]) > 20
        assert found["operations"] <= known, (name, found["operations"] - known)
        assert not {op for op in found["operations"] if "PyFunc" in op}


def test_nothing_tells_where_or_by_whom_it_was_made(folder):
    places = {str(folder), str(Path(keras_bert.__file__).parents[1]), sys.prefix, "/home/", "/tmp/"}
    names = {getpass.getuser(), socket.gethostname()} - {"root"}
    for path in folder.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            told = [told for told in places | names if len(told) > 3 and told.encode() in held]
            assert not told, (path, told)


def test_the_list_of_models_and_which_are_batched(folder):
    listed = re.findall(r'base_path: "/models/(.*)"', (folder / "models.config").read_text())
    assert listed == sorted(MAKERS)
    batched = {path.parts[-3] for path in folder.glob("*/1/batching_params.pbtxt")}
    assert batched == set(MAKERS) - {"multiple-choice", "relation-classifier"}


def test_the_models_that_the_page_is_tried_with_give_what_exports_give(folder):
    kinds = {"fill": "fill-mask", "names": "tagger", "questions": "question-answering"}
    for name, (inputs, outputs) in page_signatures().items():
        version = folder / kinds.get(name, name) / "1"
        found = parse_saved_model(str(version)).meta_graphs[0].signature_def["serving_default"]
        assert set(found.inputs) == {spec.name for spec in inputs}, name
        for output, spec in outputs.items():
            real = found.outputs[output]
            assert (real.dtype, len(real.tensor_shape.dim)) == (
                spec.dtype.as_datatype_enum,
                spec.shape.rank,
            ), (name, output)


@pytest.mark.parametrize("name", ["tagger", "question-answering"])
def test_what_holds_of_every_answer_holds_of_texts_that_hypothesis_makes(folder, name):
    """`benchmarks/fuzz_exports.py`, which asks every kind, for a moment."""
    assert fuzz(Model(folder / name), count=300) >= 300
