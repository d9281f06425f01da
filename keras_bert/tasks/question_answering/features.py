"""Questions as rows, the question and a window of the context (google-research/bert, SQuAD).

In BERT's template a row is `[CLS] question [SEP] window [SEP]`; it is made when asked for.

What is kept is the ids of each question and of each context once (with where its tokens stand in
it, for answers), and the ranges of the windows.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.tokenized_examples import TokenizedExamples, tokenized
from keras_bert.inputs.windows import windows

# Texts, and characters, that are tokenized at once: the graph's cost a call is spread over them.
_TEXTS_TOGETHER = 1000
_CHARACTERS_TOGETHER = 1 << 20


class Contexts(NamedTuple):
    """Different contexts, tokenized. Legend of shapes: C contexts, T tokens of all of them.

    `ids` is ragged int32 (C, None); `starts` and `ends`, int32 (T,), are where each token stands
    in its context, in characters, and context c has the tokens from `splits[c]` to
    `splits[c + 1]`.
    """

    ids: tf.RaggedTensor
    starts: np.ndarray
    ends: np.ndarray
    splits: np.ndarray

    @classmethod
    def of_texts(cls, texts, tokenizer):
        """Tokenizes a list of texts."""
        tokens = [tokenizer.tokenize_with_offsets(chunk) for chunk in _chunks(texts)]
        ids = tf.concat([some.ids for some in tokens], axis=0)
        return cls(
            ids,
            np.concatenate([some.starts.flat_values.numpy() for some in tokens]),
            np.concatenate([some.ends.flat_values.numpy() for some in tokens]),
            ids.row_splits.numpy(),
        )

    def characters(self, context, first, last):
        """(start, end) of the characters from one token of a context to another."""
        start = self.splits[context]
        return int(self.starts[start + first]), int(self.ends[start + last])

    def tokens(self, context, start, end):
        """(first, last) token of a context that some of its characters are of; None for none."""
        tokens = slice(*self.splits[context : context + 2])
        first = int(np.searchsorted(self.ends[tokens], start, side="right"))
        last = int(np.searchsorted(self.starts[tokens], end, side="left")) - 1
        return (first, last) if first <= last else None


class QuestionRows(TokenizedExamples):
    """Rows of windows; an example has as many as its context needs.

    Args:
        examples: a list of `Question`s.
        questions: ragged int32 (E, None), the ids of each, cut.
        contexts: `Contexts`.
        context_of: int (E,), whose context each example has.
        windows: the `Windows` of the examples' contexts.
        labels, weights: as in `TokenizedExamples`.
        tokenizer, max_length: see there.

    Attributes: also `contexts`, `context_of`, `windows`, and `token_starts`, int (N,), the
    position in each row where its piece of the context begins.
    """

    def __init__(self, examples, questions, contexts, *, context_of, windows, tokenizer, **options):
        self.contexts = contexts
        self.context_of = context_of
        self.windows = windows
        self._before = tokenizer.template.before(1, texts=2)
        self.token_starts = questions.row_lengths().numpy()[windows.sequence] + self._before
        firsts = contexts.splits[context_of[windows.sequence]] + windows.starts
        # Of each row: whose question, and from where to where in the tokens of all contexts.
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

    def take(self, rows):
        questions, contexts = self.segments
        offsets = tf.ragged.range(tf.gather(self._firsts, rows), tf.gather(self._ends, rows))
        tokens = tf.gather(contexts.flat_values, offsets.flat_values)
        return [
            tf.gather(questions, tf.gather(self._texts, rows)),
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
    """`QuestionRows` of a list of `Question`s.

    With `labelled`, labels are the positions of the first answer that stands in the context, and
    the first one ([CLS]) in windows that do not hold all of it or where there is none. Rows of a
    question whose answers stand nowhere weigh 0.

    Args:
        stride: tokens from one window's beginning to the next.

    Raises InputError: a row of `max_length` has no room for a question and text.
    """
    room = tokenizer.template.room(max_length, texts=2)
    if room < 2:
        raise InputError(
            f"`max_length` is {max_length}, which leaves no room for a question and text; give "
            f"{max_length - room + 2} or more."
        )
    limit = question_limit(room, max_question_length)
    questions = tokenized([example.question for example in examples], tokenizer, limit)
    numbers = {}
    context_of = np.array(
        [numbers.setdefault(example.context, len(numbers)) for example in examples], np.int64
    )
    contexts = Contexts.of_texts(list(numbers), tokenizer)
    found = context_windows(
        tf.constant(np.diff(contexts.splits)[context_of]),
        room - questions.row_lengths(),
        stride=stride,
    )
    rows = QuestionRows(
        examples,
        questions,
        contexts,
        context_of=context_of,
        windows=found.numpy(),
        labels={},
        tokenizer=tokenizer,
        input_names=input_names,
        max_length=max_length,
    )
    if labelled:
        rows.labels, rows.weights = _labels(rows)
    return rows


def question_limit(room, max_question_length):
    """The tokens that a question is cut to: it leaves half of the room at least for the text."""
    return min(max_question_length, room // 2)


def context_windows(lengths, rooms, *, stride):
    """The `Windows` of contexts of so many tokens, in rooms of so many, int64 (B,) both."""
    return windows(lengths, rooms, stride=stride, last="short", cores="bert")


def positions_in(windows, spans):
    """Where each text's span of tokens lies in each of its windows, counted from where that begins.

    Shapes: spans int (E, 2), the first and the last token of each text's span -> (inside, places):
    bool (N,), whether the window holds all of the span, and int (N, 2).
    """
    offsets = np.asarray(spans)[windows.sequence] - windows.starts[:, None]  # (N, 2)
    inside = (offsets[:, 0] >= 0) & (offsets[:, 1] < windows.sizes)
    return inside, offsets


def _labels(rows):
    """(labels, weights) of `QuestionRows`, (N,) by the outputs' names."""
    spans = np.full((len(rows.examples), 2), -1)  # before every window
    weights = np.ones(len(rows.examples), np.float32)
    for number, example in enumerate(rows.examples):
        span = _tokens_of_answer(example, rows.contexts, rows.context_of[number])
        if span is not None:
            spans[number] = span
        elif example.answers:
            weights[number] = 0.0
    inside, offsets = positions_in(rows.windows, spans)
    positions = np.where(inside[:, None], offsets + rows.token_starts[:, None], 0).astype(np.int32)
    names = ("start_logits", "end_logits")
    return (
        dict(zip(names, positions.T, strict=True)),
        dict.fromkeys(names, weights[rows.windows.sequence]),
    )


def _tokens_of_answer(example, contexts, context):
    answer = example.located
    if answer is None:
        return None
    return contexts.tokens(context, answer.start, answer.start + len(answer.text))


def _chunks(texts):
    """Cuts a list of texts into lists that are tokenized at once; at least one."""
    chunk, characters = [], 0
    for text in texts:
        if chunk and (len(chunk) == _TEXTS_TOGETHER or characters > _CHARACTERS_TOGETHER):
            yield chunk
            chunk, characters = [], 0
        chunk.append(text)
        characters += len(text)
    yield chunk
