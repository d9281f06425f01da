"""From the logits of a question's windows to answers, the best spans of its text.

Legend of shapes: T tokens of a piece, A tokens of the longest answer.
"""

import math
from typing import NamedTuple

import numpy as np


class Piece(NamedTuple):
    """What a model says of a window of a text: of its [CLS], and of its T tokens of the text.

    `first` is the token of the text that it begins with, and `core` which of its tokens have most
    context in it (see `Windows`). `starts` and `ends` are float32 (T,), the logits that an answer
    begins and ends with a token; `null` is the sum of both at [CLS], that there is none.
    """

    first: int
    core: slice
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


def best_spans(subwords, *, max_answer_length, count=1, may_be_none=False):
    """`Spans` over all windows of a text, `subwords` in their order.

    A span is up to `max_answer_length` tokens of one window whose first token is in its core, so
    that each span is judged once, where most is known of it; the score
    of no answer is the lowest of all windows, since an answer may lie in any: so does
    google-research/bert. Its shortlist of starts and ends is not made: every span is looked at, and
    a probability is one among all of them, and no answer where there `may_be_none`.
    """
    tables = [_sums(subword, max_answer_length) for subword in subwords]
    tokens = np.concatenate([subword.first + np.r_[subword.core] for subword in subwords])
    sums = np.concatenate(tables).ravel()  # (tokens * A,)
    null = min(subword.null for subword in subwords)
    if not len(sums):
        return Spans([], 0.0, 1.0 if may_be_none else 0.0)
    order = _largest(sums, count)
    top = max(float(sums[order[0]]), null if may_be_none else -math.inf)
    of_none = math.exp(null - top) if may_be_none else 0.0
    total = float(np.exp(sums.astype(np.float64) - top).sum()) + of_none
    best = []
    for position in order:
        token, further = divmod(int(position), max_answer_length)
        first, logit = int(tokens[token]), float(sums[position])
        best.append(Span(first, first + further, logit, math.exp(logit - top) / total))
    return Spans(best, null - best[0].logit, of_none / total)


def question_answers(outputs, rows, *, max_answer_length, n_best, null_threshold):
    """A dictionary a question, as `keras-bert predict` prints it.

    Args:
        outputs: `start_logits` and `end_logits`, a list of float32 (S,) each, a row its own.
        rows: the `QuestionRows`.
        max_answer_length: tokens of the longest answer.
        n_best: how many spans `n_best` names.
        null_threshold: the null score above which the answer is none; None: there is always one.
    """
    examples_of = np.searchsorted(rows.windows.sequence, np.arange(len(rows.examples) + 1))
    answers = []
    for number, example in enumerate(rows.examples):
        spans = best_spans(
            [
                _token(outputs, rows, row)
                for row in range(examples_of[number], examples_of[number + 1])
            ],
            max_answer_length=max_answer_length,
            count=n_best,
            may_be_none=null_threshold is not None,
        )
        found = [_text_of(span, example, rows, number) for span in spans.best]
        answers.append(_answer(example, spans, found, n_best, null_threshold))
    return answers


def _token(outputs, rows, row):
    starts, ends = outputs["start_logits"][row], outputs["end_logits"][row]
    first, window = rows.token_starts[row], [int(part[row]) for part in rows.windows]
    _, start, size, core_start, core_end = window
    subword = slice(first, first + size)
    return Piece(
        first=start,
        core=slice(core_start - start, core_end - start),
        starts=starts[subword],
        ends=ends[subword],
        null=float(starts[0] + ends[0]),
    )


def _text_of(span, example, rows, number):
    start, end = rows.contexts.characters(rows.context_of[number], span.first, span.last)
    return {
        "answer": example.context[start:end],
        "start": start,
        "end": end,
        "score": span.probability,
    }


def _answer(example, spans, found, n_best, null_threshold):
    answer = {"question": example.question}
    if example.id is not None:
        answer = {"id": example.id, **answer}
    is_none = null_threshold is not None and spans.null_score > null_threshold
    if is_none or not found:
        answer |= {"answer": "", "start": 0, "end": 0, "score": spans.null_probability}
    else:
        answer |= found[0]
    answer["null_score"] = spans.null_score
    if example.answers is not None:
        answer["expected"] = [gold.text for gold in example.answers]
    if n_best > 1 or null_threshold is not None:
        answer["n_best"] = found
    return answer


def _sums(subword, most):
    """float32 (tokens of the core, A): start logit plus that of the end 0, 1 … tokens further on.

    -inf where that lies behind the window.
    """
    positions = np.r_[subword.core]
    beyond = np.full(most, -np.inf, np.float32)
    ends = np.lib.stride_tricks.sliding_window_view(np.concatenate([subword.ends, beyond]), most)
    return subword.starts[positions][:, None] + ends[positions]


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
