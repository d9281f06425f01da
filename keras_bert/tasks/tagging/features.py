"""Sentences as rows: words into pieces, long sentences into windows, tags onto pieces."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.inputs.tokenized_examples import TokenizedExamples
from keras_bert.inputs.windows import windows
from keras_bert.inputs.words import words_given, words_of_texts
from keras_bert.tasks.tagging.crf import KNOWN
from keras_bert.tasks.tagging.settings import ALL, FIRST


class Sentence(NamedTuple):
    """The words of an example, where they stand in its text, and their pieces.

    `starts` and `ends` count characters of `text`. `sizes` is how many of `ids` each word has, at
    least one.
    """

    text: str
    words: list
    starts: list
    ends: list
    sizes: np.ndarray  # int (W,)
    ids: np.ndarray  # int32 (T,)


class TaggedRows(TokenizedExamples):
    """Rows of sentences, with what is needed to bring what is said of them back to words.

    Attributes beside those of `TokenizedExamples`:
        sentences: the `Sentence` of each example.
        cores: int (N, 2), the positions of each row, from and to, that the answers are read at; in
            order they are all pieces of all sentences.
    """

    def __init__(self, sentences, cores, examples, segments, **options):
        super().__init__(examples, segments, **options)
        self.sentences = sentences
        self.cores = cores


def tagged_sequences(
    examples,
    *,
    tokenizer,
    input_names,
    labels,
    max_length,
    label_subwords,
    document_context,
    labelled,
    crf=False,
):
    """The `TaggedRows` of some examples.

    A sentence that does not fit into a row is split into windows that overlap. With
    `document_context`, every row is filled with the sentences before and after its own in the same
    document, as far as they are among the examples.

    Args:
        examples: `TaggedWords`, those of a document in order.
        labels: the tags in the order of the logits.
        label_subwords: "first", "last" or "all", see `TaggerSettings`.
        labelled: with `logits` as labels, numbers of tags, and as weights 1 at pieces that count. A
            piece counts in one row alone; a tag that is none of `labels` does not count.
        crf: the first and the last token of a part of a split sentence, [CLS] and [SEP], have the
            labels of the words beside those that count in it, as `LinearChainCrf.log_likelihoods`
            takes them.
    """
    template = tokenizer.template
    room, before = template.room(max_length), template.before(0, texts=1)
    sentences = split_sentences(examples, tokenizer)
    ids = np.concatenate([np.zeros(0, np.int32), *(sentence.ids for sentence in sentences)])
    lengths = np.array([len(sentence.ids) for sentence in sentences], np.int32)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    first, last = starts, ends
    if document_context:
        documents = [example.document for example in examples]
        first, last = with_context(starts, ends, documents, room=room)
    lengths_in_context = tf.constant(last - first, tf.int32)
    found = windows(lengths_in_context, room, stride=max(1, room // 2)).numpy()
    base, own = first[found.sequence], (starts[found.sequence], ends[found.sequence])
    row_starts = base + found.starts
    core_starts = np.maximum(base + found.core_starts, own[0]) - row_starts
    core_ends = np.minimum(base + found.core_ends, own[1]) - row_starts
    positions = tf.ragged.range(row_starts, row_starts + found.sizes)
    segment = tf.gather(tf.constant(ids), positions)
    targets = {"labels": {}}
    if labelled:
        tags, counts = _targets(examples, sentences, labels, label_subwords)
        beside = _beside(tags, counts, row_starts + core_starts, row_starts + core_ends, own)
        tags, counts = tags[positions.values], counts[positions.values]
        splits = positions.row_splits.numpy()
        number = np.arange(len(counts)) - np.repeat(splits[:-1], found.sizes)
        counts &= number >= np.repeat(core_starts, found.sizes)
        counts &= number < np.repeat(core_ends, found.sizes)
        around = before, template.num_special(1) - before
        tags, counts = (
            _with_special(positions.with_values(values), around)
            for values in (tags, counts.astype(np.float32))
        )
        if crf:
            tags = _with_beside(tags, counts, beside)
        targets = {"labels": {"logits": tags}, "weights": {"logits": counts}}
    return TaggedRows(
        sentences,
        before + np.stack([core_starts, core_ends], axis=1),
        examples,
        [segment],
        **targets,
        example_of_sequence=found.sequence,
        tokenizer=tokenizer,
        input_names=input_names,
        max_length=max_length,
    )


def split_sentences(examples, tokenizer):
    """The `Sentence` of each example: given words, or a text at the tokenizer's words."""
    given = [example for example in examples if example.words is not None]
    texts = [example.text for example in examples if example.words is None]
    of_words = of_texts = iter(())
    if given:
        tokenized = words_given([example.words for example in given], tokenizer)
        of_words = zip(given, *_parts(tokenized), strict=True)
    if texts:
        tokenized, starts, ends = words_of_texts(texts, tokenizer)
        of_texts = zip(texts, *_parts(tokenized), _rows(starts), _rows(ends), strict=True)
    return [
        _of_text(*next(of_texts)) if example.words is None else _of_words(*next(of_words))
        for example in examples
    ]


def with_context(starts, ends, documents, *, room):
    """Widens sentences into their documents: as far as a row has room, alike on both sides.

    A sentence that needs several rows gets a quarter of a row on each side.

    Args:
        starts, ends: int (N,), the pieces of each sentence, counted over all of them.
        documents: the number of the document of each sentence.
        room: pieces in a row.

    Returns: the first piece and the end of the pieces of each, int (N,).
    """
    documents = np.asarray(documents)
    begins = np.flatnonzero(np.r_[True, documents[1:] != documents[:-1]])
    of = np.cumsum(np.r_[True, documents[1:] != documents[:-1]]) - 1
    before = starts - starts[begins][of]
    after = ends[np.r_[begins[1:], len(starts)] - 1][of] - ends
    lengths = ends - starts
    free = room - lengths
    left, right = np.minimum(before, room // 4), np.minimum(after, room // 4)
    fits = free >= 0
    some = np.minimum(before, free // 2)
    right = np.where(fits, np.minimum(after, free - some), right)
    left = np.where(fits, np.minimum(before, free - right), left)
    return (starts - left).astype(np.int32), (ends + right).astype(np.int32)


def _parts(tokenized):
    """`TokenizedWords` -> the ids of each text, and how many each of its words has: two lists."""
    ids, firsts = _rows(tokenized.ids), _rows(tokenized.firsts)
    sizes = [np.diff([*first, len(row)]) for first, row in zip(firsts, ids, strict=True)]
    return ids, sizes


def _rows(ragged):
    """A ragged tensor (N, None) as a list of arrays."""
    values, splits = ragged.values.numpy(), ragged.row_splits.numpy()
    return np.split(values, splits[1:-1])


def _of_words(example, ids, sizes):
    text, starts = example.text, example.starts
    if starts is None:
        text = " ".join(example.words)
        starts = np.cumsum([0, *(len(word) + 1 for word in example.words)])[:-1].tolist()
    ends = [start + len(word) for start, word in zip(starts, example.words, strict=True)]
    return Sentence(text, list(example.words), list(starts), ends, sizes.astype(np.int64), ids)


def _of_text(text, ids, sizes, starts, ends):
    starts, ends = starts.tolist(), ends.tolist()
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return Sentence(text, words, starts, ends, sizes.astype(np.int64), ids)


def _targets(examples, sentences, labels, label_subwords):
    """The number of each piece's tag, int32 (T,), and whether it counts, bool (T,)."""
    numbers = {label: number for number, label in enumerate(labels)}
    sizes = np.concatenate([np.zeros(0, np.int64), *(sentence.sizes for sentence in sentences)])
    tags = np.array([numbers.get(tag, -1) for e in examples for tag in e.tags], np.int32)
    tags = np.repeat(tags, sizes)
    counts = tags >= 0
    if label_subwords != ALL:
        ends = np.cumsum(sizes)
        is_labelled = np.zeros(len(tags), np.bool_)
        is_labelled[ends - sizes if label_subwords == FIRST else ends - 1] = True
        counts &= is_labelled
    return np.maximum(tags, 0), counts


def _beside(tags, counts, starts, ends, own):
    """The labels of the words before and after those that count in each row, as KNOWN + label.

    Args:
        tags, counts: int32 and bool (T,), of all pieces of all sentences.
        starts, ends: int (N,), which of them each row answers.
        own: a pair of int (N,), those of its sentence.

    Returns int32 (N, 2): 0 where there is no such word in the sentence, or none in the row.
    """
    tokens = np.flatnonzero(counts)
    first, after = np.searchsorted(tokens, starts), np.searchsorted(tokens, ends)
    tokens, tags = np.r_[tokens, -1], np.r_[tags, 0]  # before the first and after the last one
    before, behind = tokens[first - 1], tokens[after]
    has_words = after > first
    found = np.zeros((len(starts), 2), np.int32)
    for column, (token, is_there) in enumerate(
        ((before, before >= own[0]), (behind, (behind >= 0) & (behind < own[1])))
    ):
        found[:, column] = np.where(has_words & is_there, KNOWN + tags[token], 0)
    return found


def _with_special(values, around):
    """Ragged (N, None) of a row's pieces -> with 0 for so many special tokens before and behind."""
    before, behind = (tf.zeros([values.nrows(), count], values.dtype) for count in around)
    return tf.concat([before, values, behind], axis=1)


def _with_beside(tags, counts, beside):
    """Tags, ragged (N, None), with `beside` (N, 2) at the first and last position of each row.

    A position that counts keeps its tag, as where a template has no special tokens.
    """
    values, splits = tags.values.numpy(), tags.row_splits.numpy()
    is_free = counts.values.numpy() == 0
    for positions, labels in ((splits[:-1], beside[:, 0]), (splits[1:] - 1, beside[:, 1])):
        ours = np.flatnonzero(splits[1:] > splits[:-1])
        ours = ours[is_free[positions[ours]]]
        values[positions[ours]] = labels[ours]
    return tags.with_values(tf.constant(values))
