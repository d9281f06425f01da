"""Examples as rows of ids in memory, and the batches that are made of them."""

import hashlib

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.batches import SequenceBatches
from keras_bert.inputs.framing import frame
from keras_bert.records.padding import padded_length

# Texts that are tokenized at once: the graph's cost a call is spread over them.
_TOKENIZED_TOGETHER = 1000
# Rows are padded to a multiple of this many tokens, so that a compiler meets few shapes.
PAD_TO = 8


class TokenizedExamples(SequenceBatches):
    """Rows of one or two tokenized segments (4 bytes a token), one or several an example.

    Texts are tokenized once, not once an epoch, and a batch is then a gather by row numbers.
    Legend of shapes: N rows, B rows of a batch, S its width.

    Args:
        examples: a sequence of what was labelled.
        segments: a list of ragged int32 (N, None), ids without special tokens.
        labels: what training compares each output with, by the output's name: (N, …), or ragged
            (N, None), a value a token of the row; empty where nothing is known.
        weights: what a label counts in losses and metrics, by the output's name and shaped like its
            labels; an output without weights counts 1 everywhere.
        columns: what the head reads beside the encoder's inputs (`Task.head_inputs`), by name:
            (N, …), or ragged (N, None), a value a token of the row.
        example_of_sequence: int (N,), the place in `examples` of each row's; None where a row is an
            example.
        tokenizer: the `Tokenizer` of the ids.
        input_names: the inputs that the encoder takes (see `Encoder.input_names`).
        max_length: tokens that a row is cut to, special tokens counted in.

    What is ragged is padded with 0 to the width of a batch. Attributes: `examples`, `segments`,
    `labels`, `weights`, `columns`, `example_of_sequence`, and `lengths`, int (N,), each sequence's
    tokens with its special ones. `unfit` is how many examples do not fit into a row, and why: they
    weigh 0 in training, and their answers are wrong.
    """

    unfit = 0, ""

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
        special = tokenizer.template.num_special(len(segments))
        least = special + len(segments)
        if max_length < least:
            raise InputError(
                f"`max_length` is {max_length}, which leaves no room for {len(segments)} texts "
                f"between the special tokens; give {least} or more."
            )
        super().__init__(np.minimum(self.sequence_tokens() + special, max_length))
        self.example_of_sequence = (
            np.arange(len(self)) if example_of_sequence is None else example_of_sequence
        )

    @classmethod
    def of_texts(cls, examples, texts, *, labels, tokenizer, max_length, **options):
        """Tokenizes a list of one or two lists of texts, each a text an example."""
        return cls(
            examples,
            [tokenized(column, tokenizer, max_length) for column in texts],
            labels=labels,
            tokenizer=tokenizer,
            max_length=max_length,
            **options,
        )

    def sequence_tokens(self):
        """int (N,): the tokens of each row, without special ones, before it is cut."""
        return sum(segment.row_lengths().numpy() for segment in self.segments)

    @property
    def fingerprint(self):
        """A hash of the ids and the labels: what a run resumes on must be the same."""
        digest = hashlib.sha256()
        values = (*self.segments, *self.labels.values(), *self.weights.values())
        for value in (*values, *self.columns.values()):
            for array in (
                (value.flat_values, *value.nested_row_splits) if _ragged(value) else (value,)
            ):
                digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()

    @property
    def encoder_sequences(self):
        """int (N,): how many rows of the encoder each row takes (a choice each, say)."""
        return np.ones(len(self), np.int64)

    @property
    def unknown(self):
        """How many of the tokens are [UNK], and how many there are."""
        ids = np.concatenate([segment.flat_values for segment in self.segments])
        return int(np.sum(ids == self._tokenizer.vocabulary.unk_id)), len(ids)

    @property
    def weight_totals(self):
        return {
            name: float(np.sum(value.flat_values if _ragged(value) else value, dtype=np.float64))
            for name, value in self.weights.items()
        }

    def take(self, rows):
        """What `inputs` makes the inputs of some rows of, given by their numbers: a list."""
        return [tf.gather(value, rows) for value in (*self.segments, *self.columns.values())]

    def inputs(self, *taken):
        """The task's inputs by name, (B, S) or as the columns are; in a graph, too.

        Of these rows it uses nothing but the tokenizer, the greatest length and the names of the
        columns, which other rows of the task have in common with them.
        """
        segments, columns = taken[: len(self.segments)], taken[len(self.segments) :]
        inputs = frame(
            segments,
            tokenizer=self._tokenizer,
            names=self._input_names,
            max_length=self._max_length,
            multiple_of=PAD_TO,
        )
        width = tf.shape(inputs["input_ids"])[1]
        for name, column in zip(self.columns, columns, strict=True):
            inputs[name] = _padded(column, width)
        return inputs

    def targets(self, rows):
        """What the outputs of some rows are compared with: (labels,) or (labels, weights)."""
        lengths = tf.gather(tf.constant(self.lengths, tf.int32), rows)
        width = padded_length(lengths, self._max_length, PAD_TO)
        targets = [
            {name: _padded(tf.gather(values, rows), width) for name, values in some.items()}
            for some in (self.labels, self.weights)
        ]
        return tuple(targets) if self.weights else (targets[0],)

    def batch(self, rows):
        return self.inputs(*self.take(rows)), *self.targets(rows)


def _ragged(value):
    return isinstance(value, tf.RaggedTensor)


def _padded(values, width):
    """Ragged (B, None) -> (B, S); what is dense stays as it is."""
    if not _ragged(values):
        return values
    shape = tf.stack([values.nrows(out_type=tf.int32), width])
    return tf.ensure_shape(values.to_tensor(shape=shape), [None, None])


def tokenized(texts, tokenizer, max_length):
    """Texts -> ragged int32 (N, None), of each the first `max_length` ids."""
    starts = range(0, len(texts), _TOKENIZED_TOGETHER) or [0]
    chunks = [
        tokenizer.tokenize(texts[start : start + _TOKENIZED_TOGETHER])[:, :max_length]
        for start in starts
    ]
    return tf.concat(chunks, axis=0)
