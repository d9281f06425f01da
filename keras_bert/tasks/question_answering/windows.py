"""Long texts in overlapping windows, as ranges of their tokens (google-research/bert, SQuAD).

A row is `[CLS] question [SEP] piece [SEP]`, and the pieces of a text begin `stride` tokens apart.
Legend of shapes: E texts, N windows, T tokens of a text.
"""

from typing import NamedTuple

import numpy as np

# [CLS] before the question, [SEP] behind it and behind the piece of the text.
SPECIAL_TOKENS = 3


class Windows(NamedTuple):
    """Ranges of tokens, int64 (N,) each, text by text and from front to back.

    `texts` says whose tokens they are, `firsts` where they begin, `lengths` how many they are.
    """

    texts: np.ndarray
    firsts: np.ndarray
    lengths: np.ndarray


def question_limit(max_length, max_question_length):
    """The tokens that a question is cut to: it leaves half of the row at least for the text."""
    return min(max_question_length, (max_length - SPECIAL_TOKENS) // 2)


def windows_of(lengths, rooms, *, stride):
    """`Windows` that together are all tokens of each text; a text without a token has an empty one.

    Where the room is less than the stride, windows begin so far apart, so that none is left out.

    Shapes: lengths int (E,), the tokens of each text; rooms int (E,), those of its windows.
    """
    lengths, rooms = np.asarray(lengths, np.int64), np.asarray(rooms, np.int64)
    steps = np.minimum(stride, rooms)  # (E,)
    counts = 1 + -(-np.maximum(lengths - rooms, 0) // steps)  # (E,)
    texts = np.repeat(np.arange(len(lengths)), counts)  # (N,)
    before = np.cumsum(counts) - counts
    firsts = (np.arange(len(texts)) - before[texts]) * steps[texts]
    return Windows(texts, firsts, np.minimum(rooms[texts], lengths[texts] - firsts))


def places_in(windows, spans):
    """Where each text's span of tokens lies in each of its windows, counted from where that begins.

    Shapes: spans int (E, 2), the first and the last token of each text's span -> (inside, places):
    bool (N,), whether the window holds all of the span, and int (N, 2).
    """
    places = np.asarray(spans)[windows.texts] - windows.firsts[:, None]  # (N, 2)
    inside = (places[:, 0] >= 0) & (places[:, 1] < windows.lengths)
    return inside, places


def most_context(firsts, lengths):
    """For each window of one text, which of its tokens have no more context in another window.

    A token's context is the lesser of what lies left and right of it, and a hundredth of the
    window's length. Among windows that give it the same, the first has it. So the windows share
    the tokens out: each is chosen once.

    Shapes: firsts, lengths int (N,), the windows of one text -> a list of N bool (lengths[i],).
    """
    tokens = int(np.max(firsts + lengths))
    most = np.full(tokens, -np.inf)
    owner = np.zeros(tokens, np.int64)
    for number, (first, length) in enumerate(zip(firsts, lengths, strict=True)):
        inside = slice(first, first + length)
        left = np.arange(length)
        context = np.minimum(left, length - 1 - left) + 0.01 * length
        better = context > most[inside]
        most[inside][better] = context[better]
        owner[inside][better] = number
    return [
        owner[first : first + length] == number
        for number, (first, length) in enumerate(zip(firsts, lengths, strict=True))
    ]
