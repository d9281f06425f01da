"""From scores of antecedents to clusters of mentions."""

import numpy as np

from keras_bert.tasks.metrics import worst_first
from keras_bert.tasks.span_classification.decode import WordPositions


def clusters_of(candidates):
    """The clusters, of two or more, of candidates and their best antecedents if better than none.

    Shapes: candidates (K, 2 + A), see `AntecedentScores`.

    Returns a list of clusters, in the order of their first mentions: lists of (first word, after
    the last word) in the order of the text.
    """
    clusters = []  # the cluster of each candidate
    for number, (first, last, *scores) in enumerate(candidates.tolist()):
        if first < 0:
            break
        best = int(np.argmax(scores))
        cluster = clusters[number - 1 - best] if scores[best] > 0 else []
        cluster.append((int(first), int(last) + 1))
        clusters.append(cluster)
    different = {id(cluster): cluster for cluster in clusters if len(cluster) > 1}
    return list(different.values())


def expected_clusters(spans):
    """The clusters of a document's labelled spans, as `clusters_of` returns them."""
    clusters = {}
    for start, end, label in sorted(spans, key=lambda span: span[:2]):
        clusters.setdefault(label, []).append((start, end))
    return list(clusters.values())


def coreference_predictions(outputs, sequences):
    """N dictionaries: `text`, `words`, `clusters`, and `expected` if that is known.

    A cluster is a list of mentions with `start` and `end` in characters of the text, `words`
    ([first, after the last]) and `text`.

    Args:
        outputs: for each document (K, 2 + A), with the padding of its batch.
        sequences: the `CoreferenceSequences`.
    """
    predictions = []
    for example, (starts, ends), spans, candidates in zip(
        sequences.examples, sequences.words, sequences.spans, outputs, strict=True
    ):
        position = WordPositions(example.text, starts, ends)
        clusters_by_name = {"clusters": clusters_of(candidates)}
        if spans is not None:
            clusters_by_name["expected"] = expected_clusters(spans)
        described = {
            name: [[position.of(*span) for span in cluster] for cluster in clusters]
            for name, clusters in clusters_by_name.items()
        }
        predictions.append({"text": example.text, "words": position.words(), **described})
    return predictions


def cluster_sets(clusters):
    """The clusters of a prediction as sets of (first word, after the last word)."""
    return [{tuple(mention["words"]) for mention in cluster} for cluster in clusters]


def coreference_errors(predictions, examples):
    """The documents with wrong clusters, the worst first.

    Returns dictionaries of `line`, `text`, the `expected` and the `predicted` clusters that differ,
    as lists of the mentions' texts, and `score`, their number.
    """
    errors = []
    for prediction, example in zip(predictions, examples, strict=True):
        sides = [prediction["expected"], prediction["clusters"]]
        expected, predicted = map(cluster_sets, sides)
        missed, wrong = (
            [
                [m["text"] for m in c]
                for c, mentions in zip(side, sets, strict=True)
                if mentions not in other
            ]
            for side, sets, other in zip(
                sides, (expected, predicted), (predicted, expected), strict=True
            )
        )
        if missed or wrong:
            error = {"line": example.line, "text": prediction["text"]}
            error |= {"expected": missed, "predicted": wrong}
            errors.append({**error, "score": float(len(missed) + len(wrong))})
    return worst_first(errors)


def describe_coreference_error(error):
    """One of `coreference_errors` in words."""
    parts = [
        f"{heading} {', '.join(' = '.join(cluster) for cluster in error[key]) or 'nothing'}"
        for heading, key in (("true:", "expected"), ("predicted:", "predicted"))
    ]
    return f"line {error['line']}, {'; '.join(parts)}"
