"""Tokenized examples in memory, and the batches that are made of them."""

import copy
import hashlib

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.batches import SequenceBatches, bucket_lengths, planned_batches
from keras_bert.inputs.framing import frame, windows
from keras_bert.records.padding import padded_length

# Texts per call of the tokenizer's graph, which share the cost of the call.
_TEXTS_PER_CALL = 1000
# Sequences are padded to a multiple of this many tokens, so that a compiler meets few shapes.
PAD_TO = 8
# The most lengths of batches that are compiled again for each.
FEW_LENGTHS = 4

# What attributes with a part for each example are.
_EXAMPLE_COLUMNS = (list, tuple, dict, np.ndarray, tf.Tensor, tf.RaggedTensor)


class TokenizedExamples(SequenceBatches):
    """Sequences of one or two tokenized segments (4 bytes per token), one or several per example.

    Texts are tokenized once, not once per epoch; a batch is a gather by sequence numbers. Legend of
    shapes: N sequences, B sequences of a batch, S their padded length.

    Args:
        examples: a list of labelled examples.
        segments: a list of ragged int32 (N, None), ids without special tokens.
        labels: the labels of training by the output's name: (N, …), or ragged (N, None), one per
            token of the sequence; empty if they are unknown.
        weights: the weights of labels in losses and metrics, by the output's name and shaped like
            its labels; outputs without weights count 1 everywhere.
        columns: the head's inputs (`Task.HEAD_INPUTS`) by name: (N, …), or ragged (N, None), one
            per token of the sequence.
        example_of_sequence: int (N,), the number of each sequence's example; None if each sequence
            is one example.
        tokenizer: the `Tokenizer` of the ids.
        input_names: the inputs of the encoder (see `Encoder.input_names`).
        max_length: maximum tokens per sequence, including special tokens.

    Ragged values are padded with 0 to the length of a batch. Attributes: `examples`, `segments`,
    `labels`, `weights`, `columns`, `example_of_sequence`, and `lengths`, int (N,), each sequence's
    tokens including special ones. `cut` is the number of sequences that do not fit into
    `max_length` whole. `unfit` is (number, reason) of the examples that do not fit into
    a sequence: they have weight 0 in training, and their predictions are wrong.
    """

    unfit = 0, ""
    # Whether batches of as many sequences and of the same length have the same shapes.
    shapes_follow_from_length = True

    def __init__(
        self,
        examples,
        segments,
        *,
        labels,
        tokenizer,
        input_names,
        max_length,
        weights=None,
        columns=None,
        example_of_sequence=None,
    ):
        self.examples = examples
        self.segments = segments
        self.labels = labels
        self.weights = weights or {}
        self.columns = columns or {}
        self._tokenizer = tokenizer
        self._input_names = input_names
        self._max_length = max_length
        self._pad_to = PAD_TO
        special = tokenizer.template.num_special(len(segments))
        least = special + len(segments)
        if max_length < least:
            raise InputError.naming(
                "{max_length} must be at least {} to leave room for {} texts. Received: {}.",
                least,
                len(segments),
                max_length,
            )
        lengths = self.sequence_tokens() + special
        self.cut = int(np.sum(lengths > max_length))
        super().__init__(np.minimum(lengths, max_length))
        self.example_of_sequence = (
            np.arange(len(self)) if example_of_sequence is None else example_of_sequence
        )

    @classmethod
    def from_texts(cls, examples, texts, *, labels, tokenizer, max_length, **options):
        """Tokenizes one or two lists of texts, with one text per example each."""
        return cls(
            examples,
            [tokenized(column, tokenizer, max_length) for column in texts],
            labels=labels,
            tokenizer=tokenizer,
            max_length=max_length,
            **options,
        )

    def sequence_tokens(self):
        """int (N,): the tokens of each sequence before truncation, without special ones."""
        return sum(segment.row_lengths().numpy() for segment in self.segments)

    @property
    def framing_key(self):
        """The values that `inputs` depends on besides its arguments; hashable."""
        numbers = self._max_length, self._pad_to, len(self.segments)
        return type(self), id(self._tokenizer), *numbers, *self._input_names, *self.columns

    @property
    def fingerprint(self):
        """A hash of the ids, labels and weights; a run resumes only on the same ones."""
        digest = hashlib.sha256()
        tables = (self.labels, self.weights, self.columns)
        for value in (*self.segments, *(value for table in tables for value in table.values())):
            parts = (value.flat_values, *value.nested_row_splits) if _ragged(value) else (value,)
            for array in parts:
                digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()

    @property
    def encoder_sequences(self):
        """int (N,): the encoder's sequences per sequence here, such as one per choice."""
        return np.ones(len(self), np.int64)

    @property
    def unknown(self):
        """The number of [UNK] tokens, and of all tokens."""
        ids = np.concatenate([segment.flat_values for segment in self.segments])
        return int(np.sum(ids == self._tokenizer.vocabulary.unk_id)), len(ids)

    @property
    def has_labels(self):
        return bool(self.labels)

    @property
    def weight_totals(self):
        return {
            name: float(np.sum(value.flat_values if _ragged(value) else value, dtype=np.float64))
            for name, value in self.weights.items()
        }

    def take(self, numbers):
        """The arguments of `inputs` for the sequences with these numbers: a list."""
        return [tf.gather(value, numbers) for value in (*self.segments, *self.columns.values())]

    def inputs(self, *taken):
        """The task's inputs by name, (B, S) or as the columns are; also in a graph.

        Depends only on the tokenizer, the maximum length and the columns' names, which all
        sequences of a task share.
        """
        segments, columns = taken[: len(self.segments)], taken[len(self.segments) :]
        inputs = frame(
            segments,
            tokenizer=self._tokenizer,
            names=self._input_names,
            max_length=self._max_length,
            multiple_of=self._pad_to,
        )
        length = tf.shape(inputs["input_ids"])[1]
        for name, column in zip(self.columns, columns, strict=True):
            inputs[name] = _padded(column, length)
        return inputs

    def without_examples(self):
        """A copy for `inputs` alone, without the examples, their tokens and their labels."""
        framing_only = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, _EXAMPLE_COLUMNS) and name != "_input_names":
                setattr(framing_only, name, None)
        framing_only.segments, framing_only.columns = (
            [None] * len(self.segments),
            dict.fromkeys(self.columns),
        )
        return framing_only

    def targets(self, numbers):
        """(labels,) or (labels, weights) of the sequences with these numbers."""
        lengths = tf.gather(tf.constant(self.lengths, tf.int32), numbers)
        length = padded_length(lengths, self._max_length, self._pad_to)
        targets = [
            {name: _padded(tf.gather(column, numbers), length) for name, column in table.items()}
            for table in (self.labels, self.weights)
        ]
        return tuple(targets) if self.weights else (targets[0],)

    def batch(self, numbers):
        targets = self.targets(numbers) if self.labels else ()
        return self.inputs(*self.take(numbers)), *targets

    def in_order(self, *, batch_size, pad_to_longest=False):
        """The dataset of every sequence once, in order; `pad_to_longest` gives all one length."""
        sequences = copy.copy(self)
        if pad_to_longest and len(self):
            sequences._pad_to = PAD_TO * -(-int(self.lengths.max()) // PAD_TO)
        numbers = np.arange(len(self), dtype=np.int32)
        plan = [numbers[start : start + batch_size] for start in range(0, len(self), batch_size)]
        return planned_batches(plan, sequences.batch)

    def in_few_lengths(self, count=FEW_LENGTHS):
        """The same sequences, padded to `count` different lengths at the most."""
        sequences = copy.copy(self)
        sequences._pad_to = PAD_TO * max(1, -(-int(self.lengths.max()) // (PAD_TO * count)))
        return sequences

    def in_fixed_lengths(self):
        """The same sequences, padded to one of some lengths that `max_length` alone determines."""
        sequences = copy.copy(self)
        sequences._pad_to = bucket_lengths(self._max_length)[0]
        return sequences

    @property
    def padded_lengths(self):
        """int (N,): the length of a batch in which a sequence is the longest."""
        multiple = self._pad_to * -(-self.lengths // self._pad_to)
        return np.minimum(multiple, self._max_length)

    def weight_by(self, *, example_factors=None, class_factors=None):
        """Multiplies the weights of the labels; missing weights are 1.

        Args:
            example_factors: float32 (E,), the factor of each example, or None.
            class_factors: float32 (C,), the factor of each class, whose numbers all labels are.
        """
        if example_factors is None and class_factors is None:
            return
        for name, labels in self.labels.items():
            flat = labels.flat_values.numpy() if _ragged(labels) else np.asarray(labels)
            weights = self.weights.get(name)
            if weights is None:
                weights = np.ones(len(flat), np.float32)
            elif _ragged(weights):
                weights = weights.flat_values.numpy()
            if class_factors is not None:
                weights = weights * class_factors[flat]
            if example_factors is not None:
                sequence = (
                    labels.value_rowids().numpy() if _ragged(labels) else np.arange(len(flat))
                )
                factors = example_factors[self.example_of_sequence][sequence]
                weights = weights * factors.reshape(-1, *[1] * (weights.ndim - 1))
            weights = np.asarray(weights, np.float32)
            self.weights[name] = labels.with_values(weights) if _ragged(labels) else weights


class PairsInBothOrders(TokenizedExamples):
    """Pairs of texts, each as two sequences, a before b and b before a: inputs (B, 2, S)."""

    @property
    def encoder_sequences(self):
        return np.full(len(self), 2)

    def inputs(self, first, second):
        return in_both_orders(super().inputs, first, second)


def in_both_orders(framed, first, second):
    """The inputs by name, each (B, 2, S), of two ragged segments in both orders.

    `framed` is a function of two segments to inputs (B, S). Both orders have the same lengths.
    """
    both = framed(first, second), framed(second, first)
    return {name: tf.stack([one[name] for one in both], axis=1) for name in both[0]}


def _ragged(value):
    return isinstance(value, tf.RaggedTensor)


def _padded(column, length):
    """Ragged (B, None) -> (B, S); a dense column is returned as it is."""
    if not _ragged(column):
        return column
    shape = tf.stack([column.nrows(out_type=tf.int32), length])
    return tf.ensure_shape(column.to_tensor(shape=shape), [None, None])


def tokenized(texts, tokenizer, max_length):
    """The first `max_length` ids of each text, or all for None: ragged int32 (N, None)."""
    starts = range(0, len(texts), _TEXTS_PER_CALL) or [0]
    chunks = [
        tokenizer.tokenize(texts[start : start + _TEXTS_PER_CALL])[:, :max_length]
        for start in starts
    ]
    return tf.concat(chunks, axis=0)


def text_sequences(task, examples, *, max_length, labelled):
    """The sequences of a `TextTask`: one per example, or two if it reads pairs in both orders."""
    cls = PairsInBothOrders if task.both_orders else TokenizedExamples
    labels, weights = task.targets(examples) if labelled else ({}, {})
    if task.reads_windows:
        return _windows_of_texts(task, examples, labels, weights, max_length=max_length)
    columns = range(len(task.text_names))
    return cls.from_texts(
        examples,
        [[example.texts[column] for example in examples] for column in columns],
        labels=labels,
        weights=weights,
        **task.framing(max_length),
    )


def _windows_of_texts(task, examples, labels, weights, *, max_length):
    """The `TokenizedExamples` of texts of any length, one per window: as `in_windows` has them.

    The windows of a text have its label, and equal parts of its weight. All weights are multiplied
    by the windows of a text on average, so that a mean over the windows is one over the texts.
    """
    ids = tokenized([example.text for example in examples], task.tokenizer, None)
    room = task.tokenizer.template.room(max_length)
    parts = windows(ids.row_lengths(), room, stride=max(1, room // 2))
    text_of = parts.sequence.numpy()
    fractions = len(text_of) / len(examples) / np.bincount(text_of)[text_of]  # (R,)
    window_weights = {}
    for name in labels:
        weight = weights.get(name, np.ones(len(examples)))[text_of]
        fraction = fractions.reshape(-1, *[1] * (weight.ndim - 1))
        window_weights[name] = (weight * fraction).astype(np.float32)
    return TokenizedExamples(
        examples,
        [parts.rows(ids)],
        labels={name: column[text_of] for name, column in labels.items()},
        weights=window_weights,
        example_of_sequence=text_of,
        **task.framing(max_length),
    )
