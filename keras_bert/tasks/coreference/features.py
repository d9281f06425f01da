"""Documents as sequences of tokens, words and the grid of their spans."""

import tensorflow as tf

from keras_bert.inputs.framing import frame
from keras_bert.inputs.tokenized_examples import PAD_TO, TokenizedExamples
from keras_bert.inputs.words import word_sequences
from keras_bert.tasks.multiple_choice.features import grouped_by_example
from keras_bert.tasks.span_classification.features import (
    grid,
    spans_in_words,
    words_in_texts,
    words_width,
)

COLUMNS = ("word_starts", "word_ends", "word_segments")


class CoreferenceSequences(TokenizedExamples):
    """Documents, each with all of its sequences, which overlap, and with all of its words.

    A batch of B documents has inputs (B, n, S), n the most sequences among them, and the columns of
    `document_sequences` (B, W). The labels of `antecedents` are a grid (B, W, L): from each word
    the spans of 1 to L words, each 0 or the number of its cluster from 1.

    Args:
        examples: `SpannedWords`, whose labels are clusters.
        tokenizer: a `Tokenizer`.
        max_length: maximum sequence length, including special tokens.
        max_span_length: L.
        labelled: whether there are labels.

    Attributes: `words` (for each document the (starts, ends) of its words in the text) and `spans`
    (for each its mentions in words, or None).

    Raises:
        InputError: a mention begins or ends inside a word.
    """

    shapes_follow_from_length = False

    def __init__(
        self, examples, *, tokenizer, input_names, max_length, max_span_length, labelled=False
    ):
        tokenized, self.words = words_in_texts(examples, tokenizer)
        self.spans = spans_in_words(examples, self.words)
        self._max_span_length = max_span_length
        ids, columns = document_sequences(
            tokenized, template=tokenizer.template, max_length=max_length
        )
        super().__init__(
            examples,
            [ids],
            labels={"antecedents": self._cells()} if labelled else {},
            columns=columns,
            tokenizer=tokenizer,
            input_names=input_names,
            max_length=max_length,
        )

    def _cells(self):
        """Ragged int32 (N, None, 3): (first word, width - 1, cluster) of the mentions."""
        cells = [
            [
                (span.start, span.end - span.start - 1, 1 + int(span.label))
                for span in spans
                if span.end - span.start <= self._max_span_length
            ]
            for spans in self.spans
        ]
        flat = tf.constant([cell for row in cells for cell in row], tf.int32, name="cells")
        return tf.RaggedTensor.from_row_lengths(tf.reshape(flat, [-1, 3]), list(map(len, cells)))

    def sequence_tokens(self):
        """int (N,): the tokens of each document's longest sequence."""
        return tf.reduce_max(self.segments[0].row_lengths(axis=2), axis=1).numpy()

    @property
    def encoder_sequences(self):
        return self.segments[0].row_lengths().numpy()

    def inputs(self, ids, *columns):
        return document_inputs(
            ids,
            dict(zip(COLUMNS, columns, strict=True)),
            tokenizer=self._tokenizer,
            names=self._input_names,
            max_length=self._max_length,
        )

    def targets(self, numbers):
        words = tf.gather(self.columns["word_starts"], numbers)
        cells = tf.gather(self.labels["antecedents"], numbers)
        width = words_width(words.row_lengths())
        return ({"antecedents": grid(cells, width, self._max_span_length)},)


def document_sequences(tokenized, *, template, max_length):
    """The sequences of documents, and where their words are. Also in a graph.

    A word is read in the sequence that owns it, where it has much context on both sides.

    Args:
        tokenized: `TokenizedWords` of N documents.
        template: the `Template` of the sequences.
        max_length: maximum sequence length, including special tokens.

    Returns:
        Ragged int32 (N, n, None), the ids without special tokens; and by name `word_starts`,
        `word_ends` and `word_segments`, ragged int32 (N, None): the tokens of each word, its end
        exclusive, and the number of its sequence in the document.
    """
    parts = word_sequences(tokenized, template=template, max_length=max_length)
    documents = tf.cast(tokenized.ids.nrows(), tf.int32)
    counts = tf.math.bincount(parts.text, minlength=documents, dtype=tf.int64)
    number = tf.ragged.range(counts).flat_values  # (R,)
    word = tf.ragged.range(parts.first, parts.end)
    window_of_word = word.value_rowids()
    owned = (word.flat_values >= tf.gather(parts.owned, window_of_word)) & (
        word.flat_values < tf.gather(parts.owned_end, window_of_word)
    )
    bounds = (parts.starts.flat_values, parts.ends.flat_values, tf.gather(number, window_of_word))
    columns = {
        name: tokenized.firsts.with_values(tf.cast(tf.boolean_mask(column, owned), tf.int32))
        for name, column in zip(COLUMNS, bounds, strict=True)
    }
    return tf.RaggedTensor.from_row_lengths(parts.ids, counts), columns


def document_inputs(ids, columns, *, tokenizer, names, max_length):
    """The result of `document_sequences` -> the task's inputs by name. Also in a graph."""
    framed = frame(
        [ids.values], tokenizer=tokenizer, names=names, max_length=max_length, multiple_of=PAD_TO
    )
    inputs = grouped_by_example(framed, ids.row_lengths())
    width = words_width(columns["word_starts"].row_lengths())
    shape = tf.stack([tf.cast(ids.nrows(), tf.int32), width])
    padded = {name: x.to_tensor(shape=shape) for name, x in columns.items()}
    return inputs | {name: tf.ensure_shape(x, [None, None]) for name, x in padded.items()}


def coreference_sequences(task, examples, *, max_length, labelled):
    """The `CoreferenceSequences` of a `CoreferenceResolver`."""
    return CoreferenceSequences(
        examples,
        **task.framing(max_length),
        max_span_length=task.settings.max_span_length,
        labelled=labelled,
    )
