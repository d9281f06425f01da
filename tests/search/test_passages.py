"""Long texts as passages, which together have every word and fit into the model."""

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.search import building
from keras_bert.search.index import Index
from keras_bert.search.passages import passages, passages_of_words
from keras_bert.tasks.text_embedding.metrics import unit
from tests.search.indexes import WORDS, sentences
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer(WORDS)
    prompts = {"document": "old red "}
    return kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=12, prompts=prompts)


def test_passages_have_every_word_fit_and_overlap():
    rng = make_rng(0)
    for _ in range(300):
        tokens = rng.integers(1, rng.integers(2, 12), size=rng.integers(1, 60))
        room = int(rng.integers(1, 20))
        found = passages_of_words(tokens, room=room)
        assert found[0][0] == 0 and found[-1][1] == len(tokens)
        for first, end in found:
            assert first < end
            assert tokens[first:end].sum() <= room or end == first + 1
        for (first, end), (next_first, next_end) in zip(found, found[1:], strict=False):
            assert first < next_first <= end < next_end
            assert tokens[next_first:end].sum() <= room / 4
            # As many words as fit, and as much overlap as the room leaves.
            assert tokens[first : end + 1].sum() > room
    assert passages_of_words(np.array([], int), room=3) == []


def test_passages_of_texts(task):
    texts = ["the cat", "", "  ", " ".join(sentences(9)), "cat " * 30, "x" * 40]
    found = passages(task, texts)
    assert found[0] == [(0, 7)] and found[1] == [(0, 0)] and found[2] == [(0, 2)]
    assert len(found[3]) > 3 and len(found[4]) > 3
    for text, passages_of_text in zip(texts[3:5], found[3:5], strict=True):
        parts = [text[start:end] for start, end in passages_of_text]
        assert {word for part in parts for word in part.split()} == {*text.split()}
        counts = task.tokenizer.tokenize([f"old red {part}" for part in parts]).row_lengths()
        assert counts.numpy().max() <= 10  # of 12 with [CLS] and [SEP]
        assert parts[0] == text[: len(parts[0])] and text.rstrip().endswith(parts[-1])


def test_a_text_has_the_score_of_its_best_passage(task, monkeypatch):
    monkeypatch.setattr(building, "_TEXTS", 3)
    rng = make_rng(1)
    texts = [" ".join(sentences(rng.integers(1, 8), seed=n)) for n in range(10)]
    index = Index.build(task, texts, passages=True, words=True)
    query = unit(task.encode_query(["cat ran"]))[0]
    best = {}
    for number, (text, bounds) in enumerate(zip(texts, passages(task, texts), strict=True), 1):
        parts = unit(task.encode_document([text[start:end] for start, end in bounds]))
        scores = parts @ query
        best[str(number)] = (scores.max(), bounds[scores.argmax()])
    results = index.search("cat ran", top_k=10, by="vectors")
    assert [row["id"] for row in results] == sorted(best, key=lambda id: -best[id][0])
    for row in results:
        score, (start, end) = best[row["id"]]
        assert row["score"] == pytest.approx(score, abs=1e-6)
        assert (row["start"], row["end"]) == (start, end)
        assert row["passage"] == row["text"][start:end]
        assert [*row] == index.result_columns
    assert index.search("cat ran", top_k=3, by="vectors") == results[:3]
    found = index.search("cat", top_k=10, by="words")
    assert all("cat" in row["passage"] for row in found)
    assert {row["id"] for row in found} == {str(n + 1) for n in range(10) if "cat" in texts[n]}


def test_without_passages_a_long_text_is_cut_and_it_is_said(task):
    with pytest.warns(kb.base.errors.InputWarning, match="1 of the 2 texts are longer"):
        Index.build(task, ["cat " * 30, "dog"])
