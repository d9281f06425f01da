"""From the logits of a question's windows to answers, the best spans of its text.

Legend of shapes: T tokens of the text in a window, A tokens of the longest answer.
"""

import math
from typing import NamedTuple

import numpy as np


class WindowLogits(NamedTuple):
    """The logits of one window of a text, at its T tokens and at [CLS]."""

    first: int  # the window's first token, in the text
    core: slice  # the tokens with most context in this window (see `Windows`)
    starts: np.ndarray  # float32 (T,): an answer starts at the token
    ends: np.ndarray  # float32 (T,): an answer ends at the token
    null: float  # no answer: the sum of both at [CLS]


class Span(NamedTuple):
    """Tokens of a text, the last included, with the sum of their logits and the probability."""

    first: int
    last: int
    logit: float
    probability: float


class Spans(NamedTuple):
    """The best `Span`s of a text, best first (none if it has no token), and the null answer.

    `null_score` is the logit of no answer minus that of the best span, for comparison with a
    threshold; 0 without spans. `null_probability` is 0 if every question has an answer.
    """

    best: list
    null_score: float
    null_probability: float


def best_spans(windows, *, max_answer_length, count=1, may_be_none=False):
    """`Spans` over the `WindowLogits` of a text, in their order.

    A span is up to `max_answer_length` tokens of one window that start in its core, so that each
    span is scored once, where it has most context. As in google-research/bert, the score of no
    answer is the lowest of all windows, since an answer may be in any. Unlike there, all spans are
    scored, without a shortlist of starts and ends, and probabilities are over all of them (and no
    answer with `may_be_none`).
    """
    tables = [_sums(window, max_answer_length) for window in windows]
    tokens = np.concatenate([window.first + np.r_[window.core] for window in windows])
    sums = np.concatenate(tables).ravel()  # (tokens * A,)
    null = min(window.null for window in windows)
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


def question_answers(outputs, sequences, *, max_answer_length, n_best, null_threshold):
    """One dictionary per question, as `keras-bert predict` prints it.

    Args:
        outputs: `start_logits` and `end_logits`, each a list of float32 (S,), one per sequence.
        sequences: the `QuestionSequences`.
        max_answer_length: tokens of the longest answer.
        n_best: the number of spans in `n_best`.
        null_threshold: the null score above which there is no answer; None: there always is one.
    """
    splits = np.searchsorted(sequences.windows.sequence, np.arange(len(sequences.examples) + 1))
    answers = []
    for number, example in enumerate(sequences.examples):
        spans = best_spans(
            [
                _window_logits(outputs, sequences, position)
                for position in range(splits[number], splits[number + 1])
            ],
            max_answer_length=max_answer_length,
            count=n_best,
            may_be_none=null_threshold is not None,
        )
        context = sequences.context_of[number]
        texts = []
        for span in spans.best:
            start, end = sequences.contexts.characters(context, span.first, span.last)
            texts.append(
                {
                    "answer": example.context[start:end],
                    "start": start,
                    "end": end,
                    "score": span.probability,
                }
            )
        answers.append(_answer(example, spans, texts, n_best, null_threshold))
    return answers


def _window_logits(outputs, sequences, position):
    starts, ends = outputs["start_logits"][position], outputs["end_logits"][position]
    window = [int(part[position]) for part in sequences.windows]
    _, start, size, core_start, core_end = window
    first = sequences.token_starts[position]
    tokens = slice(first, first + size)
    return WindowLogits(
        first=start,
        core=slice(core_start - start, core_end - start),
        starts=starts[tokens],
        ends=ends[tokens],
        null=float(starts[0] + ends[0]),
    )


def _answer(example, spans, texts, n_best, null_threshold):
    answer = {"question": example.question}
    if example.id is not None:
        answer = {"id": example.id, **answer}
    is_none = null_threshold is not None and spans.null_score > null_threshold
    if is_none or not texts:
        answer |= {"answer": "", "start": 0, "end": 0, "score": spans.null_probability}
    else:
        answer |= texts[0]
    answer["null_score"] = spans.null_score
    if example.answers is not None:
        answer["expected"] = [gold.text for gold in example.answers]
    if n_best > 1 or null_threshold is not None:
        answer["n_best"] = texts
    return answer


def _sums(window, most):
    """float32 (tokens of the core, A): start logit + end logit 0, 1, … tokens further on.

    -inf past the end of the window.
    """
    positions = np.r_[window.core]
    beyond = np.full(most, -np.inf, np.float32)
    ends = np.lib.stride_tricks.sliding_window_view(np.concatenate([window.ends, beyond]), most)
    return window.starts[positions][:, None] + ends[positions]


def _largest(scores, count):
    """The positions of the `count` largest finite values, in order; of ties the first one first.

    Shapes: values (N,) -> int (up to count,).
    """
    if count == 1:
        return [int(scores.argmax())]
    count = min(count, int(np.isfinite(scores).sum()))
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    above = np.flatnonzero(scores >= least)
    return above[np.argsort(-scores[above], kind="stable")][:count]
