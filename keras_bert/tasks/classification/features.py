"""Sequences of a query with each of its passages, for a `Regressor`."""

import functools

import numpy as np
import tensorflow as tf

from keras_bert.inputs.tokenized_examples import TokenizedExamples, text_sequences, tokenized
from keras_bert.readers.passage_lists import PassageList
from keras_bert.tasks.classification import MARGIN_MSE
from keras_bert.tasks.multiple_choice.features import ChoiceSequences


class ScoredLists(ChoiceSequences):
    """The sequences of lists of passages, of which batches are whole; see `ChoiceSequences`.

    Args:
        task: the `Regressor`.
        examples, segments, options: see `TokenizedExamples`.
    """

    def __init__(self, task, examples, segments, **options):
        super().__init__(examples, segments, **options)
        self._reject = functools.partial(task.labels_of_list, examples[0])

    def check_trainable(self):
        if not self.labels:
            self._reject()


def scored_sequences(task, examples, *, max_length, labelled):
    """The sequences of a `Regressor`: one per pair, or for lists one per passage.

    A task that trains on lists has them as one example with several sequences, (B, n, S), and any
    other as examples of their own, (R, S). An example of pairs is then a list of one passage.
    """
    are_lists = isinstance(examples[0], PassageList)
    if not (are_lists or task.lists):
        return text_sequences(task, examples, max_length=max_length, labelled=labelled)
    queries = [example.texts[0] for example in examples]
    passages = [passage for example in examples for passage in example.texts[1:]]
    counts = [len(example.texts) - 1 for example in examples]
    framing = task.framing(max_length)
    if not task.lists:
        list_of_passage = np.repeat(np.arange(len(examples)), counts)
        labels = task.targets(examples)[0] if labelled else {}
        return TokenizedExamples.from_texts(
            examples,
            [[queries[number] for number in list_of_passage], passages],
            labels=labels,
            example_of_sequence=list_of_passage,
            **framing,
        )
    texts = [tokenized(column, task.tokenizer, max_length) for column in (queries, passages)]
    segments = [texts[0], tf.RaggedTensor.from_row_lengths(texts[1], counts)]
    # Dev examples may have no scores of a teacher.
    is_scored = are_lists and examples[0].teacher is not None
    has_labels = labelled and (is_scored if task.settings.loss == MARGIN_MSE else are_lists)
    labels = {"score": _labels(task, examples, counts)} if has_labels else {}
    return ScoredLists(task, examples, segments, labels=labels, **framing)


def _labels(task, examples, counts):
    """float32 (N, n, 2): of each passage its label, and whether the list has it."""
    labels = np.zeros((len(examples), max(counts), 2), np.float32)
    for row, example, count in zip(labels, examples, counts, strict=True):
        row[:count, 0] = task.labels_of_list(example)
        row[:count, 1] = 1
    return labels
