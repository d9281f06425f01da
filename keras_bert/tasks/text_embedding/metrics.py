"""How good vectors of texts are: rated pairs, pairs of 0 or 1, triplets, and retrieval.

Pure functions over numpy arrays. Vectors are (N, D).
"""

import numpy as np
from scipy.stats import pearsonr, spearmanr

from keras_bert.tasks.text_embedding import COSINE, DOT, EUCLIDEAN

AT = (1, 3, 5, 10)  # the k of accuracy, precision and recall
DEPTH, RANKED = 10, 100  # of MRR and nDCG, and of MAP


def unit(vectors):
    """Vectors (…, D) divided by their Euclidean norms; a vector of zeros stays one."""
    norms = np.sqrt(np.sum(np.square(vectors), axis=-1, keepdims=True, dtype=np.float64))
    return (vectors / np.maximum(norms, 1e-12)).astype(np.float32)


def similarities(first, second, *, by=COSINE):
    """The similarity of each row of one with each of the other: (N, D), (M, D) -> (N, M).

    By "cosine", "dot" product, or the negative "euclidean" or "manhattan" distance.
    """
    if by == COSINE:
        return unit(first) @ unit(second).T
    if by == DOT:
        return first @ second.T
    if by == EUCLIDEAN:
        squares = (np.sum(np.square(x), axis=1, dtype=np.float64) for x in (first, second))
        first_squares, second_squares = squares
        products = first.astype(np.float64) @ second.T.astype(np.float64)
        distances = first_squares[:, None] + second_squares - 2 * products
        return -np.sqrt(np.maximum(distances, 0)).astype(np.float32)
    return -np.stack([np.abs(second - row).sum(axis=1) for row in first])


def pair_similarities(first, second, *, by=COSINE):
    """The similarity of the rows one by one: (N, D), (N, D) -> (N,); see `similarities`."""
    if by == COSINE:
        return np.sum(unit(first) * unit(second), axis=1)
    if by == DOT:
        return np.sum(first * second, axis=1)
    differences = first - second
    if by == EUCLIDEAN:
        return -np.sqrt(np.sum(np.square(differences), axis=1))
    return -np.sum(np.abs(differences), axis=1)


def rated_pair_metrics(similarity, scores):
    """`spearman` and `pearson` of similarities (N,) with scores (N,); None if one is constant."""
    if len({*np.asarray(scores).tolist()}) < 2 or len({*np.asarray(similarity).tolist()}) < 2:
        return {"spearman": None, "pearson": None}
    return {
        "spearman": float(spearmanr(similarity, scores).statistic),
        "pearson": float(pearsonr(similarity, scores).statistic),
    }


def binary_pair_metrics(similarity, labels):
    """Metrics of similarities (N,) that should be high where labels (N,) are 1, and low at 0.

    `average_precision`; `accuracy` and `f1`, each the best over all thresholds, with
    `accuracy_threshold` and `f1_threshold`, between two neighbours; `precision`, `recall` and
    `matthews` at the latter. None of labels that are all alike.
    """
    similarity, labels = np.asarray(similarity, np.float64), np.asarray(labels) > 0.5
    positives = int(labels.sum())
    names = ("average_precision", "accuracy", "accuracy_threshold", "f1", "f1_threshold")
    if positives in (0, len(labels)):
        return dict.fromkeys((*names, "precision", "recall", "matthews"))
    order = np.argsort(-similarity, kind="stable")
    ranked, hits = similarity[order], np.cumsum(labels[order])
    chosen = np.arange(1, len(ranked) + 1)
    # A threshold is below a similarity and above the next one, which is smaller.
    ends = np.append(ranked[:-1] > ranked[1:], True)
    lowest = np.nextafter(ranked[-1], -np.inf)
    thresholds = np.append((ranked[:-1] + ranked[1:]) / 2, lowest)
    precision, recall = hits / chosen, hits / positives
    average = float(np.sum(np.diff(recall[ends], prepend=0) * precision[ends]))
    correct = (hits + (len(ranked) - positives) - (chosen - hits)) / len(ranked)
    f1 = 2 * hits / (chosen + positives)
    most, best = (int(np.argmax(np.where(ends, x, -1))) for x in (correct, f1))
    tp, fp = hits[best], chosen[best] - hits[best]
    fn, tn = positives - tp, len(ranked) - positives - fp
    products = float(tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    values = (average, correct[most], thresholds[most], f1[best], thresholds[best])
    return {
        **dict(zip(names, map(float, values), strict=True)),
        "precision": float(precision[best]),
        "recall": float(recall[best]),
        "matthews": float((tp * tn - fp * fn) / np.sqrt(products)) if products else 0.0,
    }


def triplet_accuracy(positive, negative):
    """The fraction of rows whose positive is more similar than the negative: (N,), (N,)."""
    return float(np.mean(np.asarray(positive) > np.asarray(negative)))


def retrieval_metrics(ranked, relevant):
    """The means over queries of how well the relevant documents are ranked.

    `accuracy@k` is the fraction of queries with a relevant document among the first k,
    `precision@k` the fraction of the k that are relevant, `recall@k` that of the relevant documents
    that are among them; `mrr@10` the inverse rank of the first relevant one, `ndcg@10` the gain of
    the grades, discounted by the logarithm of the rank, as a fraction of the best possible one, and
    `map@100` the mean precision at the relevant documents.

    Args:
        ranked: a list of lists of ids, the best first.
        relevant: for each query {id: grade above 0}.
    """
    rows = [_query_metrics(*query) for query in zip(ranked, relevant, strict=True)]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _query_metrics(ids, relevant):
    grades = np.array([relevant.get(id, 0.0) for id in ids[:RANKED]])
    hits = grades > 0
    metrics = {}
    for k in AT:
        found = int(hits[:k].sum())
        metrics[f"accuracy@{k}"] = float(found > 0)
        metrics[f"precision@{k}"] = found / k
        metrics[f"recall@{k}"] = found / len(relevant)
    first = np.flatnonzero(hits[:DEPTH])
    metrics["mrr@10"] = 1 / (first[0] + 1) if len(first) else 0.0
    ideal = np.array(sorted(relevant.values(), reverse=True))
    metrics["ndcg@10"] = _discounted(grades[:DEPTH]) / _discounted(ideal[:DEPTH])
    precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    metrics["map@100"] = float(np.sum(precisions[hits]) / min(RANKED, len(relevant)))
    return metrics


def _discounted(grades):
    return float(np.sum(grades / np.log2(np.arange(2, len(grades) + 2))))
