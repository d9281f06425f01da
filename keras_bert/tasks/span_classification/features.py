"""Texts with spans as sequences of tokens, words and the grid of their spans."""

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import Naming
from keras_bert.inputs.tokenized_examples import PAD_TO, TokenizedExamples
from keras_bert.inputs.words import sequences_around, tokenized_words, word_sequences
from keras_bert.records.padding import padded_length
from keras_bert.tasks.classification.decode import label_numbers

# The words of a batch are padded to a multiple of this many, so that a compiler meets few shapes.
_PAD_WORDS_TO = 8


class SequencesOfWords(TokenizedExamples):
    """`TokenizedExamples` whose first columns are `word_starts` and `word_ends`.

    They are ragged (N, None), and padded to W, the words of a batch, not to its tokens.
    """

    shapes_follow_from_length = False

    def inputs(self, *taken):
        inputs = super().inputs(*taken)
        starts = taken[len(self.segments)]
        words = tf.minimum(words_width(starts.row_lengths()), tf.shape(inputs["input_ids"])[1])
        # A word has at least one token, so there are never more words than tokens.
        return inputs | {name: inputs[name][:, :words] for name in ("word_starts", "word_ends")}


class SpanSequences(SequencesOfWords):
    """Sequences of whole words, with the inputs `word_starts` and `word_ends` (B, W).

    The labels of `logits` are a grid (B, W, L): from each word the spans of 1 to L words, each 0 or
    the number of its label from 1. A span has a weight of 1 in the sequence that owns its first
    word, and 0 in others and if it ends after the sequence's last word.

    Args:
        examples: `SpannedWords`.
        tokenizer: a `Tokenizer`.
        max_length: maximum sequence length, including special tokens.
        max_span_length: L.
        label_number: a function from an example and a label to its number; None: no labels.

    Attributes: `positions` (int arrays (N,) by the names of `WordSequences`: the words that a
    sequence has and owns), `words` (for each example the (starts, ends) of its words in the text)
    and `spans` (for each example its `LabelledSpan`s in words, or None).

    Raises:
        InputError: a span begins or ends inside a word.
    """

    def __init__(
        self,
        examples,
        *,
        tokenizer,
        input_names,
        max_length,
        max_span_length,
        label_number=None,
    ):
        tokenized, self.words = words_in_texts(examples, tokenizer)
        self.spans = spans_in_words(examples, self.words)
        parts = word_sequences(tokenized, template=tokenizer.template, max_length=max_length)
        names = ("text", "first", "end", "owned", "owned_end")
        self.positions = {name: getattr(parts, name).numpy() for name in names}
        self._max_span_length = max_span_length
        super().__init__(
            examples,
            [parts.ids],
            labels={} if label_number is None else {"logits": self._cells(examples, label_number)},
            columns={"word_starts": parts.starts, "word_ends": parts.ends},
            example_of_sequence=self.positions["text"],
            tokenizer=tokenizer,
            input_names=input_names,
            max_length=max_length,
        )

    @property
    def weight_totals(self):
        first, end, owned, owned_end = (
            self.positions[name].astype(np.int64) for name in ("first", "end", "owned", "owned_end")
        )

        def up_to(words):  # the number of spans of 1 to L words in that many words
            widest = np.minimum(words, self._max_span_length)
            return words * widest - widest * (widest - 1) // 2

        # A span counts if it begins in a word that is owned and ends in the sequence.
        return {"logits": float(np.sum(up_to(end - owned) - up_to(end - owned_end)))}

    def targets(self, numbers):
        first_word, end, owned, owned_end = (
            tf.gather(tf.constant(self.positions[name]), numbers)
            for name in ("first", "end", "owned", "owned_end")
        )
        count = end - first_word  # (B,)
        lengths = tf.gather(tf.constant(self.lengths, tf.int32), numbers)
        tokens = padded_length(lengths, self._max_length, PAD_TO)
        width = tf.minimum(words_width(count), tokens)
        cells = tf.gather(self.labels["logits"], numbers)
        labels = grid(cells, width, self._max_span_length)  # (B, W, L)

        first = tf.range(width)[:, None]  # (W, 1)
        last = first + tf.range(self._max_span_length)  # (W, L)
        owned, owned_end, count = (
            x[:, None, None] for x in (owned - first_word, owned_end - first_word, count)
        )
        counts = (first >= owned) & (first < owned_end) & (last < count)
        return {"logits": labels}, {"logits": tf.cast(counts, tf.float32)}

    def _cells(self, examples, label_number):
        """Ragged int32 (N, None, 3): (first word, width - 1, label) of each sequence's spans.

        Of spans with the same words, the first one counts.
        """
        rows, counts = [], []
        for text, first, end, owned, owned_end in zip(*self.positions.values(), strict=True):
            cells = {}
            for span in self.spans[text] or ():
                number = label_number(examples[text], span.label)
                width = span.end - span.start
                fits = width <= self._max_span_length and span.end <= end
                if owned <= span.start < owned_end and fits:
                    cells.setdefault((span.start - first, width - 1), number)
            rows += [(*cell, number) for cell, number in cells.items()]
            counts.append(len(cells))
        flat = np.array(rows, np.int32).reshape(-1, 3)
        return tf.RaggedTensor.from_row_lengths(flat, counts)


class PairSequences(SequencesOfWords):
    """One sequence per pair of spans, with `span_firsts` and `span_lasts` (B, 2) and its words.

    They are the first and the last word of head and tail, counted from the sequence's first word. A
    text that is too long is cut so that the two are in the middle. If they are too far apart, the
    sequence has a part of them, and its label has a weight of 0, as has a label that the model does
    not have.

    Args:
        examples: `SpanPair`s.
        tokenizer: a `Tokenizer`.
        max_length: maximum sequence length, including special tokens.
        labels: int32 (N,), the numbers of their labels (-1: not the model's), or None.

    Attributes: `words` (for each example the (starts, ends) of its words in the text), `pairs` (its
    head and tail, `LabelledSpan`s in words) and `fits`, bool (N,), whether the sequence has both.

    Raises:
        InputError: a span begins or ends inside a word.
    """

    def __init__(self, examples, *, tokenizer, input_names, max_length, labels=None):
        tokenized, self.words = words_in_texts(examples, tokenizer)
        self.pairs = [
            [span_in_words(span, example, *words) for span in (example.head, example.tail)]
            for example, words in zip(examples, self.words, strict=True)
        ]
        spans = np.array([[span[:2] for span in pair] for pair in self.pairs], np.int32)
        spans = spans.reshape(-1, 2, 2)  # (N, head and tail, start and end)
        low, high = spans[..., 0].min(axis=1), spans[..., 1].max(axis=1)
        parts, missing = sequences_around(
            tokenized, low, high, template=tokenizer.template, max_length=max_length
        )
        missing = missing.numpy()
        self.fits = missing == 0
        if not self.fits.all():
            self.unfit = (
                int((~self.fits).sum()),
                Naming(
                    "head and tail are too far apart for {} tokens, and need a {max_length} of {}",
                    max_length,
                    max_length + missing.max(),
                ),
            )
        first, end = parts.first.numpy()[:, None, None], parts.end.numpy()[:, None, None]
        ends = np.clip(spans - [0, 1], first, end - 1) - first  # (N, 2, 2), of a part at least
        counts = self.fits if labels is None else self.fits & (labels >= 0)
        weights = {} if counts.all() else {"logits": counts.astype(np.float32)}
        super().__init__(
            examples,
            [parts.ids],
            labels={} if labels is None else {"logits": np.maximum(labels, 0)},
            weights={} if labels is None else weights,
            columns={
                "word_starts": parts.starts,
                "word_ends": parts.ends,
                "span_firsts": tf.constant(ends[..., 0], tf.int32),
                "span_lasts": tf.constant(ends[..., 1], tf.int32),
            },
            tokenizer=tokenizer,
            input_names=input_names,
            max_length=max_length,
        )


def words_in_texts(examples, tokenizer):
    """`TokenizedWords`, and the (starts, ends) of each example's words in its text."""
    tokenized, offsets = tokenized_words(examples, tokenizer)
    return tokenized, [o or (e.starts, e.ends) for o, e in zip(offsets, examples, strict=True)]


def spans_in_words(examples, words):
    """The spans of each example in words (see `span_in_words`), or None if they are unknown.

    `words` are the second result of `words_in_texts`.
    """
    return [
        None if e.spans is None else [span_in_words(span, e, *offsets) for span in e.spans]
        for e, offsets in zip(examples, words, strict=True)
    ]


def span_in_words(span, example, starts, ends):
    """A `LabelledSpan` of an example in words; it is in characters if the example has no words.

    Args:
        starts, ends: where the words begin and end in the text; white space around a span does not
            matter.

    Raises:
        InputError: the span begins or ends inside a word, or has no word.
    """
    if example.words is not None:
        return span
    first = int(np.searchsorted(starts, span.start))
    after = int(np.searchsorted(ends, span.end, side="right"))
    shown = f'the span [{span.start}, {span.end}], "{example.text[span.start : span.end]}",'
    # Words before it end before it, and words after it begin after it.
    for word, cuts in ((first - 1, "begins"), (after, "ends")):
        if 0 <= word < len(starts) and starts[word] < span.end and ends[word] > span.start:
            raise example.error(
                f"{shown} {cuts} inside the word "
                f'"{example.text[starts[word] : ends[word]]}". Spans must consist of whole words.'
            )
    if after <= first:
        raise example.error(f"{shown} has no word.")
    return span._replace(start=first, end=after)


def words_width(counts):
    """W of a batch: the most words of a sequence, rounded up; at least 1."""
    most = tf.reduce_max(tf.concat([tf.cast(counts, tf.int32), [1]], axis=0))
    return -(-most // _PAD_WORDS_TO) * _PAD_WORDS_TO


def grid(cells, width, length):
    """The numbers of spans as a grid: ragged int32 (B, None, 3) -> int32 (B, W, L), 0 elsewhere.

    Each of the `cells` is (first word, width - 1, number).
    """
    row = tf.cast(cells.value_rowids(), tf.int32)
    at = tf.concat([row[:, None], cells.flat_values[:, :2]], axis=1)
    shape = tf.stack([tf.cast(cells.nrows(), tf.int32), width, length])
    return tf.scatter_nd(at, cells.flat_values[:, 2], shape)


def span_sequences(task, examples, *, max_length, labelled):
    """The `SpanSequences` of a `SpanClassifier`."""
    return SpanSequences(
        examples,
        **task.framing(max_length),
        max_span_length=task.settings.max_span_length,
        label_number=task.label_number if labelled else None,
    )


def pair_sequences(task, examples, *, max_length, labelled):
    """The `PairSequences` of a `RelationClassifier`."""
    labels = label_numbers(examples, task.labels) if labelled else None
    return PairSequences(examples, **task.framing(max_length), labels=labels)
