"""Exact search compared with sorting all scores, and with sentence-transformers' values."""

import json
from pathlib import Path

import numpy as np
import pytest

from keras_bert.search.vectors import Int8Vectors, _float32, most_similar, similar_pairs
from keras_bert.tasks.text_embedding import SIMILARITIES
from keras_bert.tasks.text_embedding.metrics import similarities, unit
from tests.seeds import make_rng

REFERENCE = Path(__file__).parents[1] / "reference" / "text_vectors"
EXPECTED = json.loads((REFERENCE / "quantised_expected.json").read_text())
VALUES = EXPECTED["values"]


def vectors(*shape, seed=0):
    return make_rng(seed).normal(size=shape).astype(np.float32)


def sorted_scores(queries, documents, by, top_k, allowed=None):
    """Rows and scores by sorting all of them in float64, ties by number."""
    scores = similarities(queries.astype(np.float64), documents.astype(np.float64), by=by)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return rows, np.take_along_axis(scores, rows, axis=1)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("keras_bert.search.vectors._SCORES_TOGETHER", 40)
    monkeypatch.setattr("keras_bert.search.vectors._QUERIES_TOGETHER", 3)
    monkeypatch.setattr("keras_bert.search.vectors._NUMBERS_TOGETHER", 300)


@pytest.mark.parametrize("by", SIMILARITIES)
@pytest.mark.parametrize("top_k", [1, 5, 200])
def test_the_result_is_that_of_sorting_all_scores(by, top_k, small_blocks):
    queries, documents = vectors(7, 6), vectors(90, 6, seed=1)
    if by == "cosine":
        documents = unit(documents)
    allowed = make_rng(2).random(90) < 0.7
    for mask in (None, allowed):
        rows, scores = sorted_scores(queries, documents, by, top_k, mask)
        for sizes in ([90], [0, 13, 77], [30, 30, 30]):
            parts = np.split(documents, np.cumsum(sizes)[:-1])
            masks = None if mask is None else np.split(mask, np.cumsum(sizes)[:-1])
            best = most_similar(queries, parts, top_k=top_k, by=by, allowed=masks)
            count = best.rows.shape[1]
            assert count == min(top_k, 90 if mask is None else mask.sum())
            np.testing.assert_array_equal(best.rows, rows[:, :count])
            np.testing.assert_allclose(best.scores, scores[:, :count], atol=3e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("top_k", [1, 9, 150])
def test_blocks_of_many_groups(dtype, top_k):
    """Most groups have no candidate, and the last one is not whole."""
    queries, documents = vectors(20, 12), vectors(5013, 12, seed=1).astype(dtype)
    allowed = make_rng(2).random(5013) < 0.9
    for mask in (None, allowed):
        rows, scores = sorted_scores(queries, documents, "dot", top_k, mask)
        masks = None if mask is None else [mask]
        best = most_similar(queries, [documents], top_k=top_k, allowed=masks)
        np.testing.assert_array_equal(best.rows, rows)
        np.testing.assert_allclose(best.scores, scores, rtol=1e-5)


def test_every_float16_becomes_the_same_float32():
    numbers = np.arange(2**16, dtype=np.uint16).view(np.float16)
    numbers = numbers[np.isfinite(numbers)]
    for some in (numbers, numbers.reshape(2, -1).T):
        np.testing.assert_array_equal(_float32(some), some.astype(np.float32))


def test_a_result_depends_neither_on_the_other_queries_nor_on_the_parts(small_blocks):
    queries, documents = vectors(7, 24), vectors(130, 24, seed=1)
    all_results = most_similar(queries, [documents], top_k=9)
    for number in range(7):
        alone = most_similar(queries[number : number + 1], np.split(documents, 10), top_k=9)
        np.testing.assert_array_equal(alone.rows[0], all_results.rows[number])
        np.testing.assert_array_equal(alone.scores[0], all_results.scores[number])


@pytest.mark.parametrize("copies", [3, 60, 500])
def test_equal_scores_are_ordered_by_number_or_by_another_order(copies):
    """However a matrix product rounds them, and with more equal ones than results."""
    documents = np.concatenate([vectors(40, 33, seed=3), np.repeat(vectors(1, 33), copies, axis=0)])
    query = documents[-1:]
    for top_k in (1, 2, 10, 45):
        best = most_similar(query, [documents], top_k=top_k)
        equal = [row for row in best.rows[0].tolist() if row >= 40]
        assert equal == [*range(40, 40 + len(equal))] and len(equal) == min(top_k, copies)
        backwards = most_similar(query, [documents], top_k=top_k, order=lambda rows: -rows)
        last = len(documents) - 1
        assert backwards.rows[0, : len(equal)].tolist() == [last - n for n in range(len(equal))]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_memory_mapped_array_gives_the_same(tmp_path, dtype):
    documents, queries = vectors(50, 8).astype(dtype), vectors(3, 8, seed=1)
    np.save(tmp_path / "v.npy", documents)
    best = most_similar(queries, [np.load(tmp_path / "v.npy", mmap_mode="r")], top_k=4)
    rows, _ = sorted_scores(queries, documents.astype(np.float32), "dot", 4)
    np.testing.assert_array_equal(best.rows, rows)


def test_nothing_is_found_among_nothing():
    assert most_similar(vectors(2, 3), [np.zeros((0, 3), "float32")], top_k=4).rows.shape == (2, 0)
    assert most_similar(vectors(2, 3), [], top_k=4).rows.shape == (2, 0)
    assert most_similar(np.zeros((0, 3)), [vectors(5, 3)], top_k=4).rows.shape == (0, 4)


# int8.


@pytest.fixture(scope="module")
def quantised():
    inputs = np.load(REFERENCE / "quantisation_inputs.npz")
    return inputs["corpus"], inputs["queries"]


def test_codes_are_those_of_sentence_transformers(quantised):
    corpus, _ = quantised
    codes = Int8Vectors.of(corpus)
    assert codes.codes[0].tolist() == VALUES["int8_first_row"]
    assert (codes.codes[0].astype(int) + 128).tolist() == VALUES["uint8_first_row"]
    assert np.abs(codes[:] - corpus).max() <= codes.step.max() * (1 + 1e-5)


def test_scores_of_codes_are_those_of_sentence_transformers(quantised):
    """It searches with rounded queries first, and finds others: its results are compared."""
    corpus, queries = quantised
    codes = Int8Vectors.of(corpus)
    for query, expected in zip(queries, VALUES["search_uint8_rescored_multiplier_4"], strict=True):
        best = most_similar(query[None], [codes], top_k=130)
        found = dict(zip(best.rows[0].tolist(), best.scores[0].tolist(), strict=True))
        for row, score in expected:
            assert found[row] == pytest.approx(score, abs=1e-5)


def test_rescored_codes_find_what_float32_finds(quantised):
    corpus, queries = quantised
    for part in ([corpus], np.split(corpus, [50, 51])):
        codes = [Int8Vectors.of(some) for some in part]
        best = most_similar(queries, codes, top_k=5, exact=part)
        for rows, scores, expected in zip(*best, VALUES["search_float32"], strict=True):
            assert rows.tolist() == [row for row, _ in expected]
            np.testing.assert_allclose(scores, [score for _, score in expected], atol=1e-6)


def test_a_column_of_one_number_has_a_code():
    column = np.full((3, 2), 0.25, np.float32)
    np.testing.assert_array_equal(Int8Vectors.of(column)[:], column)


# Pairs.


@pytest.mark.parametrize("by", SIMILARITIES)
def test_pairs_are_those_of_all_scores(by, monkeypatch):
    monkeypatch.setattr("keras_bert.search.vectors._PAIRED_TOGETHER", 4)
    documents = vectors(23, 3)
    if by == "cosine":
        documents = unit(documents)
    scores = similarities(documents, documents, by=by)
    above = float(np.quantile(scores, 0.7))
    expected = {
        (row, column) for row, column in np.argwhere(scores >= above + 1e-5) if row < column
    }
    for sizes in ([23], [5, 0, 18]):
        parts = np.split(documents, np.cumsum(sizes)[:-1])
        found = [
            (*pair, score)
            for rows, columns, block_scores in similar_pairs(parts, above=above, by=by)
            for *pair, score in zip(
                rows.tolist(), columns.tolist(), block_scores.tolist(), strict=True
            )
        ]
        pairs = [(row, column) for row, column, _ in found]
        assert len({*pairs}) == len(pairs) and expected <= {*pairs}
        for row, column, score in found:
            assert row < column and score >= above
            assert score == pytest.approx(scores[row, column], abs=1e-4)
