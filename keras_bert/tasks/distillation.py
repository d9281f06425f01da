"""Losses of a student that learns a teacher's answers (Hinton et al. 2015).

What a student learns for a label, a score or a vector is a row of float32 numbers: whether an own
label is known (1 or 0), that label as the task has it, and the teacher's answer. A loss takes rows
of labels alone, too, as in an evaluation: then it is the task's own.
"""

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed

LABELS, DECISIONS, SCORES, VECTORS = KINDS = ("labels", "decisions", "scores", "vectors")
# How a message calls what a task type answers with.
_TEACHABLE = "classifier, pair-classifier, tagger, regression, text-embedding"


def check_teachable(task, *, which):
    """Raises InputError for a task whose answers cannot be learned; `which` names it."""
    if task.TEACHES is None:
        raise InputError(
            f"The {which} is of the task {task.TASK_TYPE}, whose answers cannot be learned yet. "
            f"Expected one of {_TEACHABLE}."
        )
    if getattr(task, "crf", None) is not None:
        raise InputError.naming(
            "The {} has a CRF, which gives probabilities for whole sequences only. Train it "
            "without {crf} to distill it.",
            which,
        )


def kind_of(task):
    """Returns what a task answers with, one of KINDS."""
    if task.TEACHES != "logits":
        return SCORES if task.TEACHES == "score" else VECTORS
    return DECISIONS if getattr(task.settings, "multi_label", False) else LABELS


def taught_rows(kind, labels, known, answers):
    """The rows that a `TaughtLoss` takes: float32 (N, 1 + L + A).

    Args:
        kind: one of KINDS.
        labels: (N,) or (N, L), as the task has them; None of VECTORS, where L is 0.
        known: bool (N,), which labels are not the teacher's own answers.
        answers: float32 (N, A), the teacher's.
    """
    known = np.asarray(known, np.float32)[:, None]
    if kind == VECTORS:
        return np.concatenate([known, answers], axis=1)
    labels = np.asarray(labels, np.float32).reshape(len(known), -1)
    return np.concatenate([known, labels, answers], axis=1)


@keras.saving.register_keras_serializable(package="keras_bert")
class TaughtLoss(keras.losses.Loss):
    """(1 - w) · the distance to the teacher's answer + w · the task's own loss, w 0 without label.

    The distance is, by the kind of answers:

    * labels: T² KL(softmax(t / T) ‖ softmax(s / T)) of the logits t and s, in nats,
    * decisions: T² times the mean of KL over the labels' sigmoids,
    * scores: (s - t)²,
    * vectors: Σ (s - t)², the squared Euclidean distance. There is no loss of the task's own.

    Shapes: predictions (B, …, A), rows of `taught_rows` (B, …, 1 + L + A) or labels alone. Of
    vectors the predictions are (B, 1, A).

    Args:
        kind: one of KINDS.
        size: A.
        temperature: T.
        label_weight: w.
        reduction: that of the task's own loss.
    """

    def __init__(
        self,
        kind,
        *,
        size,
        temperature,
        label_weight,
        reduction="sum_over_batch_size",
        name="distillation",
    ):
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.kind, self.size = kind, size
        self.temperature, self.label_weight = temperature, label_weight

    def call(self, y_true, y_pred):
        label_columns = {LABELS: 1, DECISIONS: self.size, SCORES: 1, VECTORS: 0}[self.kind]
        shape = y_true.shape
        if self.kind == VECTORS:
            return ops.sum(ops.square(y_pred[:, 0] - y_true[:, 1:]), axis=-1)
        rank = len(y_pred.shape)
        if len(shape) != rank or shape[-1] != 1 + label_columns + self.size:
            is_column = self.kind == LABELS and len(shape) == rank  # (B, 1) in place of (B,)
            return self._own(y_true[..., 0] if is_column else y_true, y_pred)
        known, labels = y_true[..., 0], y_true[..., 1 : 1 + label_columns]
        answers = y_true[..., 1 + label_columns :]
        own = self._own(labels[..., 0] if self.kind == LABELS else labels, y_pred)
        weight = self.label_weight * known
        return (1 - weight) * self._distance(answers, y_pred) + weight * own

    def _own(self, labels, predictions):
        """The task's own loss of each row."""
        if self.kind == LABELS:
            labels = ops.cast(labels, "int32")
            return ops.sparse_categorical_crossentropy(labels, predictions, from_logits=True)
        if self.kind == DECISIONS:
            losses = ops.binary_crossentropy(labels, predictions, from_logits=True)
            return ops.mean(losses, axis=-1)
        return ops.mean(ops.square(predictions - labels), axis=-1)

    def _distance(self, answers, predictions):
        if self.kind == SCORES:
            return ops.mean(ops.square(predictions - answers), axis=-1)
        scale = self.temperature**2
        answers, predictions = answers / self.temperature, predictions / self.temperature
        if self.kind == LABELS:
            teacher_log, student_log = ops.log_softmax(answers), ops.log_softmax(predictions)
            return scale * ops.sum(ops.exp(teacher_log) * (teacher_log - student_log), axis=-1)
        yes = ops.sigmoid(answers)
        entropy = ops.binary_crossentropy(yes, answers, from_logits=True)
        losses = ops.binary_crossentropy(yes, predictions, from_logits=True) - entropy
        return scale * ops.mean(losses, axis=-1)

    def get_config(self):
        names = ("kind", "size", "temperature", "label_weight", "reduction", "name")
        return {name: getattr(self, name) for name in names}


def check_known_labels(teacher, examples):
    """Raises InputError for labels of labelled examples that a teacher does not have."""
    if not (teacher.MIN_LABELS and examples):
        return
    labels = teacher.labels
    own = {label for example in examples for label in teacher.labels_of(example)}
    if others := sorted(map(str, own - {*labels})):
        raise InputError(
            f"{examples[0].source.name} has the labels {listed(others, quote=chr(34))}, which the "
            f"teacher does not have ({listed(labels, quote=chr(34))}). Leave these rows out, or "
            "take a teacher of these labels."
        )
