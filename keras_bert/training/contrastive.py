"""The training of a classifier's vectors by its labels, and the head that is fitted to them."""

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.heads.reader import WithoutMasks
from keras_bert.inputs.batches import SequenceBatches

# The bias of a label that no example has.
_NEVER = -20.0


def vector_model(task):
    """The model of a classifier's inputs to the `vector` (B, U) that its `Dense` reads.

    Its weights are those of the task, whose dropout before the `Dense` it leaves out.
    """
    inputs = task.input
    features = {name: inputs[name] for name in task.feature_inputs()}
    encoded = WithoutMasks()(task.encoder(features, outputs=task.encoder_outputs))
    vector = task.text_vector(task.reader.select(encoded), inputs)
    return keras.Model(inputs, {"vector": ops.cast(vector, "float32")}, name="vectors")


@keras.saving.register_keras_serializable(package="keras_bert")
class LabelCosines(keras.losses.Loss):
    """The squared error of the cosine of each two texts of a batch, whose target is their labels'.

    The target is 1 for equal labels and 0 for others; with several labels per text it is the number
    of those that both have, divided by that of those that one has (Jaccard). Pairs with a target
    above 0 and the others count half each, so that rare labels are not drowned. With one label per
    text this is the loss of SetFit (Tunstall et al. 2022) over all pairs of the batch.

    Shapes: labels (B,), as numbers, or (B, C) of 0 and 1; vectors (B, U) -> (B,).
    """

    def __init__(self, name="label_cosines", **options):
        super().__init__(name=name, **options)

    def call(self, y_true, y_pred):
        norms = ops.sqrt(ops.sum(ops.square(y_pred), axis=-1, keepdims=True))
        unit = y_pred / ops.maximum(norms, 1e-12)
        target = label_similarities(ops.cast(y_true, unit.dtype))
        errors = ops.square(ops.matmul(unit, ops.transpose(unit)) - target)  # (B, B)
        others = 1 - ops.eye(ops.shape(unit)[0], dtype=unit.dtype)
        alike = ops.cast(target > 0, unit.dtype)
        return sum(
            ops.sum(weights * errors, axis=-1) / ops.maximum(ops.sum(weights, axis=-1), 1)
            for weights in (others * alike, others * (1 - alike))
        )


def label_similarities(labels):
    """The targets (B, B) of `LabelCosines`, from its labels."""
    if len(labels.shape) == 1:
        return ops.cast(labels[:, None] == labels[None, :], labels.dtype)
    both = ops.matmul(labels, ops.transpose(labels))
    counts = ops.sum(labels, axis=-1)
    either = counts[:, None] + counts[None, :] - both
    # Two texts without any label are alike.
    return ops.where(either > 0, both / ops.maximum(either, 1), 1.0)


class EvenBatches(SequenceBatches):
    """Examples in batches that have as many texts of each label as there are, two at a time.

    Args:
        examples: the `TokenizedExamples` of a classifier.
    """

    def __init__(self, examples):
        super().__init__(examples.lengths)
        self._examples = examples
        self._labels = np.asarray(examples.labels["logits"])

    def batch(self, numbers):
        inputs, labels, *_ = self._examples.batch(numbers)
        return inputs, {"vector": labels["logits"]}

    def epoch_batches(self, *, count, seed, epoch):
        rng = np.random.default_rng([seed, epoch])
        size = -(-len(self) // count)
        return [np.array(even_batch(self._labels, size=size, rng=rng)) for _ in range(count)]


def even_batch(labels, *, size, rng):
    """Numbers of `size` examples, int32: of each label in turn two, until no more fit.

    A label with few examples soon has none left, and the others fill the batch.

    Args:
        labels: (N,), as numbers, or (N, C) of 0 and 1.
        size: at most N.
        rng: a numpy generator.
    """
    waiting = [rng.permutation(members).tolist() for members in members_of_labels(labels)]
    waiting = [waiting[number] for number in rng.permutation(len(waiting))]
    batch = {}  # whose keys are in order
    while len(batch) < size:
        for members in waiting:
            for number in members[: min(2, size - len(batch))]:
                batch[number] = None
            del members[:2]
    return [*batch]


def members_of_labels(labels):
    """For each label the numbers of its examples, and with several per text of those without."""
    labels = np.asarray(labels)
    if labels.ndim == 1:
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    else:
        columns = [*(labels > 0).T, ~np.any(labels > 0, axis=1)]
        groups = [np.flatnonzero(column) for column in columns]
    return [group for group in groups if len(group)]


def check_labels(examples):
    """Raises `InputError` if no two examples have different labels."""
    if len(np.unique(np.asarray(examples.labels["logits"]), axis=0)) < 2:
        raise InputError.naming(
            "{contrastive} compares texts with different labels. All {:,} training examples have "
            "the same.",
            len(examples.examples),
        )


def fit_head(task, vectors, labels):
    """Sets the `Dense` of a `Classifier` to scikit-learn's `LogisticRegression` on vectors.

    Args:
        task: the `Classifier`.
        vectors: float32 (N, U).
        labels: (N,), as numbers, or (N, C) of 0 and 1.
    """
    count = len(task.labels)
    scale = 1 / max(1e-12, float(np.mean(np.linalg.norm(vectors, axis=1))))
    kernel, bias = regression(scale * np.asarray(vectors, np.float64), np.asarray(labels), count)
    task.classifier.kernel.assign((scale * kernel).astype(np.float32))
    if task.classifier.use_bias:
        task.classifier.bias.assign(bias.astype(np.float32))


def regression(vectors, labels, count):
    """-> (kernel (U, C), bias (C,)) of logits for C labels, by scikit-learn's regression.

    The logits of a softmax, or with labels (N, C) of a sigmoid for each label, which is a
    regression of its own. A label that no example has is not predicted.
    """
    kernel, bias = np.zeros((vectors.shape[1], count)), np.full(count, _NEVER)
    if labels.ndim == 2:
        for label in range(count):
            has_label = labels[:, label] > 0
            if has_label.all():
                bias[label] = -_NEVER
            elif has_label.any():
                fitted = _fitted(vectors, has_label)
                kernel[:, label], bias[label] = fitted.coef_[0], fitted.intercept_[0]
        return kernel, bias
    fitted = _fitted(vectors, labels)
    present = fitted.classes_.astype(int)
    if len(present) == 2:  # one row, of the difference of the logits
        kernel[:, present] = fitted.coef_.T * [-0.5, 0.5]
        bias[present] = fitted.intercept_ * [-0.5, 0.5]
    else:
        kernel[:, present], bias[present] = fitted.coef_.T, fitted.intercept_
    return kernel, bias


def _fitted(vectors, labels):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000).fit(vectors, labels)
