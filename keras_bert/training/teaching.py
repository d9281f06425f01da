"""A teacher's answers: computed once for all epochs and runs, and the batches that have them."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert.base.progress import ProgressBar
from keras_bert.inputs.batches import SequenceBatches, kept_by_dataset
from keras_bert.tasks.distillation import (
    DECISIONS,
    LABELS,
    SCORES,
    VECTORS,
    TaughtLoss,
    taught_rows,
)
from keras_bert.tasks.outputs import Outputs
from keras_bert.training.frozen import mapped_array

_EXAMPLES_TOGETHER = 2048


@dataclasses.dataclass(frozen=True, kw_only=True)
class Teaching:
    """The lessons of the examples of some runs: what they learn of a teacher.

    Attributes:
        kind: one of `keras_bert.tasks.distillation.KINDS`.
        answers: float32 (N, A), in a file that is mapped into memory: the logits, scores or vectors
            of N examples, or of all words of the examples one after another.
        known: bool, as many as answers, whether each has a label of its own; the label of the
            others is the teacher's.
        output: the name of the student's output that learns them.
        temperature, label_weight: those of the `TaughtLoss`.
    """

    kind: str
    answers: Any
    known: np.ndarray
    output: str
    temperature: float
    label_weight: float

    def losses(self, task):
        """The losses of a student by output, as `Task.default_losses` gives them."""
        own = task.default_losses()[self.output]
        by_weight = getattr(own, "reduction", None) == "mean_with_sample_weight"
        loss = TaughtLoss(
            self.kind,
            size=self.answers.shape[1],
            temperature=self.temperature,
            label_weight=self.label_weight,
            **({"reduction": own.reduction} if by_weight else {}),
        )
        return {**task.default_losses(), self.output: loss}

    def examples(self, task, examples):
        """The `TaughtExamples` of a student's `TokenizedExamples`."""
        if self.kind == VECTORS:  # of each text once, whatever a loss without a teacher needs
            examples = task.features(examples.examples, labelled=False)
        return TaughtExamples(examples, self)


class TaughtExamples(SequenceBatches):
    """`TokenizedExamples` whose labels are rows of `taught_rows`; all else is theirs."""

    shapes_follow_from_length = False
    has_labels = True

    def __init__(self, examples, teaching):
        super().__init__(examples.lengths)
        self.tokenized, self._teaching = examples, teaching

    def __getattr__(self, name):
        if name == "tokenized":  # not set yet
            raise AttributeError(name)
        return getattr(self.tokenized, name)

    @property
    def weight_totals(self):
        return self.tokenized.weight_totals

    def targets(self, numbers):
        """(rows,) or (rows, weights) of the sequences with these numbers."""
        output = self._teaching.output
        targets, *weights = self.tokenized.targets(numbers) if self.tokenized.labels else ({},)
        labels = targets.get(output)
        words = getattr(self.tokenized, "word_of_token", None)
        if words is None:
            numbers = tf.gather(tf.constant(self.tokenized.example_of_sequence, tf.int64), numbers)
        else:  # (B, S), -1 at tokens of no word
            shape = tf.stack([tf.shape(numbers)[0], tf.shape(labels)[1]])
            numbers = tf.gather(words, numbers).to_tensor(0, shape=shape) - 1
        given = [numbers] if labels is None else [numbers, labels]
        rows = tf.numpy_function(kept_by_dataset(self._rows), given, tf.float32)
        rank = 3 if words is not None else 2
        rows = tf.ensure_shape(rows, [None] * (rank - 1) + [self._width])
        return ({**targets, output: rows}, *weights)

    @property
    def _width(self):
        size = self._teaching.answers.shape[1]
        label_columns = {LABELS: 1, DECISIONS: size, SCORES: 1, VECTORS: 0}[self._teaching.kind]
        return 1 + label_columns + size

    def _rows(self, numbers, labels=None):
        teaching, flat = self._teaching, numbers.reshape(-1)
        example_rows = np.maximum(flat, 0)
        rows = taught_rows(
            teaching.kind,
            None if labels is None else labels.reshape(len(flat), -1),
            teaching.known[example_rows] & (flat >= 0),
            teaching.answers[example_rows],
        )
        return rows.reshape(*numbers.shape, -1).astype(np.float32)

    def batch(self, numbers):
        return self.tokenized.inputs(*self.tokenized.take(numbers)), *self.targets(numbers)


def answers_of(teacher, examples, *, batch_size, folder=None):
    """The answers of a teacher: float32 (N, A), in a file that is mapped into memory.

    Args:
        teacher: a task for which `check_teachable` raises nothing.
        examples: a list of examples.
        batch_size: sequences per step.
        folder: where the unnamed file is made; None is the system's folder for temporary files.

    Returns (logits, scores or vectors of N examples, of a tagger those of all words; the
    predictions, a list).
    """
    are_words = teacher.READS_WORDS
    size = teacher.output[teacher.TEACHES].shape[-1]
    outputs, answers, first = Outputs(teacher, batch_size=batch_size), None, 0
    parts, predictions = [], []
    with ProgressBar(
        "the teacher's answers", unit="examples", total=len(examples), line_seconds=10
    ) as bar:
        # Of a teacher that reads an example with its neighbours all at once.
        chunk_size = len(examples) if teacher.context_size() else _EXAMPLES_TOGETHER
        for start in range(0, len(examples), chunk_size):
            chunk = examples[start : start + chunk_size]
            sequences = teacher.features(chunk)
            teacher_outputs = outputs(sequences)
            chunk_answers = teacher.taught_answers(teacher_outputs, sequences)
            predictions += teacher.decode(teacher_outputs, sequences)
            if not are_words:
                if answers is None:
                    answers = mapped_array((len(examples), size), folder)
                answers[first : first + len(chunk_answers)] = chunk_answers
                first += len(chunk_answers)
            else:  # how many words texts have is not known before
                parts.append(chunk_answers)
            bar.update(advance=len(chunk))
    if are_words:
        whole = np.concatenate(parts)
        answers = mapped_array(whole.shape, folder)
        answers[:] = whole
    return answers, predictions
