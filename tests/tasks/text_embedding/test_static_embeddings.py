"""Static embeddings of sentence-transformers and model2vec, and encoders in a folder of their own.

The vectors are compared with means by hand; test_sentence_transformers.py has those of the library.
"""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import keras_bert as kb
from keras_bert.base.errors import InputWarning
from keras_bert.checkpoints import load_task
from keras_bert.checkpoints.convert import convert
from keras_bert.tasks.text_embedding import LONGEST_STATIC
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

WORDS = ["w1", "w2", "w3", "query"]
TEXTS = ["w1 w2", "", "w3 日", "W1 " * 9]
MODULE = "sentence_transformers.models.StaticEmbedding"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(WORDS)


@pytest.fixture
def make(tokenizer, tmp_path):
    """A function that writes a folder of tensors, its modules and other JSON files by name."""

    def write(tensors, *, modules=(MODULE,), path="", cuts_at=None, **files):
        folder = tmp_path / "model"
        inner = folder / path
        inner.mkdir(parents=True)
        save_file(tensors, inner / "model.safetensors")
        tokenizer.save(tmp_path / "tokenizer")
        content = json.loads((tmp_path / "tokenizer/tokenizer.json").read_text())
        if cuts_at is not None:
            content["truncation"] = {"max_length": cuts_at, "strategy": "LongestFirst"}
        (inner / "tokenizer.json").write_text(json.dumps(content))
        if modules:
            paths = [path, *(f"{n}_{m.rpartition('.')[2]}" for n, m in enumerate(modules[1:], 1))]
            files["modules"] = [
                {"idx": n, "name": str(n), "path": p, "type": m}
                for n, (p, m) in enumerate(zip(paths, modules, strict=True))
            ]
        for name, content in files.items():
            (folder / f"{name}.json").write_text(json.dumps(content))
        return folder

    return write


def table(tokenizer, rows=None):
    return make_rng(5).normal(size=(rows or len(tokenizer), 6)).astype(np.float32)


def means(tokenizer, vectors, texts, *, most=None, leaves_out=None, normalize=False):
    rows = []
    for ids in tokenizer.tokenize(texts).to_list():
        ids = [id for id in ids if id != leaves_out][:most]
        mean = vectors[ids].mean(axis=0) if ids else np.zeros(6)
        rows.append(mean / max(np.linalg.norm(mean), 1e-12) if normalize else mean)
    return np.array(rows)


def near(vectors, expected):
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


@pytest.mark.parametrize("path", ["", "0_StaticEmbedding"])
def test_a_static_embedding_is_the_mean_without_special_tokens(make, tokenizer, path):
    vectors = table(tokenizer)
    about = {"prompts": {"query": "query "}, "similarity_fn_name": "dot"}
    folder = make({"embedding.weight": vectors}, path=path, config_sentence_transformers=about)
    task = load_task(folder)
    assert isinstance(task, kb.TextEmbedder) and task.config.model_type == "static"
    assert task.settings.max_length == LONGEST_STATIC and task.settings.similarity == "dot"
    near(task.encode(TEXTS), means(tokenizer, vectors, TEXTS))
    near(task.encode_query(["w1"]), means(tokenizer, vectors, ["query w1"]))
    embeddings = kb.embed(model=folder, text=TEXTS, tokens="none")
    near([embedding.embedding for embedding in embeddings], task.encode(TEXTS))


def test_it_is_cut_where_its_tokenizer_cuts_it(make, tokenizer):
    vectors = table(tokenizer)
    task = load_task(make({"embedding.weight": vectors}, cuts_at=4))
    with pytest.warns(InputWarning, match="1 of the 4 texts are longer than 4 tokens"):
        near(task.encode(TEXTS), means(tokenizer, vectors, TEXTS, most=4))


def test_what_is_written_is_a_static_embedding_again(make, tokenizer, tmp_path):
    vectors = table(tokenizer)
    modules = [
        MODULE,
        "sentence_transformers.models.Dense",
        "sentence_transformers.models.Normalize",
    ]
    folder = make({"embedding.weight": vectors}, modules=modules)
    (folder / "1_Dense").mkdir()
    dense = {"in_features": 6, "out_features": 3, "activation_function": None, "bias": False}
    dense["activation_function"] = "torch.nn.modules.activation.Tanh"
    (folder / "1_Dense" / "config.json").write_text(json.dumps(dense))
    weight = make_rng(6).normal(size=(3, 6)).astype(np.float32)
    save_file({"linear.weight": weight}, folder / "1_Dense" / "model.safetensors")
    task = load_task(folder)
    expected = np.tanh(means(tokenizer, vectors, TEXTS) @ weight.T)
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    near(task.encode(TEXTS), expected)
    task.save(tmp_path / "ours")
    names = [
        m["type"].rpartition(".")[2]
        for m in json.loads((tmp_path / "ours/modules.json").read_text())
    ]
    assert names == ["StaticEmbedding", "Dense", "Normalize"]
    np.testing.assert_array_equal(
        load_file(tmp_path / "ours/model.safetensors")["embedding.weight"], vectors
    )
    again = load_task(tmp_path / "ours")
    assert again.settings == task.settings
    np.testing.assert_array_equal(again.encode(TEXTS), task.encode(TEXTS))
    result = convert(input=folder, output=tmp_path / "converted")
    assert result["found"] == "sentence-transformers"
    np.testing.assert_array_equal(load_task(tmp_path / "converted").encode("w1"), task.encode("w1"))


def test_special_tokens_or_another_pooling_are_not_written_as_one(tokenizer, tmp_path):
    encoder = kb.StaticEncoder(kb.StaticConfig(vocab_size=len(tokenizer), hidden_size=6))
    kb.TextEmbedder(encoder, tokenizer, max_length=LONGEST_STATIC).save(tmp_path / "model")
    assert not (tmp_path / "model" / "modules.json").exists()


@pytest.mark.parametrize("normalize", [True, False])
def test_model2vec_without_modules_leaves_unknown_tokens_out(make, tokenizer, normalize):
    rows, rng = table(tokenizer, 20), make_rng(7)
    mapping = rng.integers(0, 20, len(tokenizer))
    weights = rng.uniform(0.5, 2, len(tokenizer)).astype(np.float32)
    tensors = {"embeddings": rows, "mapping": mapping, "weights": weights}
    config = {"model_type": "model2vec", "normalize": normalize, "max_length": 5}
    folder = make(tensors, modules=(), config=config)
    vectors = rows[mapping] * weights[:, None]
    unknown = tokenizer.vocabulary.unk_id
    expected = means(tokenizer, vectors, TEXTS, most=5, leaves_out=unknown, normalize=normalize)
    if normalize:
        task = load_task(folder)
    else:
        with pytest.warns(InputWarning, match="leaves unknown tokens out of the mean"):
            task = load_task(folder)
        expected[2] /= 2  # of two tokens one is unknown
    with pytest.warns(InputWarning, match="1 of the 4 texts"):
        near(task.encode(TEXTS), expected)


def test_quantized_vectors_and_a_tokenizer_with_fewer_special_tokens(make, tokenizer, tmp_path):
    rows = make_rng(8).integers(-127, 128, (len(tokenizer) - 3, 6)).astype(np.int8)
    folder = make({"embeddings": rows}, config={"model_type": "model2vec", "normalize": True})
    content = json.loads((folder / "tokenizer.json").read_text())
    special = ("[CLS]", "[SEP]", "[MASK]")
    tokens = [token for token in tokenizer.vocabulary.tokens if token not in special]
    content["model"]["vocab"] = {token: id for id, token in enumerate(tokens)}
    content["added_tokens"] = []
    content["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(content))
    task = load_task(folder)
    ids = [tokens.index(word) for word in ("w1", "w2")]
    near(task.encode(["w1 w2"])[0], rows[ids].astype(np.float32).mean(axis=0))


@pytest.mark.parametrize(
    ("tensors", "options", "message"),
    [
        ({"other": (2, 2)}, {}, "the tensor embedding.weight or embeddings is missing"),
        ({"embedding.weight": (3, 6)}, {}, "more than the 3 rows of the model's token embedding"),
        ({"embedding.weight": None}, {}, "has NaN or infinite numbers"),
        ({"embedding.weight": (None, 6)}, {"path": "a/b"}, "invalid path 'a/b'"),
        (
            {"embedding.weight": (None, 6)},
            {"modules": (MODULE, "sentence_transformers.models.Pooling")},
            "Expected StaticEmbedding, any number of Dense",
        ),
        (
            {"embeddings": (None, 6)},
            {"modules": (), "config": {"model_type": "model2vec", "normalize": "yes"}},
            "normalize is 'yes'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_file(make, tokenizer, tensors, options, message):
    def array(shape):
        if shape is None:
            return np.full((len(tokenizer), 6), np.nan, np.float32)
        return np.zeros([len(tokenizer) if n is None else n for n in shape], np.float32)

    folder = make({name: array(shape) for name, shape in tensors.items()}, **options)
    with raises_input_error(message):
        load_task(folder)


def test_rows_and_weights_that_do_not_fit_are_refused(make, tokenizer):
    rows = table(tokenizer, 5)
    folder = make({"embeddings": rows, "mapping": np.full(len(tokenizer), 5)})
    with raises_input_error("mapping has rows that embeddings with 5 rows lacks"):
        load_task(folder)
    save_file({"embeddings": rows, "weights": np.ones(4, np.float32)}, folder / "model.safetensors")
    with raises_input_error("Expected a weight for each of the 5 tokens"):
        load_task(folder)


def test_an_encoder_in_a_folder_of_its_own(tokenizer, tmp_path):
    task = kb.TextEmbedder(
        make_encoder(tokenizer), tokenizer, pooling="cls", normalize=True, max_length=9
    )
    root = tmp_path / "root"
    task.save(root)
    inner = root / "0_Transformer"
    inner.mkdir()
    for path in [path for path in root.iterdir() if path.is_file()]:
        if path.name not in ("modules.json", "config_sentence_transformers.json"):
            shutil.move(path, inner / path.name)
    config = json.loads((inner / "config.json").read_text())
    del config["keras_bert"]
    (inner / "config.json").write_text(json.dumps(config))
    (root / "modules.json").write_text(
        (root / "modules.json").read_text().replace('"path": ""', '"path": "0_Transformer"')
    )
    again = load_task(root)
    assert again.settings.pooling == "cls" and again.settings.max_length == 9
    np.testing.assert_array_equal(again.encode(TEXTS[:3]), task.encode(TEXTS[:3]))
