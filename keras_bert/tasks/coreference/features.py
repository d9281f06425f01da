"""Documents as sequences of tokens, words and the grid of their spans, and the signatures."""

import functools

import tensorflow as tf

from keras_bert.inputs.framing import frame
from keras_bert.inputs.tokenized_examples import PAD_TO, TokenizedExamples
from keras_bert.inputs.words import word_sequences, words_of_texts
from keras_bert.tasks.multiple_choice.features import of_examples
from keras_bert.tasks.signatures import (
    outputs_in_chunks,
    standard_signatures,
    traced_on_texts,
    warmup_texts,
)
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
    of_word = word.value_rowids()
    owned = (word.flat_values >= tf.gather(parts.owned, of_word)) & (
        word.flat_values < tf.gather(parts.owned_end, of_word)
    )
    bounds = (parts.starts.flat_values, parts.ends.flat_values, tf.gather(number, of_word))
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
    inputs = of_examples(framed, ids.row_lengths())
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


def coreference_signatures(task, *, max_length):
    """The signatures of a `CoreferenceResolver`; the first is the default one.

    * `serving_default`: `text`, string (B,), of any length; invalid UTF-8 is dropped.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Each returns for the mentions that `predict` finds, in the order of the text, `starts` and
    `ends`, int32 (B, M), in characters; `clusters`, int32 (B, M), the number of each one's cluster
    from 0, in the order of their first mentions; and `lengths`, int32 (B,), their numbers. Padding
    is 0. There is no signature for ids, which do not show where words end.
    """
    tokenizer = task.tokenizer

    @functools.partial(traced_on_texts, names=["text"])
    def from_text(text):
        tokenized, starts, ends = words_of_texts(text, tokenizer)
        ids, columns = document_sequences(
            tokenized, template=tokenizer.template, max_length=max_length
        )
        inputs = document_inputs(
            ids,
            columns,
            tokenizer=tokenizer,
            names=task.encoder.input_names,
            max_length=max_length,
        )
        candidates = outputs_in_chunks(task, inputs)["antecedents"]  # (B, K, 2 + A)
        clusters = cluster_numbers(candidates)  # (B, K)
        is_linked = clusters >= 0
        lengths = tf.reduce_sum(tf.cast(is_linked, tf.int32), axis=1)

        def of_mentions(x):  # (F,)
            return tf.RaggedTensor.from_row_lengths(x, lengths).to_tensor()

        text_of = tf.cast(tf.where(is_linked)[:, :1], tf.int32)  # (F, 1)
        words = tf.cast(tf.boolean_mask(candidates[..., :2], is_linked), tf.int32)  # (F, 2)
        row = tf.gather(tf.cast(starts.row_splits, tf.int32), text_of)
        first, last = tf.unstack(row + words, axis=1)
        return {
            "starts": of_mentions(tf.gather(starts.flat_values, first)),
            "ends": of_mentions(tf.gather(ends.flat_values, last)),
            "clusters": of_mentions(tf.boolean_mask(clusters, is_linked)),
            "lengths": lengths,
        }

    warmup = [{"text": batch} for batch in warmup_texts(max_length)]
    return standard_signatures(from_text, task=task, warmup=warmup)


def cluster_numbers(candidates):
    """As `clusters_of`: (B, K, 2 + A) -> int32 (B, K), the number of each candidate's cluster.

    -1 for padding and for what is in no cluster.
    """
    scores = candidates[..., 2:]
    shape = tf.shape(scores)
    number = tf.range(shape[1])  # (K,)
    best = number - 1 - tf.argmax(scores, axis=-1, output_type=tf.int32)  # (B, K)
    has_one = (tf.reduce_max(scores, axis=-1) > 0) & (candidates[..., 0] >= 0)
    root = tf.where(has_one, best, number)

    # Each candidate points to its antecedent; doubling the steps leads to the first of its cluster.
    def step(root, _):
        after = tf.gather(root, root, batch_dims=1)
        return after, tf.reduce_any(after != root)

    root, _ = tf.while_loop(lambda root, changed: changed, step, [root, tf.constant(True)])
    members = tf.math.unsorted_segment_sum(
        tf.ones_like(root), root + tf.range(shape[0])[:, None] * shape[1], shape[0] * shape[1]
    )
    is_first = (tf.reshape(members, shape[:2]) > 1) & (root == number)
    of_first = tf.where(is_first, tf.cumsum(tf.cast(is_first, tf.int32), axis=1) - 1, -1)
    return tf.gather(of_first, root, batch_dims=1)
