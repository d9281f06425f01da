"""Examples as rows of ids in memory, and the batches that are made of them."""

import hashlib

import numpy as np
import tensorflow as tf

from keras_bert.input_pipeline.batches import RowBatches
from keras_bert.input_pipeline.framing import frame

# Texts that are tokenized at once: the graph's cost a call is spread over them.
_TOKENIZED_TOGETHER = 1000
# Rows are padded to a multiple of this many tokens, so that a compiler meets few shapes.
PAD_TO = 8


class TokenizedExamples(RowBatches):
    """Rows of one or two tokenized segments (4 bytes a token), a row an example.

    Texts are tokenized once, not once an epoch, and a batch is then a gather by row numbers.

    Args:
        examples: a sequence of what was labelled.
        segments: a list of ragged int32 (N, None), ids without special tokens.
        labels: what training compares each output with: int32 or float32 (N,) by the output's
            name; empty where nothing is known.
        vocabulary: the `Vocabulary` of the ids.
        max_length: tokens that a row is cut to, special tokens counted in.

    Attributes: `examples`, `segments`, `labels`, and `lengths`, int (N,), each row's tokens with
    its special ones.
    """

    def __init__(self, examples, segments, *, labels, vocabulary, max_length):
        self.examples = examples
        self.segments = segments
        self.labels = labels
        self._vocabulary = vocabulary
        self._max_length = max_length
        tokens = sum(segment.row_lengths().numpy() for segment in segments)
        super().__init__(np.minimum(tokens + 1 + len(segments), max_length))

    @classmethod
    def of_texts(cls, examples, texts, *, labels, tokenizer, max_length):
        """Tokenizes a list of one or two lists of texts, each a text an example."""
        return cls(
            examples,
            [_tokenized(column, tokenizer, max_length) for column in texts],
            labels=labels,
            vocabulary=tokenizer.vocabulary,
            max_length=max_length,
        )

    @property
    def fingerprint(self):
        """A hash of the ids and the labels: what a run resumes on must be the same."""
        digest = hashlib.sha256()
        arrays = [part for s in self.segments for part in (s.flat_values, s.row_splits)]
        for array in (*arrays, *self.labels.values()):
            digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()

    @property
    def share_unknown(self):
        """The share of the tokens that are [UNK], from 0 to 1."""
        ids = np.concatenate([segment.flat_values for segment in self.segments])
        return float(np.mean(ids == self._vocabulary.unk_id)) if len(ids) else 0.0

    def take(self, rows):
        """The segments of some rows, given by their numbers."""
        return [tf.gather(segment, rows) for segment in self.segments]

    def inputs(self, *segments):
        """The encoder's inputs, (B, S) each, of the segments of a batch of rows."""
        return frame(
            segments,
            vocabulary=self._vocabulary,
            max_length=self._max_length,
            multiple_of=PAD_TO,
        )

    def labels_of(self, rows):
        """What each output of some rows is compared with."""
        return {name: tf.gather(values, rows) for name, values in self.labels.items()}

    def batch(self, rows):
        return self.inputs(*self.take(rows)), self.labels_of(rows)


def _tokenized(texts, tokenizer, max_length):
    starts = range(0, len(texts), _TOKENIZED_TOGETHER) or [0]
    chunks = [
        tokenizer.tokenize(texts[start : start + _TOKENIZED_TOGETHER])[:, :max_length]
        for start in starts
    ]
    return tf.concat(chunks, axis=0)
