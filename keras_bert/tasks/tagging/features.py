"""Sentences as sequences of tokens: long ones in windows, and the tags of words on their tokens."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.framing import windows
from keras_bert.inputs.tokenized_examples import TokenizedExamples
from keras_bert.inputs.words import tokenized_words
from keras_bert.readers.objects import joined
from keras_bert.tasks.span_classification.features import span_in_words
from keras_bert.tasks.tagging import ALL, FIRST
from keras_bert.tasks.tagging.crf import KNOWN


class Sentence(NamedTuple):
    """The words of an example, their characters in its text, and their tokens.

    Word i is `text[starts[i]:ends[i]]` and has the next `sizes[i]` of `ids`, at least one, of which
    the first `spaces[i]` (0 or 1) are not read.
    """

    text: str
    words: list
    starts: list
    ends: list
    sizes: np.ndarray  # int (W,)
    spaces: np.ndarray  # int (W,)
    ids: np.ndarray  # int32 (T,)


class TaggedSequences(TokenizedExamples):
    """The sequences of sentences.

    A sentence that is too long is split into overlapping windows. With `document_context`, every
    sequence is filled with the sentences before and after its own in the same document, as far as
    they are among the examples.

    Args:
        examples: `TaggedWords`, those of a document in order.
        labels: the tags in the order of the logits.
        label_subwords: "first", "last" or "all", see `TaggerSettings`.
        labelled: whether there are `logits` as labels, the numbers of tags, with weights of 1 at
            tokens that count. A token counts in one sequence only; a tag that is not one of
            `labels` does not count.
        crf: whether the first and the last token of a part of a split sentence, [CLS] and [SEP],
            have the labels of the words before and after those that count in it, as
            `LinearChainCrf.log_likelihoods` takes them.

    Attributes, in addition to those of `TokenizedExamples`:
        sentences: the `Sentence` of each example.
        word_of_token: if `labelled`, the number of each token's word among all words, from 1, and 0
            of special tokens: ragged int32 (N, None).
        cores: int (N, 2), the positions in each sequence, from and to, that predictions are taken
            from; in order they are all tokens of all sentences.
    """

    def __init__(
        self,
        examples,
        *,
        tokenizer,
        labels,
        max_length,
        label_subwords,
        document_context,
        labelled,
        crf=False,
        **options,
    ):
        template = tokenizer.template
        if document_context:  # in which a space is before a sentence
            sentence_vocabulary = tokenizer.vocabulary.with_prefix_space()
            tokenizer = tokenizer.with_vocabulary(sentence_vocabulary)
        self.sentences = split_sentences(examples, tokenizer)
        ids = concatenated([sentence.ids for sentence in self.sentences], np.int32)
        lengths = np.array([len(sentence.ids) for sentence in self.sentences], np.int32)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        marked = self.marked_tokens(examples)
        texts = 1 if marked is None else 2
        room, before = template.room(max_length, texts=texts), template.before(0, texts=texts)
        if marked is not None:
            repeated = repeated_tokens(marked, room)
            room = room - repeated
        first, last = starts, ends
        if document_context:
            documents = [example.document for example in examples]
            first, last = with_context(starts, ends, documents, room=room)
        lengths_in_context = tf.constant(last - first, tf.int32)
        parts = windows(lengths_in_context, room, stride=np.maximum(1, room // 2)).numpy()
        base, sentence_bounds = (
            first[parts.sequence],
            (starts[parts.sequence], ends[parts.sequence]),
        )
        window_starts = base + parts.starts
        core_starts = np.maximum(base + parts.core_starts, sentence_bounds[0])
        core_ends = np.minimum(base + parts.core_ends, sentence_bounds[1])
        positions = tf.ragged.range(window_starts, window_starts + parts.sizes)
        segments = [tf.gather(tf.constant(ids), positions)]
        if marked is not None:
            second = starts + marked[:, 0]
            second = tf.gather(tf.ragged.range(second, second + repeated), parts.sequence)
            segments.append(tf.gather(tf.constant(ids), second))
            in_sentence = parts._replace(starts=window_starts - starts[parts.sequence])
            options["columns"] = marked_inputs(in_sentence, marked, repeated, template=template)
        targets = {"labels": {}}
        if labelled:
            special = before, template.num_special(texts) - before
            tags, counts = _targets(examples, self.sentences, labels, label_subwords)
            around = _tags_around(tags, counts, core_starts, core_ends, sentence_bounds)
            token, window = positions.values.numpy(), positions.value_rowids().numpy()
            in_core = (token >= core_starts[window]) & (token < core_ends[window])
            counts = (counts[token] & in_core).astype(np.float32)
            tags = _with_special(positions.with_values(tags[token]), special)
            counts = _with_special(positions.with_values(counts), special)
            if crf:
                tags = _with_tags_around(tags, counts, around)
            targets = {"labels": {"logits": tags}, "weights": {"logits": counts}}
            sizes = concatenated([sentence.sizes for sentence in self.sentences], np.int64)
            words = np.repeat(np.arange(1, len(sizes) + 1, dtype=np.int32), sizes)
            self.word_of_token = _with_special(positions.with_values(words[token]), special)
        cores = np.stack([core_starts, core_ends], axis=1)
        self.cores = before + cores - window_starts[:, None]
        super().__init__(
            examples,
            segments,
            **targets,
            example_of_sequence=parts.sequence,
            tokenizer=tokenizer,
            max_length=max_length,
            **options,
        )

    def marked_tokens(self, examples):
        """Returns the first token of each sentence's marked words, and the one after them.

        Returns int32 (N, 2), or None if nothing is marked. A sequence repeats the marked tokens
        as its second text (Shi and Lin 2019), and has the inputs of `marked_inputs`.
        """
        return None


class PredicateSequences(TaggedSequences):
    """`TaggedSequences` of `PredicateWords`, whose predicate is repeated as the second text.

    Attribute: `predicates`, for each example its `LabelledSpan` in words.

    Raises:
        InputError: a predicate begins or ends inside a word, or there is no room for one.
    """

    def marked_tokens(self, examples):
        self.predicates = [
            span_in_words(example.predicate, example, sentence.starts, sentence.ends)
            for example, sentence in zip(examples, self.sentences, strict=True)
        ]
        marked = [
            np.r_[0, np.cumsum(sentence.sizes)][[predicate.start, predicate.end]]
            for predicate, sentence in zip(self.predicates, self.sentences, strict=True)
        ]
        return np.array(marked, np.int32).reshape(-1, 2)


def repeated_tokens(marked, room):
    """How many of the marked tokens a second text repeats: at most a quarter of a sequence.

    Args:
        marked: int32 (N, 2), from the first token to the one after the last.
        room: the tokens of both texts together.

    Raises:
        InputError: there is no room for a token of each.
    """
    if room < 2:
        raise InputError.naming(
            "{max_length} leaves no room for a text and its marked words. It must be at least {} "
            "more.",
            2 - room,
        )
    return tf.minimum(marked[:, 1] - marked[:, 0], max(1, room // 4))


def marked_inputs(parts, marked, repeated, *, template):
    """The positions of the marked tokens in each sequence, in its second text if not in the first.

    Also in a graph.

    Args:
        parts: the `Windows` of sentences.
        marked: int32 (N, 2), the marked tokens of each sentence, from the first to after the last.
        repeated: int32 (N,), how many of them the second text repeats.
        template: the `Template` of the sequences.

    Returns:
        `marked_starts` and `marked_ends`, int32 (R, 1), by name.
    """
    first, after = tf.unstack(tf.gather(marked, parts.sequence) - parts.starts[:, None], axis=1)
    inside = (first >= 0) & (after <= parts.sizes)
    second = parts.sizes + template.before(1, texts=2)
    starts = tf.where(inside, first + template.before(0, texts=2), second)
    sizes = tf.where(inside, after - first, tf.gather(repeated, parts.sequence))
    return {"marked_starts": starts[:, None], "marked_ends": (starts + sizes)[:, None]}


def concatenated(arrays, dtype):
    """A list of arrays (T, …), also of none, one after another."""
    return np.concatenate(arrays) if len(arrays) else np.zeros(0, dtype)


def split_sentences(examples, tokenizer):
    """The `Sentence` of each example: the words it has, or those of its text by the tokenizer."""
    tokenized, offsets = tokenized_words(examples, tokenizer)
    return [
        _sentence(*columns)
        for columns in zip(examples, *map(_arrays, tokenized), offsets, strict=True)
    ]


def _arrays(ragged):
    """A ragged tensor (N, None) as a list of arrays."""
    flat, splits = ragged.values.numpy(), ragged.row_splits.numpy()
    return np.split(flat, splits[1:-1]) if len(splits) > 1 else []


def _sentence(example, ids, firsts, spaces, offsets):
    text, words, starts = example.text, example.words, example.starts
    if words is None:
        starts, ends = offsets
        words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    else:
        if starts is None:
            text, starts = joined(words)
        ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
    sizes = np.diff([*firsts, len(ids)]).astype(np.int64)
    return Sentence(text, list(words), list(starts), ends, sizes, spaces, ids)


def with_context(starts, ends, documents, *, room):
    """Widens sentences into their documents up to `room` tokens, evenly on both sides.

    A sentence that needs several windows gets a quarter of one on each side.

    Args:
        starts, ends: int (N,), the tokens of each sentence among all tokens.
        documents: the number of the document of each sentence.

    Returns: the first token of each with its context, and the one after its last, int (N,).
    """
    documents = np.asarray(documents)
    is_first = np.r_[True, documents[1:] != documents[:-1]]
    begins, document_of = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    before = starts - starts[begins][document_of]
    after = ends[np.r_[begins[1:], len(starts)] - 1][document_of] - ends
    free = room - (ends - starts)
    some = np.minimum(before, free // 2)
    right = np.where(free >= 0, np.minimum(after, free - some), np.minimum(after, room // 4))
    left = np.where(free >= 0, np.minimum(before, free - right), np.minimum(before, room // 4))
    return (starts - left).astype(np.int32), (ends + right).astype(np.int32)


def _targets(examples, sentences, labels, label_subwords):
    """The number of each token's tag, int32 (T,), and whether it counts, bool (T,)."""
    numbers = {label: number for number, label in enumerate(labels)}
    sizes, spaces = (
        concatenated([getattr(sentence, name) for sentence in sentences], np.int64)
        for name in ("sizes", "spaces")
    )
    tags = np.array([numbers.get(tag, -1) for e in examples for tag in e.tags], np.int32)
    tags = np.repeat(tags, sizes)
    ends = np.cumsum(sizes)
    firsts = ends - sizes + spaces
    is_labelled = np.zeros(len(tags), np.bool_)
    if label_subwords == ALL:
        is_labelled[:] = True
        is_labelled[firsts[spaces > 0] - 1] = False
    else:
        is_labelled[firsts if label_subwords == FIRST else ends - 1] = True
    counts = (tags >= 0) & is_labelled
    return np.maximum(tags, 0), counts


def _tags_around(tags, counts, starts, ends, bounds):
    """The tags of the words before and after those that count in each core, as KNOWN + tag.

    Shapes: tags and counts (T,) of all tokens; starts and ends of the cores, and both of `bounds`,
    their sentences, (N,) -> int32 (N, 2), 0 if there is no such word in the sentence, or none in
    the core.
    """
    tokens = np.flatnonzero(counts)
    first, after = np.searchsorted(tokens, starts), np.searchsorted(tokens, ends)
    tokens, tags = np.r_[tokens, -1], np.r_[tags, 0]  # -1: before the first and after the last one
    previous, following = tokens[first - 1], tokens[after]
    exists = previous >= bounds[0], (following >= 0) & (following < bounds[1])
    around = [
        np.where((after > first) & there, KNOWN + tags[token], 0)
        for token, there in zip((previous, following), exists, strict=True)
    ]
    return np.stack(around, axis=1).astype(np.int32)


def _with_special(rows, special):
    """Ragged (N, None), with 0 for this many special tokens before and after each sequence."""
    before, after = (tf.zeros([rows.nrows(), count], rows.dtype) for count in special)
    return tf.concat([before, rows, after], axis=1)


def _with_tags_around(tags, counts, around):
    """Tags, ragged (N, None), with `around` (N, 2) at the first and last position of each sequence.

    A position that counts keeps its tag, as in a template without special tokens.
    """
    flat, splits = tags.values.numpy(), tags.row_splits.numpy()
    is_free = counts.values.numpy() == 0
    for positions, labels in ((splits[:-1], around[:, 0]), (splits[1:] - 1, around[:, 1])):
        changed = np.flatnonzero(splits[1:] > splits[:-1])
        changed = changed[is_free[positions[changed]]]
        flat[positions[changed]] = labels[changed]
    return tags.with_values(tf.constant(flat))


def tagged_sequences(task, examples, *, max_length, labelled):
    """The `TaggedSequences` of a `Tagger`, `PredicateSequences` of a `SemanticRoleTagger`."""
    is_marked = "marked_starts" in task.HEAD_INPUTS
    return (PredicateSequences if is_marked else TaggedSequences)(
        examples,
        **task.framing(max_length),
        labels=task.labels,
        label_subwords=task.word_tokens[0],
        document_context=task.settings.document_context,
        labelled=labelled,
        crf=task.settings.crf,
    )
