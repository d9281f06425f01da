"""Losses on the vectors of texts that belong together, each over a whole batch.

Pure functions of vectors, and `GroupLoss`, by which Keras calls them. Legend of shapes: B rows, n
texts per row, D numbers per vector. Vectors are float32.
"""

import keras
from keras import ops

from keras_bert.heads.pooling import unit_vectors
from keras_bert.tasks.text_embedding import (
    CONTRASTIVE,
    COSENT,
    COSINE_ERROR,
    IN_BATCH,
    LOSSES,
    MARGINS,
    SCALE,
    SIMCSE,
    TRIPLET,
)

_NEVER = -1e9  # a logit of what is not there
# The losses with a value for each row, which a weight of the row multiplies.
OF_ROWS = tuple(name for name in LOSSES if name != COSENT)


def in_batch_negatives(vectors, present, *, scale=SCALE, symmetric=False):
    """Cross-entropy of finding each anchor's positive among all texts of a batch (B,).

    The candidates of an anchor are the positives and the negatives of all rows, and their logits
    the cosines times `scale` (Henderson et al. 2017; van den Oord et al. 2018). With `symmetric` it
    is the mean of that and of finding the anchor of each positive among all anchors.

    Args:
        vectors: (B, n, D): of each row the anchor, its positive, and its negatives.
        present: (B, n), 0 where a row has fewer texts than others.
    """
    unit = unit_vectors(vectors)
    anchors, candidates = unit[:, 0], unit[:, 1:]
    count = ops.shape(candidates)[1]
    # All positives, then all first negatives, and so on: the target of row i is column i.
    columns = ops.reshape(ops.swapaxes(candidates, 0, 1), (-1, ops.shape(unit)[2]))  # (m B, D)
    is_there = ops.reshape(ops.transpose(present[:, 1 : count + 1]), (1, -1))  # (1, m B)
    logits = scale * ops.matmul(anchors, ops.transpose(columns))  # (B, m B)
    logits = ops.where(is_there > 0, logits, _NEVER)
    losses = _cross_entropy_of_diagonal(logits)
    if not symmetric:
        return losses
    backward = scale * ops.matmul(candidates[:, 0], ops.transpose(anchors))  # (B, B)
    return (losses + _cross_entropy_of_diagonal(backward)) / 2


def triplet(vectors, present, *, margin=MARGINS[TRIPLET]):
    """max(|a - p| - |a - n| + margin, 0), the mean over a row's negatives: (B,).

    Args:
        vectors, present: see `in_batch_negatives`.
        margin: in Euclidean distances.
    """
    anchors, positives, negatives = vectors[:, :1], vectors[:, 1:2], vectors[:, 2:]
    count = ops.shape(vectors)[1]
    is_there = ops.cast(present[:, 2:count] > 0, "float32")  # (B, n - 2)
    losses = ops.relu(_distance(anchors, positives) - _distance(anchors, negatives) + margin)
    return ops.sum(losses * is_there, axis=1) / ops.maximum(ops.sum(is_there, axis=1), 1.0)


def cosent(vectors, scores, *, scale=SCALE):
    """log(1 + Σ exp(scale (cos_j - cos_i))) over the pairs of rows with score_i > score_j: ().

    It asks only that rows with a higher score have a higher cosine (Su 2022). One value for a
    batch, a sum over its pairs of rows.

    Args:
        vectors: (B, 2, D).
        scores: (B, 1).
    """
    cosines = scale * _cosines(vectors)  # (B,)
    differences = cosines[None, :] - cosines[:, None]  # (i, j): cos_j - cos_i
    differences = ops.where(scores > ops.transpose(scores), differences, _NEVER)
    return ops.logsumexp(ops.concatenate([ops.zeros((1,)), ops.reshape(differences, (-1,))]))


def cosine_error(vectors, scores):
    """The squared difference of cosine and score: (B, 2, D), (B, 1) -> (B,)."""
    return ops.square(_cosines(vectors) - scores[:, 0])


def contrastive(vectors, labels, *, margin=MARGINS[CONTRASTIVE]):
    """½ (y d² + (1 - y) max(margin - d, 0)²), d = 1 - cosine (Hadsell et al. 2006): (B,).

    Args:
        vectors: (B, 2, D).
        labels: (B, 1), y: 1 for two texts that mean the same.
        margin: in 1 - cosine.
    """
    distances, labels = 1 - _cosines(vectors), labels[:, 0]
    far = ops.square(ops.relu(margin - distances))
    return (labels * ops.square(distances) + (1 - labels) * far) / 2


def at_sizes(loss, vectors, *, sizes, weights):
    """Σ weight · loss(the first numbers of the vectors), for each size (Kusupati et al. 2022).

    What is left of a vector is divided by its norm. `loss` is a function of vectors (B, n, D).
    """
    return sum(
        weight * loss(unit_vectors(vectors[..., :size]))
        for size, weight in zip(sizes, weights, strict=True)
    )


def _cosines(vectors):
    """The cosine of the two texts of each row: (B, 2, D) -> (B,)."""
    unit = unit_vectors(vectors)
    return ops.sum(unit[:, 0] * unit[:, 1], axis=-1)


def _distance(x, y):
    """Euclidean, with a gradient of 0 where they are equal."""
    squares = ops.sum(ops.square(x - y), axis=-1)
    return ops.sqrt(ops.maximum(squares, 1e-24))


def _cross_entropy_of_diagonal(logits):
    """(B, M), M at least B -> (B,), where the right answer of row i is column i."""
    targets = ops.diagonal(logits)
    return ops.logsumexp(logits, axis=1) - targets


@keras.saving.register_keras_serializable(package="keras_bert")
class GroupLoss(keras.losses.Loss):
    """One of LOSSES on `embedding` (B, n, D), the mean over the rows of a batch.

    It is not a mean over an epoch: the other rows of a batch are a part of it. With `sizes` it is
    the weighted sum of the loss at each size.

    The labels are (B, n), 1 for each text that a row has, or (B, 1), the score or the 0 or 1.

    Args:
        loss: its name.
        scale, symmetric, margin: see the functions; those that it has not are ignored.
        sizes: of Matryoshka, or empty for the whole vectors.
        weights: the weight of each size.
    """

    def __init__(
        self, loss, *, scale=SCALE, symmetric=False, margin=None, sizes=(), weights=(), name=None
    ):
        super().__init__(name=name or loss.replace("-", "_"), dtype="float32")
        self.loss, self.scale, self.symmetric, self.margin = loss, scale, symmetric, margin
        self.sizes, self.weights = [*sizes], [*weights]

    def call(self, y_true, y_pred):
        if not self.sizes:
            return self._of(y_pred, y_true)
        return at_sizes(
            lambda vectors: self._of(vectors, y_true),
            y_pred,
            sizes=self.sizes,
            weights=self.weights,
        )

    def _of(self, vectors, labels):
        margin = MARGINS.get(self.loss) if self.margin is None else self.margin
        if self.loss in (IN_BATCH, SIMCSE):
            symmetric = self.symmetric and self.loss == IN_BATCH
            return in_batch_negatives(vectors, labels, scale=self.scale, symmetric=symmetric)
        if self.loss == TRIPLET:
            return triplet(vectors, labels, margin=margin)
        if self.loss == COSENT:
            return cosent(vectors, labels, scale=self.scale)
        if self.loss == COSINE_ERROR:
            return cosine_error(vectors, labels)
        return contrastive(vectors, labels, margin=margin)

    def get_config(self):
        names = ("loss", "scale", "symmetric", "margin", "sizes", "weights")
        return {"name": self.name, **{name: getattr(self, name) for name in names}}
