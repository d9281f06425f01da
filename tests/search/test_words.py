"""BM25 in Lucene's form, and the merging of two lists by their ranks."""

import math
from collections import Counter

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.search import building
from keras_bert.search.index import Index
from keras_bert.search.words import WordReader, stop_words_of
from tests.peers import bm25s
from tests.search.indexes import found, sentences, table, vectors


def bm25(query, documents, k1=1.5, b=0.75):
    """The scores of lists of words for a list of words, as the formula has them."""
    mean = sum(map(len, documents)) / len(documents)
    scores = np.zeros(len(documents))
    for word in query:
        containing = sum(word in document for document in documents)
        idf = math.log(1 + (len(documents) - containing + 0.5) / (containing + 0.5))
        for number, document in enumerate(documents):
            f = document.count(word)
            scores[number] += idf * f / (f + k1 * (1 - b + b * len(document) / mean))
    return scores


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(building, "_TEXTS", 7)


def index_of(texts, **options):
    ids = [f"d{number:03d}" for number in range(len(texts))]
    data = [{"id": id, "text": text} for id, text in zip(ids, texts, strict=True)]
    return Index.build(None, data, vectors=np.ones((len(texts), 2)), words=True, **options)


def test_words_are_those_of_the_basic_tokenizer():
    words, counts = WordReader()(["The Café, isn't IT?", "", "日本 x_1 …", "ß1 Ⅷ"])
    assert words == ["the", "cafe", "isn", "t", "it", "日", "本", "x", "1", "ß1", "ⅷ"]
    assert counts.tolist() == [5, 0, 4, 2]
    words, _ = WordReader(stop_words=stop_words_of("english"))(["The cat is red"])
    assert words == ["cat", "red"]


def test_stop_words_of_a_file(tmp_path):
    (tmp_path / "stop.txt").write_text("Cat\n\ndog\n")
    assert stop_words_of(str(tmp_path / "stop.txt")) == ["cat", "dog"]
    index = index_of(["cat dog", "cat bird"], stop_words=str(tmp_path / "stop.txt"))
    assert found(index, ["cat"], by="words") == []
    assert [id for id, _ in found(index, "cat bird", by="words")[0]] == ["d001"]


def test_stems():
    snowballstemmer = pytest.importorskip("snowballstemmer")
    assert snowballstemmer.stemmer("english").stemWord("running") == "run"
    index = index_of(["running fast", "a cat"], stemming="english")
    assert [id for id, _ in found(index, "runs", by="words")[0]] == ["d000"]
    with pytest.raises(kb.InputError, match="no `stemming` 'klingon'"):
        index_of(["a"], stemming="klingon")


@pytest.mark.parametrize("query", ["cat", "cat cat ran", "the old dog flew", "zebra dog", "Cat!"])
def test_scores_are_those_of_the_formula(query, small_segments):
    texts = sentences(40)
    index, documents = index_of(texts), [text.split() for text in texts]
    expected = bm25(query.lower().strip("!").split(), documents)
    (results,) = found(index, query, by="words", top_k=40)
    assert {id for id, _ in results} == {f"d{n:03d}" for n in np.flatnonzero(expected)}
    for id, score in results:
        assert score == pytest.approx(expected[int(id[1:])], rel=1e-5)
    assert results == sorted(results, key=lambda pair: (-pair[1], pair[0]))
    assert found(index, query, by="words", top_k=3)[0] == results[:3]


def test_deleted_texts_count_in_nothing(small_segments):
    texts = sentences(30)
    index = index_of(texts)
    index.delete([f"d{number:03d}" for number in range(0, 30, 3)])
    left = [number for number in range(30) if number % 3]
    expected = bm25(["cat", "red"], [texts[number].split() for number in left])
    scores = dict(zip(left, expected, strict=True))
    (results,) = found(index, "cat red", by="words", top_k=30)
    assert len(results) == np.count_nonzero(expected)
    for id, score in results:
        assert score == pytest.approx(scores[int(id[1:])], rel=1e-5)


def test_both_is_the_sum_of_reciprocal_ranks(small_segments):
    data, given, query = table(30), vectors(30), vectors(1, seed=1)
    index = Index.build(None, data, vectors=given, words=True)
    ranks, options = Counter(), {"top_k": 30, "vectors": query}
    for by in ("vectors", "words"):
        for rank, (id, _) in enumerate(found(index, ["cat ran"], by=by, **options)[0], start=1):
            ranks[id] += 1 / (60 + rank)
    expected = sorted(ranks.items(), key=lambda pair: (-pair[1], pair[0]))
    merged = found(index, ["cat ran"], by="both", **options)[0]
    assert [id for id, _ in merged] == [id for id, _ in expected]
    np.testing.assert_allclose([s for _, s in merged], [s for _, s in expected])
    assert found(index, ["cat ran"], by="both", vectors=query, top_k=4)[0] == merged[:4]
    assert found(index, ["cat ran"], vectors=query, top_k=30)[0] == merged  # the default
    kept = found(index, ["cat ran"], filter={"source": "web"}, **options)[0]
    assert {id for id, _ in kept} <= {*data["id"][data["source"] == "web"]}


@pytest.mark.peers
def test_scores_are_those_of_bm25s():
    texts = sentences(200, seed=3)
    index, words = index_of(texts), [text.split() for text in texts]
    peer = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    peer.index(words, show_progress=False)
    for query in ("cat ran", "the the dog", "old red fish flew sat"):
        expected = peer.get_scores(query.split())
        (results,) = found(index, query, by="words", top_k=200)
        assert len(results) == np.count_nonzero(expected)
        for id, score in results:
            assert score == pytest.approx(float(expected[int(id[1:])]), rel=1e-5)
