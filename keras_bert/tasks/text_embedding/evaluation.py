"""The metrics of examples of each form, from the vectors of their texts."""

import numpy as np
from scipy.stats import rankdata

from keras_bert.base.errors import InputError
from keras_bert.readers.retrieval_folder import RETRIEVAL
from keras_bert.search.vectors import ranked_documents
from keras_bert.tasks.text_embedding import BINARY, LABELS, PAIRS, SCORES
from keras_bert.tasks.text_embedding.metrics import (
    binary_pair_metrics,
    pair_similarities,
    rated_pair_metrics,
    retrieval_metrics,
    triplet_accuracy,
)

# The metric that selects the best epoch, by the form of the dev examples.
METRIC_OF = {
    PAIRS: "ndcg@10",
    RETRIEVAL: "ndcg@10",
    LABELS: "ndcg@10",
    SCORES: "spearman",
    BINARY: "average_precision",
}
_RETRIEVAL = ("ndcg@10", "mrr@10", "map@100", "recall@10", "accuracy@1")


def metrics_of(form, examples):
    """The names of the metrics of examples that may select the best epoch."""
    if form == SCORES:
        return ("spearman", "pearson")
    if form == BINARY:
        return ("average_precision", "f1", "accuracy")
    has_negatives = form == PAIRS and any(len(example.texts) > 2 for example in examples)
    return (*_RETRIEVAL, *(["triplet_accuracy"] if has_negatives else []))


def metrics_with(vectors, examples, *, size, by):
    """The metrics of examples of one form.

    Args:
        vectors: a list of float32 (n, D), the n texts of each example.
        examples: as many examples.
        size: the numbers of each vector that are used.
        by: the similarity.
    """
    form, vectors = examples[0].form, [example_vectors[:, :size] for example_vectors in vectors]
    if form in (SCORES, BINARY):
        first, second = (np.stack([v[place] for v in vectors]) for place in (0, 1))
        similarity = pair_similarities(first, second, by=by)
        labels = np.array([example.label for example in examples])
        metrics = rated_pair_metrics if form == SCORES else binary_pair_metrics
        return {**metrics(similarity, labels), "examples": len(examples)}
    queries, documents, triplet_metrics = _retrieval(vectors, examples, by=by)
    ranked = ranked_documents(
        np.stack([vector for vector, _, _ in queries]),
        np.stack([vector for _, vector in documents]),
        [id for id, _ in documents],
        by=by,
        left_out=[id for _, _, id in queries],
    )
    metrics = retrieval_metrics(ranked, [relevant for _, relevant, _ in queries])
    counts = {"queries": len(queries), "documents": len(documents)}
    return {**triplet_metrics, **metrics, **counts, "examples": len(examples)}


def _retrieval(vectors, examples, *, by):
    """-> (queries: (vector, {id: grade}, an id to leave out), documents: (id, vector), metrics).

    The metrics are `triplet_accuracy`, if examples have negatives.
    """
    if examples[0].form == RETRIEVAL:
        pairs = [*zip(examples, vectors, strict=True)]
        # A document with the id of a query is the query itself.
        queries = [(v[0], e.relevant, e.id) for e, v in pairs if e.relevant is not None]
        return queries, [(e.id, v[0]) for e, v in pairs if e.relevant is None], {}
    if examples[0].form == LABELS:
        return *_by_label(vectors, examples), {}
    anchors, relevant, documents, triplets = {}, {}, {}, []
    for example, example_vectors in zip(examples, vectors, strict=True):
        anchor, positive, *_ = example.texts
        anchors.setdefault(anchor, example_vectors[0])
        relevant.setdefault(anchor, {})[positive] = 1.0
        for text, vector in zip(example.texts[1:], example_vectors[1:], strict=True):
            documents.setdefault(text, vector)
        triplets += [
            (example_vectors[0], example_vectors[1], negative) for negative in example_vectors[2:]
        ]
    metrics = {}
    if triplets:
        first, positive, negative = (np.stack(part) for part in zip(*triplets, strict=True))
        metrics["triplet_accuracy"] = triplet_accuracy(
            pair_similarities(first, positive, by=by), pair_similarities(first, negative, by=by)
        )
    # An anchor that is also a document would find itself first, unless it is its own positive.
    queries = [
        (vector, relevant[text], text if text not in relevant[text] else None)
        for text, vector in anchors.items()
    ]
    return queries, [*documents.items()], metrics


def _by_label(vectors, examples):
    """-> (queries, documents) of texts with labels; one whose label no other has is left out."""
    ids_by_label = {}
    for number, example in enumerate(examples):
        ids_by_label.setdefault(example.label, []).append(str(number))
    documents = [(str(number), text_vectors[0]) for number, text_vectors in enumerate(vectors)]
    queries = [
        (vector, {other: 1.0 for other in ids_by_label[example.label] if other != id}, id)
        for example, (id, vector) in zip(examples, documents, strict=True)
        if len(ids_by_label[example.label]) > 1
    ]
    if not queries:
        raise InputError(
            f"{examples[0].source.name} has no label twice, so that there is nothing to find."
        )
    return queries, documents


def pair_errors(similarity, predictions, examples):
    """Yields what is wrong with the similarities (N,) of pairs, as `Task.errors` has it."""
    labels = np.array([example.label for example in examples])
    if examples[0].form == SCORES:
        error = np.abs(rankdata(similarity) - rankdata(labels)) / len(labels)
    else:
        threshold = binary_pair_metrics(similarity, labels)["f1_threshold"] or 0.0
        is_wrong = (similarity > threshold) != (labels > 0.5)
        error = np.where(is_wrong, np.abs(similarity - threshold), np.nan)
    for prediction, example, error_of_pair in zip(predictions, examples, error, strict=True):
        if not np.isnan(error_of_pair):
            yield {
                "line": example.line,
                "text_a": prediction["text_a"],
                "text_b": prediction["text_b"],
                "expected": example.label,
                "predicted": prediction["similarity"],
                "error": float(error_of_pair),
            }
