"""Sequences of questions: a question and a window of its context (google-research/bert, SQuAD).

In BERT's template a sequence is `[CLS] question [SEP] window [SEP]`, made per batch. Kept in memory
are the ids of each question and of each distinct context, the characters of the contexts' tokens,
and the ranges of the windows.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.framing import windows
from keras_bert.inputs.tokenized_examples import TokenizedExamples, tokenized

# Texts and characters per call of the tokenizer's graph.
_TEXTS_PER_CALL = 1000
_CHARACTERS_PER_CALL = 1 << 20


class Contexts(NamedTuple):
    """Distinct contexts, tokenized. Legend of shapes: C contexts, T tokens of all of them.

    `ids` is ragged int32 (C, None); `starts` and `ends`, int32 (T,), are the characters of each
    token in its context; context c has the tokens from `splits[c]` to `splits[c + 1]`.
    """

    ids: tf.RaggedTensor
    starts: np.ndarray
    ends: np.ndarray
    splits: np.ndarray

    @classmethod
    def from_texts(cls, texts, tokenizer):
        chunks = [tokenizer.tokenize_with_offsets(chunk) for chunk in _chunks(texts)]
        ids = tf.concat([chunk.ids for chunk in chunks], axis=0)
        return cls(
            ids,
            np.concatenate([chunk.starts.flat_values.numpy() for chunk in chunks]),
            np.concatenate([chunk.ends.flat_values.numpy() for chunk in chunks]),
            ids.row_splits.numpy(),
        )

    def characters(self, context, first, last):
        """(start, end) of the characters from the first to the last token, both inclusive."""
        start = self.splits[context]
        return int(self.starts[start + first]), int(self.ends[start + last])

    def tokens(self, context, start, end):
        """(first, last) token of the characters from start to end of a context, or None."""
        tokens = slice(*self.splits[context : context + 2])
        first = int(np.searchsorted(self.ends[tokens], start, side="right"))
        last = int(np.searchsorted(self.starts[tokens], end, side="left")) - 1
        return (first, last) if first <= last else None


class QuestionSequences(TokenizedExamples):
    """Sequences of windows; an example has as many as its context needs.

    Args:
        examples: a list of `Question`s.
        questions: ragged int32 (E, None), the truncated ids of each.
        contexts: `Contexts`.
        context_of: int (E,), the number of each example's context.
        windows: the `Windows` of the examples' contexts.
        labels, weights, tokenizer, max_length: see `TokenizedExamples`.

    Attributes: also `contexts`, `context_of`, `windows`, and `token_starts`, int (N,), the position
    in each sequence at which its window of the context begins.
    """

    def __init__(self, examples, questions, contexts, *, context_of, windows, tokenizer, **options):
        self.contexts = contexts
        self.context_of = context_of
        self.windows = windows
        self._before = tokenizer.template.before(1, texts=2)
        self.token_starts = questions.row_lengths().numpy()[windows.sequence] + self._before
        firsts = contexts.splits[context_of[windows.sequence]] + windows.starts
        # Per sequence: its question, and its range in the tokens of all contexts.
        self._texts, self._firsts, self._ends = map(
            tf.constant, (windows.sequence, firsts, firsts + windows.sizes)
        )
        super().__init__(
            examples,
            [questions, contexts.ids],
            example_of_sequence=windows.sequence,
            tokenizer=tokenizer,
            **options,
        )

    def sequence_tokens(self):
        return self.token_starts - self._before + self.windows.sizes

    def take(self, numbers):
        questions, contexts = self.segments
        offsets = tf.ragged.range(tf.gather(self._firsts, numbers), tf.gather(self._ends, numbers))
        tokens = tf.gather(contexts.flat_values, offsets.flat_values)
        return [
            tf.gather(questions, tf.gather(self._texts, numbers)),
            offsets.with_flat_values(tokens),
        ]


def question_sequences(
    examples,
    *,
    tokenizer,
    input_names,
    max_length,
    stride,
    max_question_length,
    labelled=False,
):
    """`QuestionSequences` of a list of `Question`s.

    With `labelled`, labels are the positions of the first answer that occurs in the context, and 0
    ([CLS]) in windows that do not hold all of it and for questions without an answer. Sequences of
    a question whose answers do not occur in its context have weight 0.

    Args:
        stride: tokens from one window's start to the next one's.

    Raises InputError: `max_length` leaves no room for a question and text.
    """
    room = tokenizer.template.room(max_length, texts=2)
    if room < 2:
        raise InputError.naming(
            "{max_length} must be at least {} to hold a question and text. Received: {}.",
            max_length - room + 2,
            max_length,
        )
    limit = question_limit(room, max_question_length)
    questions = tokenized([example.question for example in examples], tokenizer, limit)
    numbers = {}
    context_of = np.array(
        [numbers.setdefault(example.context, len(numbers)) for example in examples], np.int64
    )
    contexts = Contexts.from_texts(list(numbers), tokenizer)
    windows_of_texts = context_windows(
        tf.constant(np.diff(contexts.splits)[context_of]),
        room - questions.row_lengths(),
        stride=stride,
    )
    sequences = QuestionSequences(
        examples,
        questions,
        contexts,
        context_of=context_of,
        windows=windows_of_texts.numpy(),
        labels={},
        tokenizer=tokenizer,
        input_names=input_names,
        max_length=max_length,
    )
    if labelled:
        sequences.labels, sequences.weights = _labels(sequences)
    return sequences


def question_limit(room, max_question_length):
    """The tokens a question is cut to: at least half of the room is left for the text."""
    return min(max_question_length, room // 2)


def context_windows(lengths, rooms, *, stride):
    """The `Windows` of contexts of these lengths, with this room each, both int64 (B,)."""
    return windows(lengths, rooms, stride=stride, last="short", cores="bert")


def positions_in(windows, spans):
    """The position of each text's span of tokens in each of its windows.

    Shapes: spans int (E, 2), first and last token -> (inside, positions): bool (N,), whether the
    window holds the whole span, and int (N, 2), counted from the window's start.
    """
    offsets = np.asarray(spans)[windows.sequence] - windows.starts[:, None]  # (N, 2)
    inside = (offsets[:, 0] >= 0) & (offsets[:, 1] < windows.sizes)
    return inside, offsets


def _labels(sequences):
    """(labels, weights) of `QuestionSequences`, (N,) by the outputs' names."""
    spans = np.full((len(sequences.examples), 2), -1)  # before every window
    weights = np.ones(len(sequences.examples), np.float32)
    for number, example in enumerate(sequences.examples):
        answer, span = example.located, None
        if answer is not None:
            end = answer.start + len(answer.text)
            span = sequences.contexts.tokens(sequences.context_of[number], answer.start, end)
        if span is not None:
            spans[number] = span
        elif example.answers:
            weights[number] = 0.0
    inside, offsets = positions_in(sequences.windows, spans)
    positions = offsets + sequences.token_starts[:, None]
    positions = np.where(inside[:, None], positions, 0).astype(np.int32)
    names = ("start_logits", "end_logits")
    return (
        dict(zip(names, positions.T, strict=True)),
        dict.fromkeys(names, weights[sequences.windows.sequence]),
    )


def _chunks(texts):
    """Splits a list of texts into lists of one call each; at least one."""
    chunk, characters = [], 0
    for text in texts:
        if chunk and (len(chunk) == _TEXTS_PER_CALL or characters > _CHARACTERS_PER_CALL):
            yield chunk
            chunk, characters = [], 0
        chunk.append(text)
        characters += len(text)
    yield chunk


def features_of_questions(task, examples, *, max_length, labelled):
    """The `question_sequences` of a `QuestionAnswerer`."""
    return question_sequences(
        examples,
        **task.framing(max_length),
        stride=task.stride_of(max_length),
        max_question_length=task.settings.max_question_length,
        labelled=labelled,
    )
