"""From the scores of antecedents to clusters of mentions, in `predict` and in exports."""

import numpy as np
from keras import ops

from keras_bert.tasks.span_classification.decode import WordPositions

_DOCUMENTS_TOGETHER = 64


def cluster_numbers(candidates):
    """The number of each candidate's cluster, from 0 in the order of their first mentions.

    A candidate belongs to its best antecedent if that is better than none. -1 is for padding and
    for what is in no cluster of two or more.

    Shapes: (B, K, 2 + A), see `AntecedentScores` -> int32 (B, K).
    """
    scores = candidates[..., 2:]
    batch, count = ops.shape(scores)[:2]
    number = ops.arange(count, dtype="int32")  # (K,)
    best = number - 1 - ops.cast(ops.argmax(scores, axis=-1), "int32")  # (B, K)
    has_one = ops.logical_and(ops.max(scores, axis=-1) > 0, candidates[..., 0] >= 0)
    root = ops.where(has_one, best, number)

    # Each candidate points to its antecedent; doubling the steps leads to the first of its cluster.
    def step(root, _):
        after = ops.take_along_axis(root, root, axis=1)
        return after, ops.any(after != root)

    root, _ = ops.while_loop(lambda root, changed: changed, step, [root, ops.array(True)])
    places = root + ops.arange(batch, dtype="int32")[:, None] * count
    members = ops.segment_sum(
        ops.ones_like(ops.ravel(places)), ops.ravel(places), num_segments=batch * count
    )
    has_others = ops.reshape(members, (batch, count)) > 1
    is_first = ops.logical_and(has_others, root == number)
    number_of_first = ops.where(is_first, ops.cumsum(ops.cast(is_first, "int32"), axis=1) - 1, -1)
    return ops.take_along_axis(number_of_first, root, axis=1)


def predicted_clusters(outputs):
    """The clusters of documents, in the order of their first mentions.

    A cluster is a list of (first word, after the last word) in the order of the text.

    Args:
        outputs: for each document (K, 2 + A), with the padding of its batch.
    """
    clusters = []
    for start in range(0, len(outputs), _DOCUMENTS_TOGETHER):
        clusters += _clusters(outputs[start : start + _DOCUMENTS_TOGETHER])
    return clusters


def _clusters(outputs):
    count = max(map(len, outputs))
    if not count:
        return [[] for _ in outputs]
    candidates = np.full((len(outputs), count, outputs[0].shape[-1]), -1, np.float32)
    for padded, document_outputs in zip(candidates, outputs, strict=True):
        padded[: len(document_outputs)] = document_outputs
    numbers = ops.convert_to_numpy(cluster_numbers(ops.array(candidates)))
    clusters = [[[] for _ in range(document_outputs.max() + 1)] for document_outputs in numbers]
    for document, place in zip(*np.nonzero(numbers >= 0), strict=True):
        first, last = candidates[document, place, :2].astype(int).tolist()
        clusters[document][numbers[document, place]].append((first, last + 1))
    return clusters


def expected_clusters(spans):
    """The clusters of a document's labelled spans, as `predicted_clusters` returns them."""
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
    for example, (starts, ends), spans, clusters in zip(
        sequences.examples,
        sequences.words,
        sequences.spans,
        predicted_clusters(outputs),
        strict=True,
    ):
        position = WordPositions(example.text, starts, ends)
        clusters_by_name = {"clusters": clusters}
        if spans is not None:
            clusters_by_name["expected"] = expected_clusters(spans)
        described = {
            name: [[position.span(*span) for span in cluster] for cluster in named_clusters]
            for name, named_clusters in clusters_by_name.items()
        }
        predictions.append({"text": example.text, "words": position.words(), **described})
    return predictions
