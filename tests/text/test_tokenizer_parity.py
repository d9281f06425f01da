"""The ids of the original BERT tokenizer, 0 differences (reference/make_tokenizer_reference.py)."""

import hashlib
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.text import Tokenizer

HERE = Path(__file__).resolve().parent.parent / "reference"
CASES = {"uncased": True, "cased": False}


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = load("make_tokenizer_reference")
reference = json.loads((HERE / "tokenizer.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizers(minilm_folder):
    path = minilm_folder / "vocab.txt"
    return {case: Tokenizer.from_vocab(path, lowercase) for case, lowercase in CASES.items()}


def digest(tokenizer, texts):
    """The digest of the reference's `Digest`: each row's length, then its ids."""
    sha256 = hashlib.sha256()
    for start in range(0, len(texts), 10_000):
        ids = tokenizer.tokenize(texts[start : start + 10_000])
        splits, flat = ids.row_splits.numpy(), ids.values.numpy()
        stream = np.empty(len(flat) + len(splits) - 1, dtype=np.int32)
        is_length = np.zeros(len(stream), dtype=np.bool_)
        is_length[splits[:-1] + np.arange(len(splits) - 1)] = True
        stream[is_length] = np.diff(splits)
        stream[~is_length] = flat
        sha256.update(stream.tobytes())
    return {"texts": len(texts), "sha256": sha256.hexdigest()}


@pytest.mark.parametrize("case", CASES)
def test_hard_strings(tokenizers, case):
    expected = reference[case]["hard"]
    assert expected.keys() == made.HARD.keys()
    ids = tokenizers[case].tokenize(list(made.HARD.values())).to_list()
    assert dict(zip(made.HARD, ids, strict=True)) == expected


@pytest.mark.parametrize("case", CASES)
def test_hard_strings_one_by_one(tokenizers, case):
    """The other texts of a batch must not change the ids of a text."""
    for name, text in made.HARD.items():
        assert (
            tokenizers[case].tokenize([text])[0].numpy().tolist() == (reference[case]["hard"][name])
        ), name


@pytest.mark.parametrize("case", CASES)
def test_all_texts_of_the_shared_data(tokenizers, case, shared_data, record_property):
    expected = reference[case]["files"]
    assert made.text_files(shared_data) == sorted(expected)
    digests = {
        name: digest(tokenizers[case], made.texts_of(shared_data / name)) for name in expected
    }
    record_property("texts compared", sum(item["texts"] for item in digests.values()))
    assert [name for name in expected if digests[name] != expected[name]] == []


@pytest.mark.parametrize("number", made.PLANES)
@pytest.mark.parametrize("case", CASES)
def test_every_code_point(tokenizers, case, number):
    plane_digest = digest(tokenizers[case], made.plane(number))
    assert plane_digest == reference[case]["planes"][str(number)]


@pytest.mark.parametrize("case", CASES)
def test_the_graph_gives_what_eager_calls_give(tokenizers, case):
    texts = [t.encode() if isinstance(t, str) else t for t in made.HARD.values()]
    expected = list(reference[case]["hard"].values())
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(7).map(tokenizers[case].tokenize)
    assert [row for batch in dataset for row in batch.to_list()] == expected
    signature = [tf.TensorSpec([None], tf.string)]
    function = tf.function(tokenizers[case].tokenize, signature, autograph=False)
    assert function(tf.constant(texts)).to_list() == expected
