"""The order of what was found by a cross-encoder: in Python, in the command and in metrics."""

import json

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.base.errors import InputWarning
from keras_bert.cli.main import main
from keras_bert.search.index import Index, load_index
from tests.messages import raises_input_error
from tests.search.indexes import WORDS, sentences, table, vectors
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

TOKENIZER = make_tokenizer(WORDS)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A model, a cross-encoder, a classifier, an index of 60 texts, and a retrieval folder."""
    place = tmp_path_factory.mktemp("place")
    kb.TextEmbedder(make_encoder(TOKENIZER), TOKENIZER, max_length=16).save(place / "model")
    activation = {"activation": "sigmoid", "max_length": 40}
    kb.Regressor(make_encoder(TOKENIZER), TOKENIZER, **activation).save(place / "reranker")
    labels = {"labels": ["a", "b", "c"]}
    kb.PairClassifier(make_encoder(TOKENIZER), TOKENIZER, **labels).save(place / "three")
    kb.Regressor(make_encoder(TOKENIZER), TOKENIZER, one_text=True).save(place / "single")
    Index.build(str(place / "model"), table(60), output=place / "i", words=True)
    (place / "beir" / "qrels").mkdir(parents=True)
    rng, texts = make_rng(4), sentences(72, seed=4)
    for name, first, last in (("corpus", 0, 60), ("queries", 60, 72)):
        rows = [{"_id": f"{name[0]}{n}", "text": text} for n, text in enumerate(texts[first:last])]
        (place / "beir" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    lines = ["query-id\tcorpus-id\tscore"]
    lines += [f"q{n}\tc{d}\t1" for n in range(12) for d in rng.choice(60, size=2, replace=False)]
    (place / "beir" / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return place


@pytest.fixture(scope="module")
def index(here):
    return load_index(here / "i")


def expected(here, query, rows):
    """(id, score) of rows as the scores of the pairs order them."""
    pairs = [(query, row["text"]) for row in rows]
    scores = [row["score"] for row in kb.predict(str(here / "reranker"), pairs)]
    order = np.argsort(-np.array(scores), kind="stable")
    return [(rows[n]["id"], pytest.approx(scores[n], abs=1e-5)) for n in order]


@pytest.mark.parametrize("by", ["vectors", "words", "both"])
def test_the_first_are_ordered_by_the_scores(here, index, by):
    for query in ("cat ran", "the old dog sat"):
        found = index.search(query, by=by, top_k=20)
        rows = index.search(query, by=by, top_k=5, rerank=here / "reranker", rerank_top=20)
        assert [(row["id"], row["score"]) for row in rows] == expected(here, query, found)[:5]
        assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]


def test_as_many_as_are_wanted_are_reranked(here, index):
    found = index.search("cat ran", by="vectors", top_k=60)
    task = kb.load_task(here / "reranker")
    rows = index.search("cat ran", by="vectors", top_k=55, rerank=task)
    assert [(r["id"], r["score"]) for r in rows] == expected(here, "cat ran", found[:55])
    default = index.search("cat ran", by="vectors", top_k=3, rerank=task)
    assert [(r["id"], r["score"]) for r in default] == expected(here, "cat ran", found[:50])[:3]


def test_several_queries_and_nothing_found(here, index):
    queries = ["cat ran", "xyzzy", "red bird"]
    options = {"by": "words", "rerank": str(here / "reranker"), "top_k": 4}
    first, nothing, last = index.search_each(queries, **options)
    assert nothing == []
    for query, rows in ((queries[0], first), (queries[2], last)):
        (alone,) = index.search_each([query], **options)
        assert [row["id"] for row in rows] == [row["id"] for row in alone]
    assert index.search([], **options) == []


def test_the_best_passage_is_scored(here):
    texts = [" ".join(sentences(6, seed=n)) for n in range(4)]
    index = Index.build(str(here / "model"), texts, passages=True)
    rows = index.search("cat ran", rerank=str(here / "reranker"))
    for row in rows:
        pair = [("cat ran", row["passage"])]
        (scored,) = kb.predict(str(here / "reranker"), pair)
        assert row["score"] == pytest.approx(scored["score"], abs=1e-5)
    assert any(row["passage"] != row["text"] for row in rows)


def test_pairs_that_are_cut_are_said(here):
    short = kb.Regressor(make_encoder(TOKENIZER), TOKENIZER, max_length=6)
    index = Index.build(None, ["cat", "dog " * 9], vectors=vectors(2), words=True)
    with pytest.warns(InputWarning, match="1 of the 2 pairs .* longer than 6 tokens"):
        index.search("cat dog", by="words", rerank=short)


def test_the_command(here, monkeypatch, capsys):
    monkeypatch.chdir(here)
    command = ["search", "i", "cat ran", "--json", "--rerank", "reranker", "--rerank-top", "7"]
    assert main([*command, "--top-k", "2"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()[:2]]
    found = load_index("i").search("cat ran", top_k=7)
    assert [(row["id"], row["score"]) for row in rows] == expected(here, "cat ran", found)[:2]
    assert main(["search", "i", "cat", "--rerank", "three"]) == 2
    assert "the task pair-classifier with 3 labels, which cannot rerank" in capsys.readouterr().err
    assert main(["search", "i", "cat", "--rerank", "nowhere"]) == 2
    assert main(["search", "i", "cat", "--rerank-top", "9"]) == 2
    assert "--rerank-top is for --rerank" in capsys.readouterr().err


def test_metrics_with_a_reranker(here, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(here)
    index = Index.build(str(here / "model"), here / "beir", output=tmp_path / "i", words=True)
    output = tmp_path / "q.jsonl"
    metrics = index.evaluate("beir", rerank="reranker", rerank_top=30, output=output)
    assert [*metrics["by"]] == ["vectors", "words", "both", "reranked"]
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    reranked = {row["query"]: row for row in rows if row["by"] == "reranked"}
    assert len(rows) == 4 * 12 and len(reranked) == 12
    query = reranked["q3"]
    found = index.search(query["text"], top_k=60)
    order = [id for id, _ in expected(here, query["text"], found[:30])]
    assert query["first"] == order[:10]
    # What is not reranked comes after it, as it was found.
    by = metrics["by"]
    assert by["reranked"]["recall@100"] == by["both"]["recall@100"]
    command = f"evaluate --index {tmp_path / 'i'} --data beir --rerank reranker"
    assert main(command.split()) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[0] == "reranked"


def test_rejected(here, index, tmp_path):
    with raises_input_error("a model of the task text-embedding, which cannot rerank"):
        index.search("cat", rerank=here / "model")
    with raises_input_error("a model of the task regression for single texts, which cannot"):
        index.search("cat", rerank=here / "single")
    with raises_input_error("`rerank_top` is for `rerank`. Leave it out."):
        index.search("cat", rerank_top=3)
    with raises_input_error("`rerank_top` must be at least 1"):
        index.search("cat", rerank=here / "reranker", rerank_top=0)
    (tmp_path / "empty").mkdir()
    with raises_input_error("Could not detect the model format"):
        index.search("cat", rerank=tmp_path / "empty")
    own = Index.build(None, table(3), vectors=vectors(3))
    with raises_input_error("Pass the texts to find."):
        own.search(vectors=vectors(1), rerank=here / "reranker")
    rows = own.search(["cat"], vectors=vectors(1), rerank=here / "reranker")
    assert len(rows) == 3
