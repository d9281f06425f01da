"""Texts with spans as rows of tokens, words and the grid of their spans."""

import numpy as np
import tensorflow as tf

from keras_bert.inputs.tokenized_examples import PAD_TO, TokenizedExamples
from keras_bert.inputs.words import (
    TokenizedWords,
    sequences_around,
    word_sequences,
    words_given,
    words_of_texts,
)
from keras_bert.records.padding import padded_length

# Strings that are tokenized with offsets at once.
_TOKENIZED_TOGETHER = 1000
# Words of a batch are padded to a multiple of this many, so that a compiler meets few shapes.
PAD_WORDS_TO = 8


class SequencesOfWords(TokenizedExamples):
    """`TokenizedExamples` whose columns `word_starts` and `word_ends` come first among them.

    They are ragged (N, None), and padded to W, the words of a batch, not to its tokens.
    """

    def inputs(self, *taken):
        inputs = super().inputs(*taken)
        starts = taken[len(self.segments)]
        words = _words_width(starts.row_lengths(), tf.shape(inputs["input_ids"])[1])
        # A word has at least one token, so there are never more words than tokens.
        return inputs | {name: inputs[name][:, :words] for name in ("word_starts", "word_ends")}


class SpanRows(SequencesOfWords):
    """Rows of whole words, with `word_starts` and `word_ends` (B, W) beside the encoder's inputs.

    The labels of `logits` are a grid (B, W, L): from each word the spans of 1 to L words, 0 where
    there is none and else the number of the label from 1. A span has a weight of 1 in the row that
    owns its first word, and 0 in others and where it is beyond the row's last word.

    Args:
        examples: `SpannedWords`.
        tokenizer: a `Tokenizer`.
        max_length: tokens in a row, special tokens counted in.
        max_span_length: L.
        label_number: a function from an example and a label to its number; None makes no labels.

    Attributes: `positions` (int arrays (N,) by the names of `WordSequences`, what a sequence holds
    and owns), `words` (for each example (starts, ends) of its words in the text) and `spans` (for
    each example its `LabelledSpan`s in words, or None).

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
        tokenized, self.words = tokenized_examples(examples, tokenizer)
        self.spans = [
            spans_in_words(example, *words)
            for example, words in zip(examples, self.words, strict=True)
        ]
        rows = word_sequences(tokenized, template=tokenizer.template, max_length=max_length)
        names = ("text", "first", "end", "owned", "owned_end")
        self.positions = {name: getattr(rows, name).numpy() for name in names}
        self._max_span_length = max_span_length
        super().__init__(
            examples,
            [rows.ids],
            labels={} if label_number is None else {"logits": self._cells(examples, label_number)},
            columns={"word_starts": rows.starts, "word_ends": rows.ends},
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

        def up_to(words):  # the spans of 1 to L words in so many
            widest = np.minimum(words, self._max_span_length)
            return words * widest - widest * (widest - 1) // 2

        # Those that begin in a word that is owned, and end in the row.
        return {"logits": float(np.sum(up_to(end - owned) - up_to(end - owned_end)))}

    def targets(self, rows):
        position = {name: tf.gather(tf.constant(of), rows) for name, of in self.positions.items()}
        count = position["end"] - position["first"]  # (B,)
        lengths = tf.gather(tf.constant(self.lengths, tf.int32), rows)
        width = _words_width(count, padded_length(lengths, self._max_length, PAD_TO))
        cells = tf.gather(self.labels["logits"], rows)  # ragged (B, None, 3)
        row = tf.cast(cells.value_rowids(), tf.int32)
        at = tf.concat([row[:, None], cells.flat_values[:, :2]], axis=1)
        shape = tf.stack([tf.size(rows), width, self._max_span_length])
        labels = tf.scatter_nd(at, cells.flat_values[:, 2], shape)  # (B, W, L)

        first = tf.range(width)[:, None]  # (W, 1)
        last = first + tf.range(self._max_span_length)  # (W, L)
        owned, owned_end = (
            position["owned"] - position["first"],
            position["owned_end"] - position["first"],
        )
        counts = (first >= owned[:, None, None]) & (first < owned_end[:, None, None])
        counts &= last < count[:, None, None]
        return {"logits": labels}, {"logits": tf.cast(counts, tf.float32)}

    def _cells(self, examples, label_number):
        """Ragged int32 (N, None, 3): the (word of the row, width - 1, label) of each row's spans.

        Of spans with the same words, the first one counts.
        """
        found, counts = [], []
        for text, first, end, owned, owned_end in zip(*self.positions.values(), strict=True):
            cells = {}
            for span in self.spans[text] or ():
                number = label_number(examples[text], span.label)
                width = span.end - span.start
                fits = width <= self._max_span_length and span.end <= end
                if owned <= span.start < owned_end and fits:
                    cells.setdefault((span.start - first, width - 1), number)
            found += [(*cell, number) for cell, number in cells.items()]
            counts.append(len(cells))
        values = np.array(found, np.int32).reshape(-1, 3)
        return tf.RaggedTensor.from_row_lengths(values, counts)


class PairRows(SequencesOfWords):
    """A row a pair of spans, with `span_firsts` and `span_lasts` (B, 2) beside the words.

    They are the first and the last word of head and tail, counted from the row's first word. A text
    that is too long for a row is cut so that the two are in its middle. Where they are further
    apart than a row is long, the row holds a part of them, and its label weighs 0.

    Args:
        examples: `SpanPair`s.
        tokenizer: a `Tokenizer`.
        max_length: tokens in a row, special tokens counted in.
        labels: int32 (N,), the numbers of their labels, or None.

    Attributes: `words` (for each example (starts, ends) of its words in the text), `pairs` (its
    head and tail, `LabelledSpan`s in words) and `fits`, bool (N,), whether the row holds both.

    Raises:
        InputError: a span begins or ends inside a word.
    """

    def __init__(self, examples, *, tokenizer, input_names, max_length, labels=None):
        tokenized, self.words = tokenized_examples(examples, tokenizer)
        self.pairs = [
            [
                span if example.words is not None else span_in_words(span, example, *words)
                for span in (example.head, example.tail)
            ]
            for example, words in zip(examples, self.words, strict=True)
        ]
        spans = np.array([[span[:2] for span in pair] for pair in self.pairs], np.int32)
        spans = spans.reshape(-1, 2, 2)  # (N, head and tail, start and end)
        low, high = spans[..., 0].min(axis=1), spans[..., 1].max(axis=1)
        rows, missing = sequences_around(
            tokenized, low, high, template=tokenizer.template, max_length=max_length
        )
        missing = missing.numpy()
        self.fits = missing == 0
        if not self.fits.all():
            self.unfit = (
                int((~self.fits).sum()),
                f"head and tail are too far apart for a row of {max_length} tokens, and a "
                f"`max_length` of {max_length + missing.max()} would hold them",
            )
        first, end = rows.first.numpy()[:, None, None], rows.end.numpy()[:, None, None]
        ends = np.clip(spans - [0, 1], first, end - 1) - first  # (N, 2, 2), of a part at least
        weights = {} if self.fits.all() else {"logits": self.fits.astype(np.float32)}
        super().__init__(
            examples,
            [rows.ids],
            labels={} if labels is None else {"logits": labels},
            weights={} if labels is None else weights,
            columns={
                "word_starts": rows.starts,
                "word_ends": rows.ends,
                "span_firsts": tf.constant(ends[..., 0], tf.int32),
                "span_lasts": tf.constant(ends[..., 1], tf.int32),
            },
            tokenizer=tokenizer,
            input_names=input_names,
            max_length=max_length,
        )


def tokenized_examples(examples, tokenizer):
    """`TokenizedWords` of examples with words or texts, and the (starts, ends) of their words.

    Each is a list of ints: where the words begin in the example's text, and the place after them.
    """
    given = [n for n, example in enumerate(examples) if example.words is not None]
    strings = [n for n, example in enumerate(examples) if example.words is None]
    parts = [words_given([examples[n].words for n in given], tokenizer)]
    words = {n: (examples[n].starts, examples[n].ends) for n in given}
    for start in range(0, len(strings), _TOKENIZED_TOGETHER):
        some = strings[start : start + _TOKENIZED_TOGETHER]
        part, starts, ends = words_of_texts([examples[n].text for n in some], tokenizer)
        parts.append(part)
        words.update(zip(some, zip(starts.to_list(), ends.to_list(), strict=True), strict=True))
    order = tf.constant(np.argsort([*given, *strings]), tf.int32)
    together = [tf.gather(tf.concat(column, axis=0), order) for column in zip(*parts, strict=True)]
    return TokenizedWords(*together), [words[n] for n in range(len(examples))]


def spans_in_words(example, starts, ends):
    """The spans of a `SpannedWords`, in words: a list, or None where it has none.

    Args:
        starts, ends: where its words begin and end in its text, in characters.

    Raises:
        InputError: a span in characters begins or ends inside a word, or holds none.
    """
    if example.spans is None or example.words is not None:
        return example.spans
    return [span_in_words(span, example, starts, ends) for span in example.spans]


def span_in_words(span, example, starts, ends):
    """A `LabelledSpan` in characters as one in words; white space around it does not matter."""
    first = int(np.searchsorted(starts, span.start))
    after = int(np.searchsorted(ends, span.end, side="right"))
    shown = f'the span [{span.start}, {span.end}], "{example.text[span.start : span.end]}",'
    # Words before it end before it, and words behind it begin behind it.
    for word, cuts in ((first - 1, "begins"), (after, "ends")):
        if 0 <= word < len(starts) and starts[word] < span.end and ends[word] > span.start:
            raise example.error(
                f"{shown} {cuts} inside the word "
                f'"{example.text[starts[word] : ends[word]]}"; spans are of whole words.'
            )
    if after <= first:
        raise example.error(f"{shown} holds no word.")
    return span._replace(start=first, end=after)


def _words_width(counts, tokens):
    """W of a batch: the most words of a row, rounded up, and at most the width in tokens."""
    most = tf.reduce_max(tf.concat([tf.cast(counts, tf.int32), [1]], axis=0))
    return tf.minimum(-(-most // PAD_WORDS_TO) * PAD_WORDS_TO, tokens)
