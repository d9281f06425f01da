"""Static students of text embedders: the formula of model2vec in float64, and what is written."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.training.static_student import components, sif_weights
from tests.checkpoints.conftest import shake
from tests.messages import raises_input_error
from tests.peers import sentence_transformers
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_mpnet_tokenizer, make_tokenizer

WORDS = [f"w{number}" for number in range(9)]
TEXTS = ["w1 w2 and w3", "", "W5!", "日 w1", "w1 " * 40]


def teacher(tokenizer=None, **changes):
    tokenizer = tokenizer or make_tokenizer(WORDS)
    encoder = make_encoder(tokenizer, hidden_size=16, num_hidden_layers=2, **changes)
    return shake(kb.TextEmbedder(encoder, tokenizer, normalize=True, prompts={"query": "w1 "}))


def by_formula(task, dimensions, sif):
    """{token: its vector}, float64, one token after another."""
    tokenizer, vocabulary = task.tokenizer, task.tokenizer.vocabulary
    special = {*vocabulary.special_ids.tolist()} - {vocabulary.pad_id, vocabulary.unk_id}
    ids = [id for id in range(len(vocabulary)) if id not in special]
    own = {part: vocabulary.id(part) for part, _ in tokenizer.template.parts(1) if part != 0}
    rows = []
    for id in ids:
        sequence = [own.get(part, id) for part, _ in tokenizer.template.parts(1)]
        inputs = {"input_ids": [sequence], "input_mask": [[1] * len(sequence)]}
        inputs["segment_ids"] = [[0] * len(sequence)]
        inputs = {name: np.array(inputs[name], "int32") for name in task.encoder.input_names}
        rows.append(np.asarray(task.encoder(inputs)["sequence_output"], np.float64)[0].mean(axis=0))
    centred = np.array(rows) - np.mean(rows, axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    scores = centred @ axes[:dimensions].T
    scores *= np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(dimensions)])
    zipf = 1 / np.arange(2, len(ids) + 2)
    weights = sif / (sif + zipf / zipf.sum()) if sif else np.ones(len(ids))
    return {
        vocabulary.token(id): row for id, row in zip(ids, scores * weights[:, None], strict=True)
    }


@pytest.mark.parametrize(
    "family, sif",
    [("bert", 1e-4), pytest.param("mpnet", 1e-4, marks=pytest.mark.slow), ("bert", 0.0)],
)
def test_vectors_are_those_of_the_formula(family, sif, tmp_path):
    tokenizer = make_mpnet_tokenizer(WORDS) if family == "mpnet" else make_tokenizer(WORDS)
    task = teacher(tokenizer, model_type=family)
    task.save(tmp_path / "teacher")
    done = kb.distill(
        teacher=tmp_path / "teacher", static=True, dimensions=5, sif=sif, output=tmp_path / "static"
    )
    assert (done["tokens"], done["dimensions"]) == (len(tokenizer), 5)
    student = kb.load_task(tmp_path / "static")
    expected = by_formula(task, 5, sif)
    table = np.asarray(student.encoder.embedding.embeddings)
    vocabulary = student.tokenizer.vocabulary
    size = max(np.abs(row).max() for row in expected.values())
    for token, row in expected.items():
        if token != vocabulary.special_tokens.unk:
            np.testing.assert_allclose(table[vocabulary.id(token)], row, atol=1e-5 * size)
    assert not table[vocabulary.unk_id].any()
    assert student.encode_query("w2").tolist() == student.encode("w1 w2").tolist()
    ids = student.tokenizer.tokenize(TEXTS).to_list()
    means = np.array([table[row].mean(axis=0) if row else np.zeros(5) for row in ids])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(student.encode(TEXTS), means, atol=1e-5)


def test_components_keep_distances():
    vectors = make_rng(1).normal(size=(30, 6))
    scores = components(vectors, 6)
    for array in (scores, components(vectors, None)):
        np.testing.assert_allclose(array.mean(axis=0), 0, atol=1e-12)
        difference = array[:, None] - array
        expected = vectors[:, None] - vectors
        np.testing.assert_allclose(
            np.linalg.norm(difference, axis=-1), np.linalg.norm(expected, axis=-1)
        )
    assert (np.diff(scores.var(axis=0)) <= 0).all()
    rising = sif_weights(100, 1e-2)
    assert (np.diff(rising) > 0).all() and 0 < rising[0] < rising[-1] < 1


@pytest.mark.slow
def test_a_static_student_is_under_every_task_and_is_trained_toward_its_teacher(tmp_path):
    teacher().save(tmp_path / "teacher")
    rng = make_rng(2)
    data = [" ".join(rng.choice(WORDS, size=5)) for _ in range(60)]
    metrics = kb.distill(
        teacher=tmp_path / "teacher",
        static=True,
        data=data,
        output=tmp_path / "run",
        epochs=2,
        learning_rate=1e-2,
    )
    assert metrics["history"][-1]["train"]["loss"] < metrics["history"][0]["train"]["loss"]
    student = kb.load_task(tmp_path / "run")
    assert student.config.model_type == "static" and student.width == 16
    modules = json.loads((tmp_path / "run" / "model" / "modules.json").read_text())
    names = [module["type"].rpartition(".")[2] for module in modules]
    assert names == ["StaticEmbedding", "Normalize"]
    rows = [{"text": text, "label": "ab"[number % 2]} for number, text in enumerate(data)]
    kb.finetune(model=tmp_path / "run", train=rows, output=tmp_path / "classifier", epochs=1)
    [answer] = kb.predict(model=tmp_path / "classifier", text=["w1 w2"])
    assert answer["label"] in "ab"


def test_the_command_and_bad_input(tmp_path, capsys):
    teacher().save(tmp_path / "teacher")
    command = ["distill", "--static", "--teacher", str(tmp_path / "teacher")]
    output = ["--output", str(tmp_path / "static")]
    assert main([*command, *output]) == 0
    said = capsys.readouterr()
    assert "A vector of 16 numbers for each of" in said.err and "Next: keras-bert embed" in said.out
    assert main([*command, *output]) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*command, *output, "--force"]) == 0
    given = {"teacher": tmp_path / "teacher", "static": True, "output": tmp_path / "other"}
    with raises_input_error("`dimensions` is 17...have 16 numbers"):
        kb.distill(**given, dimensions=17)
    with raises_input_error("is a static embedding already"):
        kb.distill(**{**given, "teacher": tmp_path / "static"})
    with raises_input_error("`dimensions` is for a static student without `data`"):
        kb.distill(**given, dimensions=4, data=["w1", "w2"])
    assert not (tmp_path / "other").exists()


def test_model2vecs_folder_has_the_same_vectors(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    teacher().save(tmp_path / "teacher")
    kb.distill(teacher=tmp_path / "teacher", static=True, output=tmp_path / "static")
    kb.convert(tmp_path / "static", tmp_path / "theirs", to="model2vec")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert config["model_type"] == "model2vec" and config["normalize"] is True
    tensors = load_file(tmp_path / "theirs" / "model.safetensors")
    ours = kb.load_task(tmp_path / "static")
    assert tensors.keys() == {"embeddings"}
    np.testing.assert_array_equal(tensors["embeddings"], ours.encoder.embedding.embeddings)
    again = kb.load_task(tmp_path / "theirs")
    np.testing.assert_array_equal(again.encode(TEXTS), ours.encode(TEXTS))
    np.testing.assert_array_equal(again.encode_query("w2"), ours.encode_query("w2"))
    with raises_input_error("give another folder, or `force=True` to replace it"):
        kb.convert(tmp_path / "teacher", tmp_path / "teacher2", to="huggingface")
        kb.convert(tmp_path / "static", tmp_path / "teacher2", to="huggingface")
    kb.convert(tmp_path / "static", tmp_path / "theirs", to="model2vec", force=True)
    with raises_input_error("Only a text embedder of static vectors"):
        kb.convert(tmp_path / "teacher", tmp_path / "other", to="model2vec")


@pytest.mark.peers
def test_sentence_transformers_opens_it(tmp_path):
    teacher().save(tmp_path / "teacher")
    kb.distill(teacher=tmp_path / "teacher", static=True, output=tmp_path / "static")
    their_model = sentence_transformers.SentenceTransformer(str(tmp_path / "static"), device="cpu")
    ours = kb.load_task(tmp_path / "static")
    np.testing.assert_allclose(ours.encode(TEXTS), their_model.encode(TEXTS), atol=1e-5)
