"""The metrics of vectors, as sentence-transformers' evaluators and scikit-learn compute them."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, matthews_corrcoef

from keras_bert.search.vectors import ranked_documents
from keras_bert.tasks.text_embedding import SIMILARITIES
from keras_bert.tasks.text_embedding.metrics import (
    binary_pair_metrics,
    pair_similarities,
    rated_pair_metrics,
    retrieval_metrics,
    similarities,
    triplet_accuracy,
)
from tests.seeds import make_rng

FILE = Path(__file__).parents[2] / "reference" / "text_vectors" / "evaluators_expected.json"
EXPECTED = json.loads(FILE.read_text())
INPUTS, VALUES = EXPECTED["inputs"], EXPECTED["values"]
DOCUMENTS = {id: np.array(v, "float32") for id, v in INPUTS["documents"].items()}
QUERIES = {id: np.array(v, "float32") for id, v in INPUTS["queries"].items()}
EVERY = {**DOCUMENTS, **QUERIES}


def pairs():
    return tuple(
        np.stack([EVERY[id] for id in side]) for side in zip(*INPUTS["pairs"], strict=True)
    )


@pytest.mark.parametrize(
    ("name", "by", "size"),
    [
        ("information_retrieval_cosine_and_dot", "cosine", None),
        ("information_retrieval_cosine_and_dot", "dot", None),
        ("information_retrieval_dimension_3", "cosine", 3),
    ],
)
def test_retrieval(name, by, size):
    ranked = ranked_documents(
        np.stack([*QUERIES.values()])[:, :size],
        np.stack([*DOCUMENTS.values()])[:, :size],
        [*DOCUMENTS],
        by=by,
    )
    metrics = retrieval_metrics(ranked, [dict.fromkeys(INPUTS["relevant"][q], 1) for q in QUERIES])
    expected = {
        key.removeprefix(f"{by}_"): v for key, v in VALUES[name].items() if key.startswith(by)
    }
    assert metrics == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("by", SIMILARITIES)
def test_rated_pairs_and_pairs_of_0_and_1(by):
    similarity = pair_similarities(*pairs(), by=by)
    rated = rated_pair_metrics(similarity, INPUTS["gold_scores"])
    for name in ("spearman", "pearson"):
        assert rated[name] == pytest.approx(
            VALUES["embedding_similarity"][f"{name}_{by}"], abs=1e-6
        )
    metrics = binary_pair_metrics(similarity, INPUTS["binary_labels"])
    names = {"average_precision": "ap", "matthews": "mcc"}
    expected = VALUES["binary_classification"]
    for name in ("accuracy", "f1", "precision", "recall", *names):
        assert metrics[name] == pytest.approx(expected[f"{by}_{names.get(name, name)}"], abs=1e-6)
    sign = 1 if by in ("cosine", "dot") else -1  # their thresholds are of distances
    for name in ("accuracy_threshold", "f1_threshold"):
        assert sign * metrics[name] == pytest.approx(expected[f"{by}_{name}"], abs=1e-5)


@pytest.mark.parametrize("by", SIMILARITIES)
def test_triplets(by):
    first, positive, negative = (
        np.stack([EVERY[id] for id in column]) for column in zip(*INPUTS["triplets"], strict=True)
    )
    accuracy = triplet_accuracy(
        pair_similarities(first, positive, by=by), pair_similarities(first, negative, by=by)
    )
    assert accuracy == pytest.approx(VALUES["triplet"][f"{by}_accuracy"], abs=1e-6)


@pytest.mark.parametrize("by", SIMILARITIES)
def test_similarities_of_all_are_those_of_pairs(by):
    rng = make_rng(5)
    first, second = (rng.normal(size=(count, 6)).astype("float32") for count in (4, 7))
    every = similarities(first, second, by=by)
    for row in range(4):
        pair_scores = pair_similarities(np.repeat(first[row : row + 1], 7, axis=0), second, by=by)
        np.testing.assert_allclose(every[row], pair_scores, atol=1e-5)


def test_metrics_of_0_and_1_with_ties_are_those_of_scikit_learn():
    rng = make_rng(6)
    for _ in range(20):
        labels = rng.permutation([0, 1, *rng.integers(0, 2, 18)])
        similarity = rng.integers(0, 6, 20) / 5
        metrics = binary_pair_metrics(similarity, labels)
        expected = average_precision_score(labels, similarity)
        assert metrics["average_precision"] == pytest.approx(expected)
        predicted = similarity > metrics["f1_threshold"]
        assert metrics["matthews"] == pytest.approx(matthews_corrcoef(labels, predicted))
        predicted = similarity > metrics["accuracy_threshold"]
        assert metrics["accuracy"] == pytest.approx(np.mean(predicted == labels))


def test_of_labels_that_are_all_alike_there_is_no_metric():
    assert {*binary_pair_metrics(np.arange(3.0), [1, 1, 1]).values()} == {None}
    assert {*rated_pair_metrics(np.arange(3.0), [2, 2, 2]).values()} == {None}


def test_equal_documents_are_ranked_by_id_at_every_depth():
    ids = [f"d{number}" for number in range(12)]  # d10 is before d2
    documents, query = np.ones((12, 3), "float32"), np.ones((1, 3), "float32")
    for depth in (1, 3, 12, 20):
        (ranked,) = ranked_documents(query, documents, ids, depth=depth)
        assert ranked == sorted(ids)[:depth]
    (ranked,) = ranked_documents(query, documents, ids, depth=3, left_out=["d0"])
    assert ranked == ["d1", "d10", "d11"]


def test_grades_count_in_the_gain_alone():
    relevant = {"a": 3.0, "b": 1.0}
    (best, worse) = (retrieval_metrics([ids], [relevant]) for ids in (["a", "b"], ["b", "a"]))
    assert best["ndcg@10"] == 1
    gain = (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert worse["ndcg@10"] == pytest.approx(gain)
    names = ("map@100", "mrr@10", "accuracy@1", "precision@3", "recall@10")
    assert {name: best[name] for name in names} == {name: worse[name] for name in names}
