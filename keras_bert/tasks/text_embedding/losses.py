"""Losses on the vectors of texts that belong together, each over a whole batch.

Pure functions of vectors, and `GroupLoss`, by which Keras calls them. Legend of shapes: B rows, n
texts per row, D numbers per vector. Vectors are float32.
"""

import keras
from keras import ops

from keras_bert.heads.pooling import unit_vectors
from keras_bert.tasks.text_embedding import (
    ANGLE,
    BATCH_TRIPLETS,
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
ROW_LOSSES = tuple(name for name in LOSSES if name not in (COSENT, ANGLE, BATCH_TRIPLETS))


def in_batch_negatives(vectors, present, *, scale=SCALE, symmetric=False):
    """Cross-entropy of finding each anchor's positive among all texts of a batch (B,).

    The candidates of an anchor are the positives and the negatives of all rows, and their logits
    the cosines times `scale` (Henderson et al. 2017; van den Oord et al. 2018). With `symmetric` it
    is the mean of that and of finding the anchor of each positive among all anchors.

    Args:
        vectors: (B, n, D): of each row the anchor, its positive, and its negatives.
        present: (B, n), 0 if a row has fewer texts than others.
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


def guided_in_batch_negatives(vectors, guides, *, scale=SCALE, margin=0.0, relative_margin=0.0):
    """`in_batch_negatives` without what a guide takes for positives, too: GISTEmbed (B,).

    The candidates of an anchor are the positives, the other anchors and the negatives of all rows,
    and with its positive also the other positives (Solatorio 2024). A text is left out if the guide
    finds it nearer to the anchor, or to the positive in the last case, than s - margin, or than
    s - |s| relative_margin, where s is its cosine of anchor and positive.

    Args:
        vectors: see `in_batch_negatives`.
        guides: (B, m, G), m at least n: the guide's vectors of the same texts, 0 if a row has
            fewer texts than others.
        scale: see `in_batch_negatives`.
        margin, relative_margin: in cosines of the guide, and as a fraction.
    """
    unit, guide = unit_vectors(vectors), unit_vectors(guides[:, : ops.shape(vectors)[1]])
    pair_cosine = ops.sum(guide[:, 0] * guide[:, 1], axis=-1, keepdims=True)  # (B, 1)
    limit = pair_cosine - ops.maximum(margin, relative_margin * ops.abs(pair_cosine))
    rows = ops.arange(ops.shape(unit)[0])
    is_own = ops.equal(rows[:, None], rows[None])  # (B, B)

    def logits(first, second, *, keeps_own):
        """(B, D), (M, D) of vectors and of the guide -> (B, M)."""
        is_near = ops.matmul(first[1], ops.transpose(second[1])) > limit
        if keeps_own is not None:
            is_near = ops.where(is_own, not keeps_own, is_near)
        cosines = ops.matmul(first[0], ops.transpose(second[0]))
        return ops.where(is_near, _NEVER, scale * cosines)

    anchors, positives = ((unit[:, place], guide[:, place]) for place in (0, 1))
    # All first negatives, then all second ones, and so on, as `in_batch_negatives` has them.
    rest = [ops.reshape(ops.swapaxes(x[:, 2:], 0, 1), (-1, ops.shape(x)[2])) for x in (unit, guide)]
    is_there = ops.any(ops.not_equal(rest[1], 0), axis=-1)[None]  # (1, M)
    parts = [
        logits(anchors, positives, keeps_own=True),
        logits(anchors, anchors, keeps_own=False),
        logits(positives, positives, keeps_own=False),
        ops.where(is_there, logits(anchors, rest, keeps_own=None), _NEVER),
    ]
    return _cross_entropy_of_diagonal(ops.concatenate(parts, axis=1))


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
    return _in_order(_cosines(vectors), scores, scale=scale)


def angle(vectors, scores, *, scale=SCALE):
    """`cosent` of the angle in the complex plane in place of the cosine (Li and Li 2023): ().

    The first half of a vector of norm 1 is the real part of D/2 complex numbers, and the second
    the imaginary one. In place of the cosine is the absolute sum of the real and imaginary parts
    of the product of one vector and the other's conjugate; D is even.

    Args:
        vectors, scores: see `cosent`.
    """
    unit = unit_vectors(vectors)
    (real, imaginary), (other_real, other_imaginary) = (
        ops.split(unit[:, place], 2, axis=-1) for place in (0, 1)
    )
    crossed = ops.sum(imaginary * other_real - real * other_imaginary, axis=-1)
    return _in_order(ops.abs(_cosines(vectors) + crossed), scores, scale=scale)


def _in_order(similarity, scores, *, scale):
    """log(1 + Σ exp(scale (s_j - s_i))) over rows with score_i > score_j: (B,), (B, 1) -> ()."""
    similarity = scale * similarity
    differences = similarity[None, :] - similarity[:, None]  # (i, j): s_j - s_i
    differences = ops.where(scores > ops.transpose(scores), differences, _NEVER)
    return ops.logsumexp(ops.concatenate([ops.zeros((1,)), ops.reshape(differences, (-1,))]))


def batch_triplets(vectors, labels, *, margin=MARGINS[BATCH_TRIPLETS], by_cosine=True):
    """max(d(a, p) - d(a, n) + margin, 0), the mean over all triplets of a batch above 0: ().

    A triplet is two texts of one label, and a text of another (Schroff et al. 2015; Hermans et al.
    2017). One value for a batch, and B³ numbers.

    Args:
        vectors: (B, 1, D).
        labels: (B, 1), a number for each label.
        margin: in distances.
        by_cosine: whether a distance is 1 - cosine, or Euclidean.
    """
    x = vectors[:, 0]
    if by_cosine:
        unit = unit_vectors(x)
        distances = 1 - ops.matmul(unit, ops.transpose(unit))  # (B, B)
    else:
        distances = _distance(x[:, None], x[None])
    same = ops.equal(labels, ops.transpose(labels))
    rows = ops.arange(ops.shape(x)[0])
    is_positive = ops.logical_and(same, ops.not_equal(rows[:, None], rows[None]))
    is_triplet = ops.logical_and(is_positive[:, :, None], ops.logical_not(same)[:, None])
    losses = ops.relu(distances[:, :, None] - distances[:, None] + margin)  # (anchor, p, n)
    losses = ops.where(is_triplet, losses, 0.0)
    count = ops.sum(ops.cast(losses > 1e-16, "float32"))
    return ops.sum(losses) / ops.maximum(count, 1.0)


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
    """Euclidean, with a gradient of 0 if they are equal."""
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

    The labels are (B, n), 1 for each text that a row has, or (B, 1), the score, the 0 or 1 or the
    number of the label; with `guided` they are the guide's vectors (B, n, G), 0 for no text.

    Args:
        loss: its name.
        scale, symmetric, margin: see the functions; those that it has not are ignored.
        guided: whether it is `guided_in_batch_negatives`.
        guide_margin, guide_relative_margin: its margins.
        sizes: of Matryoshka, or empty for the whole vectors.
        weights: the weight of each size.
    """

    def __init__(
        self,
        loss,
        *,
        scale=SCALE,
        symmetric=False,
        margin=None,
        guided=False,
        guide_margin=0.0,
        guide_relative_margin=0.0,
        sizes=(),
        weights=(),
        name=None,
    ):
        super().__init__(name=name or loss.replace("-", "_"), dtype="float32")
        self.loss, self.scale, self.symmetric, self.margin = loss, scale, symmetric, margin
        self.guided, self.guide_margin = guided, guide_margin
        self.guide_relative_margin = guide_relative_margin
        self.sizes, self.weights = [*sizes], [*weights]

    def call(self, y_true, y_pred):
        if not self.sizes:
            return self._value(y_pred, y_true)
        return at_sizes(
            lambda vectors: self._value(vectors, y_true),
            y_pred,
            sizes=self.sizes,
            weights=self.weights,
        )

    def _value(self, vectors, labels):
        if self.guided:
            margins = {"margin": self.guide_margin, "relative_margin": self.guide_relative_margin}
            return guided_in_batch_negatives(vectors, labels, scale=self.scale, **margins)
        function, names = _FUNCTIONS[self.loss]
        options = {name: getattr(self, name) for name in names}
        if "margin" in names and self.margin is None:
            options["margin"] = MARGINS[self.loss]
        return function(vectors, labels, **options)

    def get_config(self):
        names = ("loss", "scale", "symmetric", "margin", "guided", "guide_margin")
        names = (*names, "guide_relative_margin", "sizes", "weights")
        return {"name": self.name, **{name: getattr(self, name) for name in names}}


# Each loss: its function of vectors and labels, and the names of its options.
_FUNCTIONS = {
    IN_BATCH: (in_batch_negatives, ("scale", "symmetric")),
    TRIPLET: (triplet, ("margin",)),
    COSENT: (cosent, ("scale",)),
    ANGLE: (angle, ("scale",)),
    COSINE_ERROR: (cosine_error, ()),
    CONTRASTIVE: (contrastive, ("margin",)),
    BATCH_TRIPLETS: (batch_triplets, ("margin",)),
    SIMCSE: (in_batch_negatives, ("scale",)),
}
