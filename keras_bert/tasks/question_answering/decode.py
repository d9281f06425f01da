"""From the logits of a question's windows to answers, the best spans of its text.

Legend of shapes: T tokens of a piece, A tokens of the longest answer.
"""

import math
from typing import NamedTuple

import numpy as np

from keras_bert.tasks.question_answering.windows import most_context


class Piece(NamedTuple):
    """What a model says of a window of a text: of its [CLS], and of its T tokens of the text.

    `first` is the token of the text that it begins with; `starts` and `ends` are float32 (T,), the
    logits that an answer begins and ends with a token; `null` is the sum of both at [CLS], that
    there is none.
    """

    first: int
    starts: np.ndarray
    ends: np.ndarray
    null: float


class Span(NamedTuple):
    """Tokens of a text, the last included, with the sum of their logits and the probability."""

    first: int
    last: int
    logit: float
    probability: float


class Spans(NamedTuple):
    """The best `Span`s of a text, the best first (none where it has no token), and no answer.

    `null_probability` is 0 where every question is said to have an answer. `null_score` is how far
    the logits of no answer are above those of the best span, which a threshold is held against; it
    is 0 where there is no span.
    """

    best: list
    null_score: float
    null_probability: float


def best_spans(pieces, *, max_answer_length, count=1, may_be_none=False):
    """`Spans` over all windows of a text, `pieces` in their order.

    A span is up to `max_answer_length` tokens of one window whose first token has nowhere more
    context (`most_context`), so that each span is judged once, where most is known of it; the score
    of no answer is the lowest of all windows, since an answer may lie in any: so does
    google-research/bert. Its shortlist of starts and ends is not made: every span is looked at, and
    a probability is one among all of them, and no answer where there `may_be_none`.
    """
    chosen = most_context(
        np.array([piece.first for piece in pieces]),
        np.array([len(piece.starts) for piece in pieces]),
    )
    tables = [_sums(p, where, max_answer_length) for p, where in zip(pieces, chosen, strict=True)]
    tokens = np.concatenate(
        [piece.first + np.flatnonzero(where) for piece, where in zip(pieces, chosen, strict=True)]
    )
    sums = np.concatenate(tables).ravel()  # (tokens * A,)
    null = min(piece.null for piece in pieces)
    if not len(sums):
        return Spans([], 0.0, 1.0 if may_be_none else 0.0)
    order = _largest(sums, count)
    top = max(float(sums[order[0]]), null if may_be_none else -math.inf)
    of_none = math.exp(null - top) if may_be_none else 0.0
    total = np.exp(sums.astype(np.float64) - top).sum() + of_none
    best = []
    for place in order:
        token, further = divmod(int(place), max_answer_length)
        first, logit = int(tokens[token]), float(sums[place])
        best.append(Span(first, first + further, logit, math.exp(logit - top) / total))
    return Spans(best, null - best[0].logit, of_none / total)


def _sums(piece, chosen, most):
    """float32 (tokens chosen, A): start logit plus that of the end 0, 1 … tokens further on.

    -inf where that lies behind the window.
    """
    places = np.flatnonzero(chosen)
    beyond = np.full(most, -np.inf, np.float32)
    ends = np.lib.stride_tricks.sliding_window_view(np.concatenate([piece.ends, beyond]), most)
    return piece.starts[places][:, None] + ends[places]


def _largest(values, count):
    """The places of the `count` largest finite values, the largest first; of equal ones the first.

    Shapes: values (N,) -> int (up to count,).
    """
    if count == 1:
        return [int(values.argmax())]
    count = min(count, int(np.isfinite(values).sum()))
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values >= least)
    return above[np.argsort(-values[above], kind="stable")][:count]
